#include "rondo/http/detail/forwarding.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <random>

#include "characters.hpp"

namespace rondo::http::detail {

namespace {

constexpr auto hop_by_hop = std::to_array<std::string_view>(
    {"connection", "http2-settings", "keep-alive", "proxy-authenticate", "proxy-authorization",
     "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"});

template <class F>
void for_each_token(std::string_view list, F&& f) {
    while (!list.empty()) {
        std::size_t const comma = list.find(',');
        std::string_view token = list.substr(0, comma);
        list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
        while (token.starts_with(' ') || token.starts_with('\t')) token.remove_prefix(1);
        while (token.ends_with(' ') || token.ends_with('\t')) token.remove_suffix(1);
        if (!token.empty()) f(token);
    }
}

// Those that no Connection field can take away: they say what the message is.
bool belongs_to_the_message(std::string_view name) noexcept {
    return same_token(name, "host") || same_token(name, "content-length");
}

// What the gateway writes itself, in place of what the client sent.
constexpr auto replaced = std::to_array<std::string_view>(
    {"host", "content-length", "expect", "forwarded", "via", "x-forwarded-for", "x-forwarded-host",
     "x-forwarded-proto", "x-request-id"});

// Whether it is the name of a variable like that one: who makes variables of fields, as CGI and
// WSGI do, reads '-' and '_' as the same.
bool same_variable(std::string_view a, std::string_view b) noexcept {
    auto const plain = [](char c) { return c == '_' ? '-' : to_lower(c); };
    return a.size() == b.size() && std::ranges::equal(a, b, {}, plain, plain);
}

bool is_one_of(std::string_view name, auto const& names) noexcept {
    return std::ranges::any_of(names, [&](std::string_view n) { return same_variable(name, n); });
}

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
    for (char const c : value) {
        if (c == '"' || c == '\\') to += '\\';
        to += c;
    }
    to += '"';
}

void append_node(std::string& to, std::string_view address) {
    if (address.find(':') == std::string_view::npos) return append_value(to, address);
    to += "\"[";
    to += address;
    to += "]\"";
}

// A zone ("fe80::1%eth0") means something on this machine only, and no Host has one.
std::string authority_of(std::string_view address) {
    std::string const text{address.substr(0, address.find('%'))};
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

void add_via(head_text& to, fields const& all, std::uint8_t minor, std::string_view name) {
    std::string own{version_text(minor)};
    own += name;
    to.add("via", all.has("via") ? appended(all, "via", own) : own);
}

}  // namespace

hop_fields::hop_fields(fields const& all) noexcept : all_(all), lists_others_(false) {
    for (field const& f : all) {
        if (!same_token(f.name, "connection")) continue;
        for_each_token(f.value, [this](std::string_view token) {
            bool const usual = same_token(token, "close") || same_token(token, "keep-alive") ||
                               same_token(token, "upgrade");
            if (!usual) lists_others_ = true;
        });
    }
}

bool hop_fields::has(std::string_view name) const noexcept {
    if (is_one_of(name, hop_by_hop)) return true;
    return lists_others_ && !belongs_to_the_message(name) && all_.lists("connection", name);
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
        to.add("host", from.host);
    }
    for (field const& f : from.fields) {
        if (is_one_of(f.name, replaced) || hops.has(f.name)) continue;
        if (!may_forward || !same_variable(f.name, "max-forwards")) to.pass_on(f);
    }
    if (may_forward) to.add("max-forwards", *may_forward - 1);
    if (asks_for_tunnel(from)) {
        to.add("connection", "upgrade");
        to.add("upgrade", tunnel_protocol);
    }
    // A field that Connection lists was for us, not for who comes after us.
    fields const kept = hops.has("forwarded") ? fields{} : from.fields;
    to.add("forwarded", appended(kept, "forwarded", forwarded_element(h, from.host)));
    to.add("x-forwarded-for", appended(from.fields, "x-forwarded-for", h.peer));
    if (!from.host.empty()) to.add("x-forwarded-host", from.host);
    to.add("x-forwarded-proto", h.secure ? "https" : "http");
    add_via(to, from.fields, from.minor, h.via);
    if (!h.request_id.empty()) return to.add("x-request-id", h.request_id);
    std::string_view const id = from.fields.value_or("x-request-id", "");
    to.add("x-request-id", is_request_id(id) ? std::string{id} : make_request_id());
}

std::vector<field> request_trailer(request_head const& head, fields const& trailer) {
    hop_fields const hops{head.fields};
    std::vector<field> kept;
    for (field const& f : trailer) {
        if (!is_one_of(f.name, replaced) && !hops.has(f.name)) kept.push_back(f);
    }
    return kept;
}

void add_response_fields(response_text& to, response_head const& from, std::string_view via) {
    hop_fields const hops{from.fields};
    for (field const& f : from.fields) {
        if (same_token(f.name, "via") || same_token(f.name, "content-length")) continue;
        if (!hops.has(f.name)) to.pass_on(f);
    }
    add_via(to, from.fields, from.minor, via);
}

}  // namespace rondo::http::detail
