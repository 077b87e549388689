#include "gateway.hpp"

#include <boost/asio/io_context.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <variant>

#include "rondo/core/when_all.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/http/client.hpp"
#include "rondo/http/files.hpp"
#include "rondo/http/proxy.hpp"
#include "rondo/http/server.hpp"
#include "routes.hpp"
#include "tls.hpp"

namespace rondo::gateway {

namespace {

namespace net = boost::asio;
using net::ip::tcp;

std::string text_of(tcp::endpoint const& e) {
    std::ostringstream out;
    out << e;
    return out.str();
}

// An IPv4 address if there is one: what listens for a name often listens there only.
std::expected<tcp::endpoint, diagnostic> look_up(address const& a) {
    net::io_context context;
    tcp::resolver resolver{context};
    boost::system::error_code error;
    auto const found =
        resolver.resolve(a.host, std::to_string(a.port), tcp::resolver::numeric_service, error);
    if (error || found.empty()) {
        return std::unexpected{
            diagnostic{.at = a.at,
                       .problem = "cannot find '" + a.host + "': " + error.message(),
                       .advice = ""}};
    }
    for (auto const& entry : found) {
        if (entry.endpoint().protocol() == tcp::v4()) return entry.endpoint();
    }
    return found.begin()->endpoint();
}

// A route that can answer.
class open_route {
  public:
    open_route(std::string uri, http::files f) : uri_(std::move(uri)), target_(std::move(f)) {}
    open_route(std::string uri, std::unique_ptr<http::proxy> p)
        : uri_(std::move(uri)), target_(std::move(p)) {}

    bool has(std::string_view path) const noexcept { return matches(uri_, path); }
    task<void> answer(http::exchange* x) const {
        if (auto const* const f = std::get_if<http::files>(&target_)) return f->answer(x);
        return std::get<std::unique_ptr<http::proxy>>(target_)->answer(x);
    }

  private:
    std::string uri_;
    std::variant<http::files, std::unique_ptr<http::proxy>> target_;
};

task<void> no_route(http::exchange* x) {
    x->answer().status(404);
    x->answer().add("content-type", "text/plain; charset=utf-8");
    (void)co_await x->send("Not Found\n");
}

task<void> answer_by(std::vector<open_route> const* routes, http::exchange* x) {
    std::string_view const target = x->head().path;
    std::string_view const path = target.substr(0, target.find('?'));
    for (open_route const& r : *routes) {
        if (r.has(path)) return r.answer(x);
    }
    return no_route(x);
}

// What one [[server]] needs as long as it runs.
struct open_server {
    server_config made_from;
    std::unique_ptr<tls_certificates> certificates;
    std::unique_ptr<http::client> client;
    std::vector<open_route> routes;
    http::server_options options;
    std::unique_ptr<http::server> server;
};

}  // namespace

struct gateway::state {
    state(config c, std::shared_ptr<spdlog::logger> l)
        : settings(std::move(c)), log(std::move(l)) {}

    void prepare(server_config const& from);
    std::optional<open_route> open(route const& r, open_server& in);
    void found(diagnostic d) { wrong.push_back(std::move(d)); }

