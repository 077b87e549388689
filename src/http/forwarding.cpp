#include "rondo/http/detail/forwarding.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <random>

#include "characters.hpp"

namespace rondo::http::detail {

namespace {

// Whether it is the name of a variable like that one: who makes variables of fields, as CGI and
// WSGI do, reads '-' and '_' as the same.
bool same_variable(std::string_view a, std::string_view b) noexcept {
    auto const plain = [](char c) { return c == '_' ? '-' : to_lower(c); };
    return a.size() == b.size() && std::ranges::equal(a, b, {}, plain, plain);
}

// Some names. Most others are as long as none of them, and are not compared.
template <std::size_t N>
class known_names {
  public:
    explicit consteval known_names(std::string_view const (&all)[N])
        : all_(std::to_array(all)), sizes_(0) {
        for (std::string_view const name : all_) sizes_ |= std::uint64_t{1} << name.size();
    }
    bool have(std::string_view name) const noexcept {
        if (name.size() >= 64 || (sizes_ >> name.size()) % 2 == 0) return false;
        return std::ranges::any_of(all_, [&](auto n) { return same_variable(name, n); });
    }

  private:
    std::array<std::string_view, N> all_;
    std::uint64_t sizes_;
};

constexpr known_names hop_by_hop{{"connection", "http2-settings", "keep-alive",
                                  "proxy-authenticate", "proxy-authorization", "proxy-connection",
                                  "te", "trailer", "transfer-encoding", "upgrade"}};

// In some order, in which upper and lower case are the same.
bool comes_before(std::string_view a, std::string_view b) noexcept {
    if (a.size() != b.size()) return a.size() < b.size();
    return std::ranges::lexicographical_compare(a, b, {}, to_lower, to_lower);
}

// Those that no Connection field can take away: they say what the message is.
bool belongs_to_the_message(std::string_view name) noexcept {
    return same_token(name, "host") || same_token(name, "content-length");
}

// What the gateway writes itself, in place of what the client sent.
constexpr known_names replaced{{"host", "content-length", "expect", "forwarded", "via",
                                "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
                                "x-request-id"}};

// Whether every quote in it ends, so that what follows is not part of a quoted string.
bool quotes_end(std::string_view text) noexcept {
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (quoted && text[i] == '\\') {
            ++i;
        } else if (text[i] == '"') {
            quoted = !quoted;
        }
    }
    return !quoted;
}

// As it is if it is a token, otherwise quoted.
void append_value(std::string& to, std::string_view value) {
    if (all_are(value, in_token)) {
        to += value;
        return;
    }
    to += '"';
    if (!value.contains('"') && !value.contains('\\')) {
        to += value;
    } else {
        for (char const c : value) {
            if (c == '"' || c == '\\') to += '\\';
            to += c;
        }
    }
    to += '"';
}

// A zone ("fe80::1%eth0") means something on this machine only: neither Host nor RFC 7239 has one.
std::string_view without_zone(std::string_view address) noexcept {
    return address.substr(0, address.find('%'));
}

void append_node(std::string& to, std::string_view address) {
    address = without_zone(address);
    if (address.find(':') == std::string_view::npos) return append_value(to, address);
    to += "\"[";
    to += address;
    to += "]\"";
}

std::string authority_of(std::string_view address) {
    std::string const text{without_zone(address)};
    return text.find(':') == std::string::npos ? text : "[" + text + "]";
}

std::mt19937_64& random_of_this_thread() {
    thread_local std::mt19937_64 engine = [] {
        std::random_device device;
        std::seed_seq seed{device(), device(), device(), device(), device(), device()};
        return std::mt19937_64{seed};
    }();
    return engine;
}

std::string_view version_text(std::uint8_t minor) noexcept { return minor == 0 ? "1.0 " : "1.1 "; }

// What is sound: an address, or of a head that was scanned.
void add_to_list(head_text& to, fields const& all, std::string_view name, std::string_view own) {
    if (all.has(name)) return to.pass_on({name, appended(all, name, own)});
    to.pass_on({name, own});
}

void add_via(head_text& to, fields const& all, std::uint8_t minor, std::string_view name) {
    std::string own{version_text(minor)};
    own += name;
    to.add("via", all.has("via") ? appended(all, "via", own) : own);
}

// What of a trailer goes to the next hop.
template <class Ours>
std::vector<field> passed_on(fields const& trailer, fields const& head, Ours is_ours) {
    if (trailer.empty()) return {};
    hop_fields const hops{head};
    std::vector<field> kept;
    for (field const& f : trailer) {
        if (!is_ours(f) && !hops.has(f.name)) kept.push_back(f);
    }
    return kept;
}

}  // namespace

