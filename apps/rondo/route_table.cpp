#include "route_table.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>
#include <variant>

#include "access_log.hpp"
#include "routes.hpp"

namespace rondo::gateway {

namespace net = boost::asio;
using net::ip::tcp;

namespace {

task<void> refuse(http::exchange* x, int status, std::string_view why) {
    x->answer().status(status);
    x->answer().add("content-type", "text/plain; charset=utf-8");
    (void)co_await x->send(why);
}

bool same_upstream_times(timeouts const& a, timeouts const& b) noexcept {
    return a.connect == b.connect && a.response == b.response;
}

}  // namespace

std::string to_string(tcp::endpoint const& e) {
    std::ostringstream out;
    out << e;
    return out.str();
}

std::shared_ptr<route_table> route_table::open(server_config const& from, reception const& through,
                                               surroundings const& with, predecessor before,
                                               std::vector<diagnostic>& wrong) {
    std::shared_ptr<route_table> made{new route_table{from, through}};
    std::size_t const wrong_before = wrong.size();
    if (!from.certificates.empty()) {
        auto loaded = tls_certificates::load(from.certificates);
        if (loaded) {
            made->certificates_ = *std::move(loaded);
        } else {
            for (diagnostic& d : loaded.error()) wrong.push_back(std::move(d));
        }
    }
    route_table const* const old = before.table;
    if (old != nullptr && same_upstream_times(old->made_from_.limits, from.limits)) {
        made->client_ = old->client_;
    } else {
        http::client_options c;
        c.connect_timeout = from.limits.connect;
        c.response_timeout = from.limits.response;
        made->client_ = std::make_shared<http::client>(with.rt, c);
    }
    for (gateway::route const& r : from.routes) made->open(r, with, old, wrong);
    if (wrong.size() != wrong_before) return nullptr;
    made->open_proxies(with, before);
    return made;
}

std::shared_ptr<route_table> route_table::look_up_again(surroundings const& with,
                                                        std::vector<diagnostic>& wrong) const {
    std::shared_ptr<route_table> made{new route_table{*this}};
    std::size_t const wrong_before = wrong.size();
    for (route& r : made->routes_) {
        r.proxy = nullptr;  // until open_proxies()
        find_backends(r, with, this, wrong);
    }
    if (wrong.size() != wrong_before) return nullptr;
    std::set<http::proxy const*> taken;
    made->open_proxies(with, {this, taken});
    return made;
}

// With the same client, to the same backends by the same weights.
std::shared_ptr<http::proxy> route_table::inherit(route const& r, predecessor before,
                                                  bool same_path) const {
    if (before.table == nullptr || before.table->client_ != client_) return nullptr;
    for (route const& old : before.table->routes_) {
        if (old.proxy == nullptr || (same_path && old.uri != r.uri)) continue;
        bool const fits = old.forward.backends == r.forward.backends && old.at == r.at;
        if (fits && before.taken.insert(old.proxy.get()).second) return old.proxy;
    }
    return nullptr;
}

// Routes of the same path choose first, so that none takes what another has.
void route_table::open_proxies(surroundings const& with, predecessor before) {
    for (bool const same_path : {true, false}) {
        for (route& r : routes_) {
            if (r.files == nullptr && r.proxy == nullptr) r.proxy = inherit(r, before, same_path);
        }
    }
    for (route& r : routes_) {
        if (r.files != nullptr || r.proxy != nullptr) continue;
        http::proxy_options o;
        for (std::size_t i = 0; i < r.at.size(); ++i) {
            o.backends.push_back({r.at[i], r.forward.backends[i].weight});
        }
        o.on_failure = [log = with.log](tcp::endpoint const& who, http::failure const& f) {
            log->warn("backend {}: {}", to_string(who), f.reason);
        };
        r.proxy = std::make_shared<http::proxy>(*client_, std::move(o));
    }
}

std::vector<address> route_table::names() const {
    std::vector<address> all;
    for (route const& r : routes_) {
        for (backend const& b : r.forward.backends) {
            bool const known = std::ranges::count(all, b.where) != 0;
            if (!known && is_a_name(b.where)) all.push_back(b.where);
        }
    }
    return all;
}

std::optional<tcp::endpoint> route_table::address_of(address const& backend) const {
    for (route const& r : routes_) {
        auto const& all = r.forward.backends;
        auto const found = std::ranges::find(all, backend, &gateway::backend::where);
        if (found != all.end()) return r.at[static_cast<std::size_t>(found - all.begin())];
    }
    return std::nullopt;
}

void route_table::open_files(gateway::route const& r, serve_from const& from,
                             std::vector<diagnostic>& wrong) {
    auto opened = http::files::open(from.root, {.prefix = r.uri, .not_found = from.not_found});
    if (!opened) {
        wrong.push_back(
            {.at = {},
             .problem = "cannot open '" + from.root.string() + "': " + opened.error().message(),
             .advice = ""});
        return;
    }
    routes_.push_back({.uri = r.uri,
                       .files = std::make_shared<http::files const>(*std::move(opened)),
                       .proxy = nullptr,
                       .takes_turns = r.admission});
}

void route_table::open(gateway::route const& r, surroundings const& with, route_table const* before,
                       std::vector<diagnostic>& wrong) {
    if (auto const* const s = std::get_if<serve_from>(&r.target)) return open_files(r, *s, wrong);
    routes_.push_back({.uri = r.uri,
                       .files = nullptr,
                       .proxy = nullptr,  // until open_proxies()
                       .forward = std::get<forward_to>(r.target),
                       .takes_turns = r.admission});
    find_backends(routes_.back(), with, before, wrong);
}

void route_table::find_backends(route& of, surroundings const& with, route_table const* before,
                                std::vector<diagnostic>& wrong) {
    of.at.clear();
    for (backend const& b : of.forward.backends) {
        auto const had = before != nullptr ? before->address_of(b.where) : std::nullopt;
        auto where = look_up(b.where, with.names, had);
        if (where) {
            of.at.push_back(*where);
        } else {
            wrong.push_back(std::move(where.error()));
        }
    }
}

task<void> route_table::answer(http::exchange* x) const {
    return through_.access != nullptr ? answer_and_log(this, x) : answer(x, nullptr);
}

void route_table::note(http::refused_request const& r) const noexcept {
    if (through_.access != nullptr) write_refusal(*through_.access, through_.json, r);
}

task<void> route_table::answer_and_log(route_table const* by, http::exchange* x) {
    auto const line = std::make_shared<access_line>(by->through_.access, by->through_.json, *x);
    x->keep_until_end(line);
    co_await by->answer(x, &line->note);
}

task<void> route_table::answer(http::exchange* x, http::admission::visit* note) const {
    std::string_view const target = x->head().path;
    auto const at = route_of(target.substr(0, target.find('?')), routes_);
    if (!at) return refuse(x, 400, "the path could be read as that of two routes\n");
    if (*at == routes_.size()) return refuse(x, 404, "Not Found\n");
    route const& r = routes_[*at];
    task<void> inner = r.files != nullptr ? r.files->answer(x) : r.proxy->answer(x);
    if (through_.turns == nullptr || !r.takes_turns) return inner;
    return through_.turns->answer(x, std::move(inner), r.uri, note);
}

std::shared_ptr<net::ssl::context> route_table::tls() const noexcept {
    if (certificates_ == nullptr) return nullptr;
    return {certificates_, &certificates_->context()};
}

std::vector<route_table::backend_figures> route_table::backends() const {
    std::vector<backend_figures> all;
    for (route const& r : routes_) {
        if (r.proxy == nullptr) continue;
        for (http::proxy::figures const& f : r.proxy->measure()) {
            auto const same = std::ranges::find_if(
                all, [&](auto const& b) { return b.route == r.uri && b.address == f.address; });
            if (same == all.end()) {
                all.push_back({f, r.uri});
                continue;
            }
            same->weight += f.weight;
            same->requests += f.requests;
            same->connections += f.connections;
            same->failures += f.failures;
            same->set_aside = same->set_aside && f.set_aside;
        }
    }
    return all;
}

}  // namespace rondo::gateway