    config settings;
    std::shared_ptr<spdlog::logger> log;
    std::vector<diagnostic> wrong;
    runtime rt;
    std::vector<std::unique_ptr<open_server>> servers;
};

std::optional<open_route> gateway::state::open(route const& r, open_server& in) {
    if (auto const* const s = std::get_if<serve_from>(&r.target)) {
        auto opened = http::files::open(s->root, {.prefix = r.uri, .not_found = s->not_found});
        if (opened) return open_route{r.uri, *std::move(opened)};
        found({.at = {},
               .problem = "cannot open '" + s->root.string() + "': " + opened.error().message(),
               .advice = ""});
        return std::nullopt;
    }
    http::proxy_options o;
    for (backend const& b : std::get<forward_to>(r.target).backends) {
        auto where = look_up(b.where);
        if (where) {
            o.backends.push_back({*where, b.weight});
        } else {
            found(std::move(where.error()));
        }
    }
    if (!wrong.empty()) return std::nullopt;
    o.on_failure = [log = log.get()](tcp::endpoint const& at, http::failure const& f) {
        log->warn("backend {}: {}", text_of(at), f.reason);
    };
    return open_route{r.uri, std::make_unique<http::proxy>(*in.client, std::move(o))};
}

void gateway::state::prepare(server_config const& from) {
    auto s = std::make_unique<open_server>();
    s->made_from = from;
    if (!from.certificates.empty()) {
        auto loaded = tls_certificates::load(from.certificates);
        if (loaded) {
            s->certificates = *std::move(loaded);
        } else {
            for (diagnostic& d : loaded.error()) found(std::move(d));
        }
    }
    http::client_options c;
    c.connect_timeout = from.limits.connect;
    c.response_timeout = from.limits.response;
    s->client = std::make_unique<http::client>(rt, c);
    for (route const& r : from.routes) {
        if (auto opened = open(r, *s)) s->routes.push_back(*std::move(opened));
    }
    for (address const& a : from.listen) {
        auto where = look_up(a);
        if (!where) {
            found(std::move(where.error()));
            continue;
        }
        s->options.listen.push_back(
            {*where, s->certificates ? &s->certificates->context() : nullptr});
    }
    s->options.max_connections = from.max_connections;
    s->options.max_connections_per_address = from.max_connections_per_address.value_or(0);
    s->options.head_timeout = from.limits.header;
    s->options.idle_timeout = from.limits.idle;
    s->options.read_timeout = from.limits.idle;
    s->options.write_timeout = from.limits.idle;
    servers.push_back(std::move(s));
}

gateway::gateway(std::unique_ptr<state> s) noexcept : state_(std::move(s)) {}

gateway::~gateway() = default;

std::expected<std::unique_ptr<gateway>, std::vector<diagnostic>> gateway::prepare(
    config c, std::shared_ptr<spdlog::logger> log) {
    auto s = std::make_unique<state>(std::move(c), std::move(log));
    for (server_config const& from : s->settings.servers) s->prepare(from);
    if (!s->wrong.empty()) return std::unexpected{std::move(s->wrong)};
    return std::unique_ptr<gateway>{new gateway{std::move(s)}};
}

std::expected<void, std::string> gateway::start() {
    for (auto& s : state_->servers) {
        s->options.on_failure = [log = state_->log.get()](std::exception_ptr thrown) {
            try {
                std::rethrow_exception(std::move(thrown));
            } catch (std::exception const& e) {
                log->error("a request failed: {}", e.what());
            } catch (...) {
                log->error("a request failed");
            }
        };
        auto const* const routes = &s->routes;
        s->server = std::make_unique<http::server>(
            state_->rt, s->options, [routes](http::exchange* x) { return answer_by(routes, x); });
        auto const started = s->server->start();
        if (!started) {
            std::string why = "cannot listen at " + text_of(started.error().address) + ": " +
                              started.error().reason;
            for (auto& other : state_->servers) other->server.reset();
            return std::unexpected{std::move(why)};
        }
    }
    for (auto const& s : state_->servers) {
        for (endpoint const& at : s->server->addresses()) {
            state_->log->info("server {} listens at {}", s->made_from.name, text_of(at));
        }
    }
    return {};
}

std::vector<gateway::endpoint> gateway::addresses() const {
    std::vector<endpoint> all;
    for (auto const& s : state_->servers) {
        for (endpoint const& at : s->server->addresses()) all.push_back(at);
    }
    return all;
}

std::size_t gateway::stop() {
    std::vector<task<std::size_t>> stopping;
    for (auto& s : state_->servers) {
        stopping.push_back(s->server->stop(state_->settings.shutdown_grace));
    }
    std::size_t sum = 0;
    for (std::size_t const cut : state_->rt.block_on(when_all(std::move(stopping)))) sum += cut;
    return sum;
}

}  // namespace rondo::gateway
