#include "rondo/cluster/message.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "rondo/cluster/bytes.hpp"
#include "rondo/core/assert.hpp"

namespace rondo::cluster {

namespace {

constexpr std::uint32_t magic = 0x524e444f;  // "RNDO"
constexpr std::uint8_t version = 1;
constexpr std::size_t signature_size = 32;
constexpr std::size_t header_size = message_overhead - signature_size;

using signature = std::array<std::byte, signature_size>;

signature sign(std::span<std::byte const> bytes, secret const& s) {
    signature made{};
    unsigned int length = 0;
    auto* const to = reinterpret_cast<unsigned char*>(made.data());
    unsigned char const* const done =
        HMAC(EVP_sha256(), s.key.data(), static_cast<int>(s.key.size()),
             reinterpret_cast<unsigned char const*>(bytes.data()), bytes.size(), to, &length);
    RONDO_ASSERT(done != nullptr && length == signature_size, "OpenSSL has HMAC-SHA256");
    return made;
}

}  // namespace

std::vector<std::byte> encode(message const& m, secret const& s) {
    RONDO_ASSERT(m.body.size() <= longest_body, "a message fits into one datagram");
    std::vector<std::byte> bytes;
    bytes.reserve(message_overhead + m.body.size());
    byte_writer w{bytes};
    w.put(magic);
    w.put(version);
    w.put(m.type);
    w.put(s.cluster);
    w.put(m.source);
    w.put(m.destination);
    w.put(m.request.from);
    w.put(m.request.sequence);
    w.put(m.epoch);
    w.put_bytes(m.body);
    signature const signed_with = sign(bytes, s);
    bytes.insert(bytes.end(), signed_with.begin(), signed_with.end());
    return bytes;
}

std::expected<message, refusal> decode(std::span<std::byte const> datagram, secret const& s) {
    if (datagram.size() < message_overhead || datagram.size() > longest_message) {
        return std::unexpected{refusal::wrong_size};
    }
    std::span const content = datagram.first(datagram.size() - signature_size);
    byte_reader r{content};
    if (r.get<std::uint32_t>() != magic) return std::unexpected{refusal::not_ours};
    if (r.get<std::uint8_t>() != version) return std::unexpected{refusal::not_ours};
    message m;
    m.type = r.get<std::uint8_t>();
    if (r.get<std::uint64_t>() != s.cluster) return std::unexpected{refusal::other_cluster};
    signature const expected = sign(content, s);
    if (CRYPTO_memcmp(expected.data(), datagram.last(signature_size).data(), signature_size) != 0) {
        return std::unexpected{refusal::not_signed};
    }
    m.source = r.get_run();
    m.destination = r.get<std::uint32_t>();
    m.request.from = r.get_run();
    m.request.sequence = r.get<std::uint64_t>();
    m.epoch = r.get_epoch();
    if (r.get<std::uint16_t>() != r.rest().size()) return std::unexpected{refusal::wrong_length};
    m.body.assign(r.rest().begin(), r.rest().end());
    return m;
}

static_assert(header_size == 4 + 1 + 1 + 8 + 12 + 4 + 20 + 12 + 2);

}  // namespace rondo::cluster
