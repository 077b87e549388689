#include "arguments.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>

#include "members.hpp"
#include "rondo/cluster/token_ring.hpp"

namespace rondo::shop {

namespace {

static_assert(most_robots == cluster::token_ring::most_members);

using problem = std::unexpected<std::string>;
using bytes_of_key = std::array<std::byte, 32>;

std::string quoted(std::string_view text) { return "'" + std::string{text} + "'"; }

std::string system_says() { return std::error_code{errno, std::generic_category()}.message(); }

std::optional<bytes_of_key> read_key(std::string const& file) {
    int const in = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (in < 0) return std::nullopt;
    bytes_of_key key;
    ssize_t const got = ::read(in, key.data(), key.size());
    ::close(in);
    if (got != static_cast<ssize_t>(key.size())) return std::nullopt;
    return key;
}

// Whole or not at all: written under a name of its own, which then becomes the right one unless
// somebody else was faster.
std::optional<std::string> make_key(std::string const& file) {
    bytes_of_key key;
    if (RAND_bytes(reinterpret_cast<unsigned char*>(key.data()), key.size()) != 1) {
        return "there is no randomness for a key";
    }
    std::string mine = file + ".XXXXXX";
    int const out = ::mkostemp(mine.data(), O_CLOEXEC);  // nobody else's, for this user alone
    if (out < 0) return mine + ": " + system_says();
    bool const written = ::write(out, key.data(), key.size()) == static_cast<ssize_t>(key.size());
    bool const synced = written && ::fsync(out) == 0;
    ::close(out);
    bool const there = synced && (::link(mine.c_str(), file.c_str()) == 0 || errno == EEXIST);
    std::string why = there ? "" : file + ": " + system_says();
    ::unlink(mine.c_str());
    if (!there) return why;
    return std::nullopt;
}

cluster::secret secret_from(std::span<std::byte const> text) {
    cluster::secret s;
    unsigned length = 0;
    EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(s.key.data()), &length,
               EVP_sha256(), nullptr);
    bytes_of_key again;
    EVP_Digest(s.key.data(), s.key.size(), reinterpret_cast<unsigned char*>(again.data()), &length,
               EVP_sha256(), nullptr);
    std::memcpy(&s.cluster, again.data(), sizeof s.cluster);
    return s;
}

// A list "0:1:2" of numbers, each of them once and below `most`.
std::expected<std::vector<std::uint32_t>, std::string> parse_members(std::string_view text,
                                                                     std::string_view what,
                                                                     std::uint32_t most) {
    std::vector<std::uint32_t> members;
    std::string const whole = std::string{what} + " " + quoted(text) + ": ";
    for (std::size_t from = 0; from <= text.size();) {
        std::size_t const to = std::min(text.find(':', from), text.size());
        std::string_view const part = text.substr(from, to - from);
        std::uint32_t number = 0;
        auto const [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
        if (error != std::errc{} || end != part.data() + part.size()) {
            return problem{whole + quoted(part) + " is not a number"};
        }
        if (number >= most) {
            return problem{whole + std::to_string(number) + " is too high; numbers go to " +
                           std::to_string(most - 1)};
        }
        if (std::ranges::find(members, number) != members.end()) {
            return problem{whole + std::to_string(number) + " is there twice"};
        }
        members.push_back(number);
        from = to + 1;
    }
    return members;
}

}  // namespace

std::expected<std::vector<std::uint32_t>, std::string> parse_ring(std::string_view text,
                                                                  std::uint32_t self) {
    auto ring = parse_members(text, "ring", most_robots);
    if (!ring) return ring;
    auto const at = std::ranges::find(*ring, self);
    if (at == ring->end()) {
        return problem{"ring " + quoted(text) + ": robot " + std::to_string(self) +
                       " is not in it"};
    }
    if (at != ring->begin()) {
        return problem{"ring " + quoted(text) + ": it begins with " +
                       std::to_string(ring->front()) + ", not with robot " + std::to_string(self) +
                       " itself"};
    }
    return ring;
}

std::expected<std::vector<std::uint32_t>, std::string> parse_screens(std::string_view text,
                                                                     std::uint32_t self) {
    auto screens = parse_members(text, "screens", most_screens);
    if (!screens) return screens;
    if (std::ranges::find(*screens, self) == screens->end()) {
        return problem{"screens " + quoted(text) + ": screen " + std::to_string(self) +
                       " is not among them"};
    }
    return screens;
}

std::expected<double, std::string> parse_probability(std::string_view text) {
    double p = -1;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), p);
    bool const whole = error == std::errc{} && end == text.data() + text.size();
    if (!whole || !(p >= 0 && p <= 1)) {
        return problem{quoted(text) + " is not a probability from 0 to 1"};
    }
    return p;
}

std::expected<cluster::secret, std::string> load_secret(std::string const& directory) {
    char const* const chosen = std::getenv("SHOP_KEY");
    if (chosen != nullptr && *chosen != '\0') {
        return secret_from(std::as_bytes(std::span{chosen, std::strlen(chosen)}));
    }
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) return problem{directory + ": " + error.message()};
    std::string const file = directory + "/key";
    std::optional<bytes_of_key> key = read_key(file);
    if (!key) {
        if (auto wrong = make_key(file)) return problem{*std::move(wrong)};
        key = read_key(file);
    }
    if (!key) return problem{file + ": this is not a key of 32 bytes"};
    return secret_from(*key);
}

}  // namespace rondo::shop