hop_fields::hop_fields(fields const& all) {
    for (field const& f : all) {
        if (!same_token(f.name, "connection")) continue;
        for_each_token(f.value, [this](std::string_view token) {
            bool const usual = same_token(token, "close") || same_token(token, "keep-alive") ||
                               same_token(token, "upgrade");
            if (!usual) listed_.push_back(token);
        });
    }
    std::ranges::sort(listed_, comes_before);
}

bool hop_fields::has(std::string_view name) const noexcept {
    if (hop_by_hop.have(name)) return true;
    return !listed_.empty() && !belongs_to_the_message(name) &&
           std::ranges::binary_search(listed_, name, comes_before);
}

std::string forwarded_element(hop const& h, std::string_view host) {
    std::string element;
    element.reserve(64 + h.peer.size() + h.local.size() + host.size());
    element += "for=";
    append_node(element, h.peer);
    element += ";by=";
    append_node(element, h.local);
    if (!host.empty()) {
        element += ";host=";
        append_value(element, host);
    }
    element += h.secure ? ";proto=https" : ";proto=http";
    return element;
}

std::string appended(fields const& all, std::string_view name, std::string_view own) {
    std::string list;
    for (field const& f : all) {
        if (!same_token(f.name, name) || f.value.empty() || !quotes_end(f.value)) continue;
        list += f.value;
        list += ", ";
    }
    list += own;
    return list;
}

bool is_request_id(std::string_view text) noexcept {
    auto const fits = [](char c) {
        bool const letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        return letter || (c >= '0' && c <= '9') ||
               std::string_view{"-._~+/=:@"}.find(c) != std::string_view::npos;
    };
    return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, fits);
}

std::string make_request_id() {
    constexpr std::string_view digits = "0123456789abcdef";
    std::mt19937_64& random = random_of_this_thread();
    std::string id(32, '0');
    for (std::size_t half = 0; half < 2; ++half) {
        std::uint64_t bits = random();
        for (std::size_t i = 0; i < 16; ++i, bits >>= 4) id[half * 16 + i] = digits[bits & 15];
    }
    return id;
}

bool asks_for_tunnel(request_head const& from) noexcept {
    return lists_token(from.upgrade, tunnel_protocol);
}

std::optional<std::uint64_t> max_forwards(request_head const& from) noexcept {
    if (from.method != method::options && from.method != method::trace) return std::nullopt;
    std::string_view const text = from.fields.value_or("max-forwards", "");
    std::uint64_t n = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return n;
}

void add_request_fields(request_text& to, request_head const& from, hop const& h) {
    hop_fields const hops{from.fields};
    auto const may_forward = max_forwards(from);
    // HTTP/1.0 need not say it, and upstreams refuse an empty one: then it is what was dialled.
    if (from.host.empty()) {
        to.add("host", authority_of(h.local));
    } else {
        to.pass_on({"host", from.host});
    }
    for (field const& f : from.fields) {
        if (replaced.have(f.name) || hops.has(f.name)) continue;
        if (!may_forward || !same_variable(f.name, "max-forwards")) to.pass_on(f);
    }
    if (may_forward) to.add("max-forwards", *may_forward - 1);
    if (asks_for_tunnel(from)) {
        to.add("connection", "upgrade");
        to.add("upgrade", tunnel_protocol);
    }
    // A field that Connection lists was for us, not for who comes after us.
    fields const kept = hops.has("forwarded") ? fields{} : from.fields;
    add_to_list(to, kept, "forwarded", forwarded_element(h, from.host));
    add_to_list(to, from.fields, "x-forwarded-for", without_zone(h.peer));
    if (!from.host.empty()) to.pass_on({"x-forwarded-host", from.host});
    to.pass_on({"x-forwarded-proto", h.secure ? "https" : "http"});
    add_via(to, from.fields, from.minor, h.via);
    if (!h.request_id.empty()) return to.pass_on({"x-request-id", h.request_id});
    std::string_view const id = from.fields.value_or("x-request-id", "");
    to.add("x-request-id", is_request_id(id) ? std::string{id} : make_request_id());
}

std::vector<field> request_trailer(request_head const& head, fields const& trailer) {
    return passed_on(trailer, head.fields, [](field const& f) { return replaced.have(f.name); });
}

void add_response_fields(response_text& to, response_head const& from, std::string_view via) {
    hop_fields const hops{from.fields};
    for (field const& f : from.fields) {
        if (same_token(f.name, "via") || same_token(f.name, "content-length")) continue;
        if (!hops.has(f.name)) to.pass_on(f);
    }
    add_via(to, from.fields, from.minor, via);
}

std::vector<field> response_trailer(response_head const& head, fields const& trailer) {
    return passed_on(trailer, head.fields,
                     [](field const& f) { return same_token(f.name, "via"); });
}

}  // namespace rondo::http::detail
