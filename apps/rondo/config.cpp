#include "config.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "config_admission.hpp"
#include "config_reader.hpp"
#include "rondo/http/detail/descriptor.hpp"
#include "rondo/http/detail/path_readings.hpp"
#include "rondo/http/files.hpp"
#include "routes.hpp"

namespace rondo::gateway {

namespace {

constexpr auto sections = std::to_array<std::string_view>(
    {"gateway", "admin", "server", "admission", "tenants", "tenant"});
constexpr auto log_levels =
    std::to_array<std::string_view>({"trace", "debug", "info", "warn", "error", "off"});
constexpr auto access_logs = std::to_array<std::string_view>({"off", "text", "json"});
constexpr auto algorithms = std::to_array<std::string_view>({"WRR"});
constexpr std::int64_t most_connections = 1'000'000;
constexpr std::string_view usual_admin_address = "127.0.0.1:9180";
constexpr std::size_t shortest_token = 16;
constexpr std::int64_t heaviest = 65'536;

backend read_backend(config_reader& r, toml::node const& n, std::string_view key) {
    backend b;
    toml::node const* where = &n;
    if (auto const* const t = n.as_table()) {
        r.check_keys(*t, "backend");
        where = r.required(*t, "backend", "address");
        if (auto const* const weight = t->get("weight")) {
            b.weight =
                static_cast<std::uint32_t>(r.number(*weight, "weight", 0, heaviest).value_or(1));
        }
        key = "address";
    } else if (!n.is_string()) {
        r.wrong_type(n, key, "an address, or { address, weight }");
        return b;
    }
    if (where == nullptr) return b;
    b.where = r.address_of(*where, key).value_or(address{.host = "", .port = 1});
    if (b.where.port == 0) r.report(*where, "nobody can be reached at port 0");
    return b;
}

void read_backends(config_reader& r, toml::node const& n, std::string_view key, forward_to& f) {
    auto const* const list = r.filled_list(n, key);
    if (list == nullptr) return;
    for (toml::node const& b : *list) f.backends.push_back(read_backend(r, b, key));
    bool const some =
        std::ranges::any_of(f.backends, [](backend const& b) { return b.weight > 0; });
    if (!some) r.report(n, "all weights are 0", "give one backend a weight, or leave weights out");
}

forward_to read_forward(config_reader& r, toml::node const& n) {
    forward_to f;
    if (n.is_array()) {
        read_backends(r, n, "forward", f);
    } else if (auto const* const t = n.as_table(); t != nullptr && !t->contains("address")) {
        r.check_keys(*t, "forward");
        if (auto const* const a = t->get("algorithm")) (void)r.word(*a, "algorithm", algorithms);
        if (auto const* const b = r.required(*t, "forward", "backends")) {
            read_backends(r, *b, "backends", f);
        }
    } else if (n.is_string() || n.is_table()) {
        f.backends.push_back(read_backend(r, n, "forward"));
        if (f.backends.back().weight == 0) r.report(n, "all weights are 0", "leave the weight out");
    } else {
        r.wrong_type(n, "forward", "an address, a list of them, or { algorithm, backends }");
    }
    return f;
}

// That every backend reads as it is written.
bool is_plain(std::string_view uri) {
    if (uri.find_first_of("?#*% \\") != std::string_view::npos) return false;
    return http::detail::in_all_readings(
               uri, [uri](std::string_view read) { return read == uri; }) == true;
}

void read_uri(config_reader& r, toml::node const& n, route& to) {
    auto const uri = r.text(n, "uri");
    to.uri.clear();  // a wrong one is compared with no other
    if (!uri) return;
    if (!uri->starts_with('/')) {
        r.report(n, fmt::format("'uri' is \"{}\"", *uri),
                 fmt::format("a path begins with '/': \"/{}\"", *uri));
    } else if (!is_plain(*uri)) {
        r.report(n, fmt::format("'uri' is \"{}\"", *uri),
                 "it is a plain path: it has everything below it, without a pattern");
    } else {
        to.uri = *uri;
    }
}

// Of a page below the directory.
void check_page(config_reader& r, toml::node const& n, serve_from const& files) {
    auto const site = http::files::open(files.root);
    std::error_code const why = site ? site->cannot_read(*files.not_found) : site.error();
    if (!why) return;
    bool const full =
        why == std::errc::too_many_files_open || why == std::errc::too_many_files_open_in_system;
    r.report(n, full ? fmt::format("cannot look for '{}': {}", *files.not_found, why.message())
                     : fmt::format("there is no file '{}' below 'serve'", *files.not_found));
}

// One route, of a match list or in the short form; the keys have the same names in both.
route read_route(config_reader& r, toml::table const& t, std::string_view section) {
    route to;
    auto const* const forward = t.get("forward");
    auto const* const serve = t.get("serve");
    auto const* const not_found = t.get("not_found");
    if (auto const* const uri = t.get("uri")) read_uri(r, *uri, to);
    if (auto const* const turns = t.get("admission")) {
        to.admission = r.boolean(*turns, "admission").value_or(true);
    }
    if (forward != nullptr && serve != nullptr) {
        r.report(*serve, fmt::format("{} has both 'forward' and 'serve'", section),
                 "take one of them, or write a 'match' list");
    } else if (forward == nullptr && serve == nullptr) {
        r.report(t, fmt::format("{} has neither 'forward' nor 'serve'", section),
                 "say where requests go");
    }
    if (not_found != nullptr && serve == nullptr) {
        r.report(*not_found, "'not_found' is a page of 'serve'", "leave it out");
    }
    if (forward != nullptr) {
        to.target = read_forward(r, *forward);
    } else if (serve != nullptr) {
        serve_from files;
        files.root = r.directory(*serve, "serve").value_or(std::filesystem::path{});
        if (not_found != nullptr) files.not_found = r.text(*not_found, "not_found");
        if (files.not_found && !files.root.empty()) check_page(r, *not_found, files);
        to.target = std::move(files);
    }
    return to;
}

void read_match(config_reader& r, toml::node const& n, server_config& s) {
    auto const* const list = r.filled_list(n, "match");
    if (list == nullptr) return;
    for (toml::node const& entry : *list) {
        auto const* const t = r.table(entry, "match");
        if (t == nullptr) continue;
        r.check_keys(*t, "match");
        route to = read_route(r, *t, "the route");
        for (route const& earlier : s.routes) {
            if (earlier.uri.empty() || !matches(earlier.uri, to.uri)) continue;
            r.report(entry,
                     fmt::format("no request gets to '{}': '{}' before it takes them all", to.uri,
                                 earlier.uri),
                     "the first match wins; put the longer path first");
            break;
        }
        s.routes.push_back(std::move(to));
    }
}

void read_routes(config_reader& r, toml::table const& t, server_config& s) {
    auto const* const match = t.get("match");
    if (match == nullptr) {
        if (!t.contains("forward") && !t.contains("serve")) {
            r.report(t, "[[server]] has no 'forward', 'serve' or 'match'", "say where requests go");
            return;
        }
        s.routes.push_back(read_route(r, t, "[[server]]"));
        return;
    }
    for (std::string_view const key : {"forward", "serve", "uri", "not_found", "admission"}) {
        if (auto const* const n = t.get(key)) {
            r.report(*n, fmt::format("[[server]] has both '{}' and 'match'", key),
                     "put it into the 'match' list");
        }
    }
    read_match(r, *match, s);
}

void read_listen(config_reader& r, toml::node const& n, std::vector<address>& all) {
    if (n.is_array()) {
        auto const* const list = r.filled_list(n, "listen");
        if (list == nullptr) return;
        for (toml::node const& a : *list) {
            if (auto parsed = r.address_of(a, "listen")) all.push_back(*std::move(parsed));
        }
    } else if (n.is_string()) {
        if (auto parsed = r.address_of(n, "listen")) all.push_back(*std::move(parsed));
    } else {
        r.wrong_type(n, "listen", "an address, or a list of them");
    }
}

void read_max_connections(config_reader& r, toml::table const& t, server_config& s) {
    auto const* const usual = t.get("max_connections");
    auto const* const other = t.get("connections");
    if (usual != nullptr && other != nullptr) {
        r.report(*other, "'connections' is another name of 'max_connections'", "leave one out");
    }
    toml::node const* const n = usual != nullptr ? usual : other;
    if (n == nullptr) return;
    auto const most =
        r.number(*n, usual != nullptr ? "max_connections" : "connections", 1, most_connections);
    if (most) s.max_connections = static_cast<std::size_t>(*most);
}

void read_certificate(config_reader& r, toml::node const& n, server_config& s) {
    auto const* const t = r.table(n, "tls");
    if (t == nullptr) return;
    r.check_keys(*t, "tls");
    certificate c{.chain = {}, .key = {}, .at = config_reader::where(n)};
    if (auto const* const chain = r.required(*t, "tls", "certificate")) {
        c.chain = r.file(*chain, "certificate").value_or(std::filesystem::path{});
    }
    if (auto const* const key = r.required(*t, "tls", "key")) {
        c.key = r.file(*key, "key").value_or(std::filesystem::path{});
    }
    s.certificates.push_back(std::move(c));
}

void read_tls(config_reader& r, toml::node const& n, server_config& s) {
    if (!n.is_array()) return read_certificate(r, n, s);
    auto const* const list = r.filled_list(n, "tls");
    if (list == nullptr) return;
    for (toml::node const& c : *list) read_certificate(r, c, s);
}

void read_timeouts(config_reader& r, toml::node const& n, timeouts& limits) {
    auto const* const t = r.table(n, "timeouts");
    if (t == nullptr) return;
    r.check_keys(*t, "timeouts");
    auto const read = [&](std::string_view key, std::chrono::milliseconds& limit) {
        if (auto const* const d = t->get(key)) limit = r.duration(*d, key).value_or(limit);
    };
    read("header", limits.header);
    read("idle", limits.idle);
    read("connect", limits.connect);
    read("response", limits.response);
}

server_config read_server(config_reader& r, toml::table const& t) {
    server_config s;
    r.check_keys(t, "[[server]]");
    if (auto const* const listen = r.required(t, "[[server]]", "listen")) {
        read_listen(r, *listen, s.listen);
    }
    if (auto const* const name = t.get("name")) s.name = r.text(*name, "name").value_or("");
    if (s.name.empty() && !s.listen.empty()) s.name = to_string(s.listen.front());
    read_max_connections(r, t, s);
    std::string_view const per_address = "max_connections_per_address";
    if (auto const* const n = t.get(per_address)) {
        auto const most = r.number(*n, per_address, 1, most_connections);
        if (most) s.max_connections_per_address = static_cast<std::size_t>(*most);
    }
    read_routes(r, t, s);
    if (auto const* const proxies = t.get("proxy_protocol")) {
        read_networks(r, *proxies, "proxy_protocol", s.proxies);
    }
    if (auto const* const tls = t.get("tls")) read_tls(r, *tls, s);
    if (auto const* const limits = t.get("timeouts")) read_timeouts(r, *limits, s.limits);
    return s;
}

void read_gateway(config_reader& r, toml::node const& n, config& c) {
    auto const* const t = r.table(n, "gateway");
    if (t == nullptr) return;
    r.check_keys(*t, "[gateway]");
    if (auto const* const grace = t->get("shutdown_grace")) {
        c.shutdown_grace = r.duration(*grace, "shutdown_grace").value_or(c.shutdown_grace);
    }
    if (auto const* const access = t->get("access_log")) {
        auto const form = r.word(*access, "access_log", access_logs);
        if (form) {
            c.access = static_cast<access_log>(std::ranges::find(access_logs, *form) -
                                               access_logs.begin());
        }
    }
    if (auto const* const log = t->get("log")) {
        auto const level = r.word(*log, "log", log_levels);
        if (level) {
            c.log =
                static_cast<log_level>(std::ranges::find(log_levels, *level) - log_levels.begin());
        }
    }
}

// Printable, so that it can be a field of HTTP.
void read_token(config_reader& r, toml::node const& n, admin_config& a) {
    auto const token = r.text(n, "token");
    if (!token) return;
    bool const printable =
        std::ranges::all_of(*token, [](char c) { return c > ' ' && c < '\x7f'; });
    if (token->size() < shortest_token || !printable) {
        r.report(
            n, "'token' can be guessed or not be sent",
            fmt::format("it has {} printable characters at least, and no space", shortest_token));
        return;
    }
    a.token = *token;
}

admin_config read_admin(config_reader& r, toml::node const& n) {
    admin_config a;
    auto const* const t = r.table(n, "admin");
    if (t == nullptr) return a;
    r.check_keys(*t, "[admin]");
    auto const* const token = t->get("token");
    if (token != nullptr) read_token(r, *token, a);
    if (auto const* const listen = t->get("listen")) {
        read_listen(r, *listen, a.listen);
    } else {
        a.listen.push_back(*parse_address(usual_admin_address));
        a.listen.back().at = config_reader::where(n);
    }
    for (address const& at : a.listen) {
        if (is_of_this_machine(at) || token != nullptr) continue;
        r.report(at.at, fmt::format("'{}' can be reached from elsewhere", to_string(at)),
                 "give [admin] a 'token', or listen at 127.0.0.1");
    }
    return a;
}

// No two can listen at one address, unless its port is any.
void check_listeners(config_reader& r, config const& c) {
    std::vector<std::pair<address, std::string_view>> taken;
    auto const take = [&](std::vector<address> const& all, std::string_view by) {
        auto const others = static_cast<std::ptrdiff_t>(taken.size());
        for (address const& a : all) {
            auto const first = std::ranges::find(taken, a, &decltype(taken)::value_type::first);
            if (first != taken.end() && a.port != 0) {
                bool const own = first - taken.begin() >= others;
                r.report(a.at,
                         own ? fmt::format("'{}' is here twice", to_string(a))
                             : fmt::format("'{}' is taken by {}", to_string(a), first->second),
                         "two cannot listen at one address");
            }
            taken.emplace_back(a, by);
        }
    };
    if (c.admin) take(c.admin->listen, "[admin]");
    for (server_config const& s : c.servers) take(s.listen, "a server above");
}

// Logs and metrics tell servers apart by their names.
void check_names(config_reader& r, toml::array const& tables, config const& c) {
    for (std::size_t i = 1; i < c.servers.size(); ++i) {
        std::string const& name = c.servers[i].name;
        auto const above = std::span{c.servers}.first(i);
        if (name.empty() || std::ranges::count(above, name, &server_config::name) == 0) continue;
        toml::table const& server = *tables.get(i)->as_table();
        auto const* const given = server.get("name");
        r.report(given != nullptr ? *given : server,
                 fmt::format("'{}' is the name of a server above", name),
                 "give this one another 'name'");
    }
}

void read_servers(config_reader& r, toml::node const& n, config& c) {
    auto const* const list = n.as_array();
    bool const tables = list != nullptr && !list->empty() &&
                        std::ranges::all_of(*list, [](auto const& e) { return e.is_table(); });
    if (!tables) {
        r.report(n, "'server' is not a list of tables", "write [[server]]");
        return;
    }
    for (toml::node const& server : *list) c.servers.push_back(read_server(r, *server.as_table()));
    check_listeners(r, c);
    check_names(r, *list, c);
}

config read_config(config_reader& r, toml::table const& t) {
    config c;
    for (auto const& [key, value] : t) {
        if (std::ranges::find(sections, key.str()) != sections.end()) continue;
        r.report({key.source().begin.line, key.source().begin.column},
                 fmt::format("unknown section '{}'", key.str()), suggest(key.str(), sections));
    }
    if (auto const* const gateway = t.get("gateway")) read_gateway(r, *gateway, c);
    if (auto const* const admin = t.get("admin")) c.admin = read_admin(r, *admin);
    read_admission(r, t, c);
    if (auto const* const servers = t.get("server")) {
        read_servers(r, *servers, c);
    } else {
        r.report(position{1, 1}, "there is no [[server]]", "a gateway has one at least");
    }
    return c;
}

void report(config_reader& r, toml::parse_error const& e) {
    auto const& at = e.source().begin;
    r.report({at.line, at.column}, std::string{e.description()}, "this is not TOML");
}

}  // namespace

config_result parse(std::string_view text, std::filesystem::path const& folder) {
    config_reader r{folder};
    try {
        toml::table const t = toml::parse(text);
        config c = read_config(r, t);
        if (r.clean()) return c;
    } catch (toml::parse_error const& e) {
        report(r, e);
    }
    return std::unexpected{r.take()};
}

namespace {

// By hand: a stream throws when a file can be opened and not be read, and a reload must not.
std::expected<std::string, diagnostic> text_of(std::filesystem::path const& file) {
    http::detail::descriptor const in{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
    std::string text;
    std::array<char, 4096> block;
    ssize_t n = in ? 1 : -1;
    while (n > 0) {
        n = ::read(in.get(), block.data(), block.size());
        if (n > 0) text.append(block.data(), static_cast<std::size_t>(n));
    }
    if (n == 0) return text;
    std::string const reason = std::generic_category().message(errno);
    return std::unexpected{diagnostic{
        .at = {}, .problem = "cannot read it: " + reason, .advice = "-c names another file"}};
}

}  // namespace

config_result load(std::filesystem::path const& file) {
    auto const text = text_of(file);
    if (!text) return std::unexpected{std::vector{text.error()}};
    return parse(*text, file.parent_path());
}

std::expected<std::optional<admin_config>, std::vector<diagnostic>> admin_of(
    std::filesystem::path const& file) {
    auto const text = text_of(file);
    if (!text) return std::unexpected{std::vector{text.error()}};
    config_reader r{file.parent_path()};
    try {
        toml::table const t = toml::parse(*text);
        auto const* const admin = t.get("admin");
        if (admin == nullptr) return std::nullopt;
        admin_config a = read_admin(r, *admin);
        if (r.clean()) return a;
    } catch (toml::parse_error const& e) {
        report(r, e);
    }
    return std::unexpected{r.take()};
}

}  // namespace rondo::gateway
