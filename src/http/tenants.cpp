#include "rondo/http/tenants.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>

#include "addresses.hpp"
#include "characters.hpp"
#include "rondo/http/detail/path_readings.hpp"
#include "rondo/http/message.hpp"

namespace rondo::http {

using detail::plain;

namespace {

namespace ip = boost::asio::ip;

constexpr std::string_view digits = "0123456789abcdef";

std::optional<ip::address> parse_address(std::string_view text) {
    boost::system::error_code error;
    ip::address const a = ip::make_address(text, error);
    if (error) return std::nullopt;
    return plain(a);
}

// A node of Forwarded or X-Forwarded-For: an address, perhaps quoted, in brackets, with a port.
std::optional<ip::address> parse_node(std::string_view text) {
    text = without_space(text);
    if (text.size() >= 2 && text.starts_with('"') && text.ends_with('"')) {
        text = text.substr(1, text.size() - 2);
    }
    if (text.starts_with('[')) {
        std::size_t const end = text.find(']');
        return end == std::string_view::npos ? std::nullopt
                                             : parse_address(text.substr(1, end - 1));
    }
    bool const has_port = std::ranges::count(text, ':') == 1;
    return parse_address(has_port ? text.substr(0, text.find(':')) : text);
}

// Where the first of these separators is that is not in quotes, or the end. Nothing if quotes are
// not where the grammar has them, around a whole value (RFC 7239, 4): a client may leave one open,
// so that those of the proxies behind it close what they should open.
std::optional<std::size_t> find_unquoted(std::string_view text, char separator) noexcept {
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (quoted && text[i] == '\\') {
            ++i;
        } else if (quoted && text[i] == '"') {
            std::string_view const behind = text.substr(i + 1, 1);
            if (behind.find_first_not_of(" \t;,") != std::string_view::npos) return std::nullopt;
            quoted = false;
        } else if (text[i] == '"') {
            if (i == 0 || text[i - 1] != '=') return std::nullopt;
            quoted = true;
        } else if (text[i] == separator && !quoted) {
            return i;
        }
    }
    if (quoted) return std::nullopt;
    return text.size();
}

// The elements of a list that commas separate, but for an empty one at the front. What is in quotes
// shows from the front only, so the last ones are found with all the others; if it does not show,
// it is not known who wrote what, and the whole is one element that cannot be read.
// X-Forwarded-For has no quotes to it: whoever adds an address puts a comma before it.
void add_elements(std::vector<std::string_view>& to, std::string_view list, bool has_quotes) {
    std::size_t const had = to.size();
    for (bool first = true, more = true; more; first = false) {
        auto const comma =
            has_quotes ? find_unquoted(list, ',') : std::min(list.find(','), list.size());
        if (!comma) {
            to.resize(had);
            to.emplace_back();
            return;
        }
        more = *comma != list.size();
        if (!first || *comma != 0) to.push_back(without_space(list.substr(0, *comma)));
        if (more) list.remove_prefix(*comma + 1);
    }
}

// for= of an element of Forwarded.
std::optional<ip::address> forwarded_for(std::string_view element) {
    while (!element.empty()) {
        std::size_t const end = find_unquoted(element, ';').value_or(element.size());
        std::string_view const pair = without_space(element.substr(0, end));
        element.remove_prefix(std::min(end + 1, element.size()));
        if (pair.size() > 4 && same_token(pair.substr(0, 4), "for=")) {
            return parse_node(pair.substr(4));
        }
    }
    return std::nullopt;
}

// Who sent it to the first trusted one in a row of them that ends with us. An element that cannot
// be read ends the row: whoever wrote it is the last of whom we know.
ip::address walk_back(fields const& all, std::string_view name, ip::address last,
                      std::vector<network> const& trusted) {
    bool const standard = same_token(name, "forwarded");
    std::vector<std::string_view> elements;
    for (field const& f : all) {
        if (same_token(f.name, name) && !f.value.empty()) add_elements(elements, f.value, standard);
    }
    for (; !elements.empty(); elements.pop_back()) {
        auto const who = standard ? forwarded_for(elements.back()) : parse_node(elements.back());
        if (!who) return last;
        last = *who;
        if (!contains(trusted, last)) return last;
    }
    return last;
}

// As to_string() does it, which goes through printf: for each request.
std::string name_of_v4(ip::address_v4 const& a) {
    std::array<char, 16> text;
    char* out = text.data();
    for (unsigned const byte : a.to_bytes()) {
        if (out != text.data()) *out++ = '.';
        out = std::to_chars(out, text.data() + text.size(), byte).ptr;
    }
    return {text.data(), out};
}

std::string address_name(ip::address const& a) {
    if (a.is_v4()) return name_of_v4(a.to_v4());
    return detail::owner_of(a).to_string() + "/64";
}

// Of two values one may be the client's own, which its proxy has passed on.
std::optional<std::string> of_field(fields const& all, std::string_view name) {
    std::optional<std::string_view> value;
    for (field const& f : all) {
        if (!same_token(f.name, name)) continue;
        if (value && *value != f.value) return std::nullopt;
        value = f.value;
    }
    if (!value || value->empty()) return std::nullopt;
    return std::string{*value};
}

std::optional<std::string> of_api_key(fields const& all, tenant_rules const& rules) {
    auto key = all.find("x-api-key");
    if (!key) {
        auto const credentials = all.find("authorization");
        constexpr std::string_view scheme = "bearer ";
        if (!credentials || credentials->size() <= scheme.size()) return std::nullopt;
        if (!same_token(credentials->substr(0, scheme.size()), scheme)) return std::nullopt;
        key = without_space(credentials->substr(scheme.size()));
    }
    auto const known = rules.api_keys.find(*key);
    if (known == rules.api_keys.end()) return std::nullopt;
    return known->second;
}

std::string first_segments(std::string_view path, std::size_t segments) {
    std::size_t end = 0;
    for (std::size_t i = 0; i < segments && end < path.size(); ++i) {
        std::size_t const next = path.find('/', end + 1);
        end = next == std::string_view::npos ? path.size() : next;
    }
    return std::string{path.substr(0, end)};
}

// By its spelling a client could have a tenant for each, and so as many shares as it likes.
std::optional<std::string> of_path(std::string_view path, std::size_t segments) {
    path = path.substr(0, path.find('?'));
    if (!path.starts_with('/')) return std::nullopt;
    return detail::in_all_readings(
        path, [segments](std::string_view read) { return first_segments(read, segments); });
}

std::optional<std::string> part_of(request_origin const& r, tenant_part const& part,
                                   tenant_rules const& rules) {
    using kind = tenant_part::kind;
    switch (part.what) {
        case kind::header:
            if (!contains(rules.trusted, plain(r.peer))) return std::nullopt;
            return of_field(r.head.fields, part.name);
        case kind::api_key:
            return of_api_key(r.head.fields, rules);
        case kind::address:
            return address_name(client_address(r, rules.trusted));
        case kind::path:
            return of_path(r.head.path, part.segments);
        case kind::route:
            if (r.route.empty()) return std::nullopt;
            return std::string{r.route};
    }
    return std::nullopt;
}

// FNV-1a.
std::uint64_t hash_of(std::string_view text) noexcept {
    std::uint64_t h = 0xcbf2'9ce4'8422'2325U;
    for (char const c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3U;
    return h;
}

std::string cut(std::string name) {
    if (name.size() <= longest_tenant) return name;
    std::array<char, 17> hash{'~'};
    std::uint64_t h = hash_of(name);
    for (std::size_t i = 16; i > 0; --i, h >>= 4U) hash[i] = digits[h & 15U];
    name.resize(longest_tenant - hash.size());
    name.append(hash.data(), hash.size());
    return name;
}

void append_escaped(std::string& to, std::string_view part) {
    for (char const c : part) {
        if (c == '|' || c == '\\') to += '\\';
        to += c;
    }
}

std::optional<std::string> tuple_of(request_origin const& r, tenant_key_parts const& parts,
                                    tenant_rules const& rules) {
    if (parts.size() == 1) return part_of(r, parts.front(), rules);
    std::string name;
    for (tenant_part const& p : parts) {
        auto const part = part_of(r, p, rules);
        if (!part) return std::nullopt;
        if (&p != parts.data()) name += '|';
        append_escaped(name, *part);
    }
    return name;
}

std::expected<tenant_part, std::string> parse_part(std::string_view text) {
    using kind = tenant_part::kind;
    std::size_t const colon = text.find(':');
    std::string_view const what = text.substr(0, colon);
    bool const has_argument = colon != std::string_view::npos;
    std::string_view const argument = has_argument ? text.substr(colon + 1) : std::string_view{};
    if (what == "header") {
        if (argument.empty() || !all_are(argument, in_token)) {
            return std::unexpected{"a header has a name: \"header:x-tenant\""};
        }
        return tenant_part{.what = kind::header, .name = std::string{argument}};
    }
    if (what == "path") {
        std::size_t n = 1;
        auto const* const end = std::to_address(argument.end());
        auto const read = std::from_chars(std::to_address(argument.begin()), end, n);
        bool const wrong = has_argument && (read.ec != std::errc{} || read.ptr != end);
        if (wrong || n == 0 || n > 16) {
            return std::unexpected{"of a path it is from 1 to 16 segments: \"path:2\""};
        }
        return tenant_part{.what = kind::path, .name = {}, .segments = n};
    }
    bool const known = what == "address" || what == "api_key" || what == "route";
    if (!known || has_argument) {
        return std::unexpected{
            "it is header:NAME, api_key, address, path:N or route, or several with + between them"};
    }
    tenant_part part;
    part.what = what == "address" ? kind::address : what == "route" ? kind::route : kind::api_key;
    return part;
}

}  // namespace

std::expected<tenant_key_parts, std::string> parse_tenant_key(std::string_view text) {
    tenant_key_parts parts;
    for (bool more = true; more;) {
        std::size_t const plus = text.find('+');
        more = plus != std::string_view::npos;
        auto part = parse_part(without_space(text.substr(0, plus)));
        if (!part) return std::unexpected{std::move(part.error())};
        parts.push_back(*std::move(part));
        if (more) text = text.substr(plus + 1);
    }
    return parts;
}

std::expected<network, std::string> parse_network(std::string_view text) {
    boost::system::error_code error;
    if (text.find('/') == std::string_view::npos) {
        auto const a = parse_address(text);
        if (!a) return std::unexpected{"it is an address, or one with a prefix: \"10.0.0.0/8\""};
        if (a->is_v4()) return network{ip::network_v4{a->to_v4(), 32}};
        return network{ip::network_v6{a->to_v6(), 128}};
    }
    auto const v4 = ip::make_network_v4(text, error);
    if (!error) return network{v4.canonical()};
    auto const v6 = ip::make_network_v6(text, error);
    if (error) return std::unexpected{"it is an address, or one with a prefix: \"10.0.0.0/8\""};
    // One of IPv4 in the clothes of IPv6: addresses are without when they are looked for.
    constexpr unsigned short clothes = 96;
    if (v6.prefix_length() >= clothes && v6.address().is_v4_mapped()) {
        auto const bare = static_cast<unsigned short>(v6.prefix_length() - clothes);
        return network{ip::network_v4{plain(v6.address()).to_v4(), bare}.canonical()};
    }
    return network{v6.canonical()};
}

bool contains(std::vector<network> const& all, ip::address const& a) noexcept {
    return std::ranges::any_of(all, [&](network const& n) {
        if (auto const* const v4 = std::get_if<ip::network_v4>(&n)) {
            return a.is_v4() &&
                   (v4->prefix_length() == 0 || ((a.to_v4().to_uint() ^ v4->address().to_uint()) >>
                                                 (32U - v4->prefix_length())) == 0);
        }
        auto const& v6 = std::get<ip::network_v6>(n);
        if (!a.is_v6()) return false;
        auto const in = a.to_v6().to_bytes();
        auto const of = v6.address().to_bytes();
        for (unsigned bit = 0; bit < v6.prefix_length(); ++bit) {
            unsigned const mask = 0x80U >> (bit % 8);
            if (((in[bit / 8] ^ of[bit / 8]) & mask) != 0) return false;
        }
        return true;
    });
}

ip::address client_address(request_origin const& r, std::vector<network> const& trusted) {
    ip::address peer = plain(r.peer);
    if (!contains(trusted, peer)) return peer;
    fields const& all = r.head.fields;
    bool const standard = all.has("forwarded");
    if (standard != all.has("x-forwarded-for")) {
        return walk_back(all, standard ? "forwarded" : "x-forwarded-for", peer, trusted);
    }
    // Who writes one of them may have passed the other one on, which is the client's own word then.
    ip::address one = walk_back(all, "forwarded", peer, trusted);
    return one == walk_back(all, "x-forwarded-for", peer, trusted) ? one : peer;
}

std::string tenant_name(std::string_view text) {
    auto const visible = [](char c) { return c >= 0x20 && c < 0x7f; };
    if (std::ranges::all_of(text, visible)) return cut(std::string{text});
    std::string name;
    for (char const c : text) {
        if (visible(c)) {
            name += c;
        } else {
            auto const byte = static_cast<unsigned char>(c);
            name += {'%', digits[byte / 16U], digits[byte % 16U]};
        }
    }
    return cut(std::move(name));
}

std::string tenant_of(request_origin const& r, tenant_rules const& rules) {
    for (tenant_key_parts const& parts : rules.key) {
        if (auto const name = tuple_of(r, parts, rules)) return tenant_name(*name);
    }
    return "-";
}

}  // namespace rondo::http
