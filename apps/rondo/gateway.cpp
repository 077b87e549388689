// A reload
//   R1  routes, certificates, names: a table for each server; fails without a trace. Of names that
//       are followed only their addresses
//   R2  addresses: those that are open already are taken over, the others are bound; for each of
//       them a door is opened. If one cannot be, those that were are closed again
//   R3  servers that are new start; those that stay change; those that are gone begin to end.
//       Nothing of it can fail
//   R4  what nobody uses any more is freed: what ended since the last time. Only here and in
//       stop(), as the end of a client or server waits.
#include "gateway.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "access_log.hpp"
#include "front.hpp"
#include "listening.hpp"
#include "monitor.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/http/server.hpp"
#include "route_table.hpp"

namespace rondo::gateway {

namespace {

using boost::asio::ip::tcp;

constexpr spdlog::level::level_enum log_levels[] = {spdlog::level::trace, spdlog::level::debug,
                                                    spdlog::level::info,  spdlog::level::warn,
                                                    spdlog::level::err,   spdlog::level::off};
// For names, and operators who reload: these wait for one another anyway.
constexpr std::size_t blocking_threads = 4;
// For who watches the end at the admin address.
constexpr clock::duration last_answers = std::chrono::milliseconds{100};

// How long before the end of the grace those in line are told.
clock::duration last_words(clock::duration grace) {
    return std::min<clock::duration>(grace / 4, std::chrono::seconds{1});
}

// One [[server]].
struct running_server {
    std::shared_ptr<front> in_front;
    listeners at;
};

// One of them, or the admin address, that is gone and ends.
struct departure {
    std::shared_ptr<front> in_front;
    std::unique_ptr<http::server> admin;
    join_handle<void> end;
};

// Which accept what comes to these addresses.
std::expected<http::open_doors, diagnostic> open_doors(
    runtime& rt, listeners const& at, std::shared_ptr<boost::asio::ssl::context> const& tls = {},
    std::vector<http::network> const& proxies = {}) {
    std::vector<http::server_options::door> all;
    for (auto const& l : at) all.push_back({l->asked_for(), tls, l->descriptor(), proxies});
    auto opened = http::open_doors::at(rt, all);
    if (opened) return *std::move(opened);
    http::listen_error const& e = opened.error();
    return std::unexpected{
        diagnostic{{}, "cannot accept at " + to_string(e.address) + ": " + e.reason, ""}};
}

// Addresses that are open: each is taken once.
class open_addresses {
  public:
    void add(listeners const& some) { all_.insert(all_.end(), some.begin(), some.end()); }

    std::expected<std::shared_ptr<listening>, std::string> take(tcp::endpoint const& where) {
        auto const found =
            std::ranges::find_if(all_, [&](auto const& l) { return l->asked_for() == where; });
        if (found == all_.end()) return listening::at(where);
        auto taken = std::move(*found);
        all_.erase(found);
        return taken;
    }

  private:
    listeners all_;
};

task<void> leave(http::server* s, clock::duration grace) { (void)co_await s->stop(grace); }

task<void> leave(front* f, clock::duration grace, std::shared_ptr<spdlog::logger> log) {
    std::size_t const cut = co_await f->server().stop(grace);
    if (cut == 0) co_return;
    log->warn("server {}: the grace is over: {} requests were cut off",
              f->routes()->made_from().name, cut);
}

void end_now(std::optional<join_handle<void>>& t) {
    if (!t) return;
    t->request_stop();
    (void)t->blocking_join();
    t.reset();
}

// Names are asked for once: a name server may give each who asks another order, and all routes to a
// name go to the same of its addresses.
resolver asking_once(resolver const& by) {
    using answer = std::pair<address, std::expected<tcp_addresses, std::string>>;
    return [&by, answers = std::vector<answer>{}](address const& a) mutable {
        auto const known = std::ranges::find(answers, a, &answer::first);
        return known != answers.end() ? known->second : answers.emplace_back(a, by(a)).second;
    };
}

bool share_an_address(listeners const& a, listeners const& b) {
    return std::ranges::any_of(a, [&](auto const& l) { return std::ranges::count(b, l) != 0; });
}

}  // namespace

struct gateway::state {
    using tables = std::vector<std::shared_ptr<route_table>>;
    using fronts = std::vector<std::shared_ptr<front>>;
    // What a configuration needs, before anything is changed.
    struct plan {
        struct server {
            std::shared_ptr<route_table> routes;
            listeners at = {};
            http::open_doors doors = {};
            std::shared_ptr<front> same = {};  // null: it is new
        };
        std::vector<server> servers;
        listeners admin_at;
        http::open_doors admin_doors;
    };

    state(config c, std::shared_ptr<spdlog::logger> l, name_service n)
        : settings(std::move(c)),
          log(std::move(l)),
          access_lines(lines_on_stdout(log)),
          names(std::move(n)),
          watcher([this] { return read(); }),
          desk(rt, watcher, [this] { return draining.load(std::memory_order_relaxed); }) {}

    reception receive_by(config const& c);
    std::expected<tables, std::vector<diagnostic>> open_routes(config const& c, resolver const& by);
    std::expected<tables, std::vector<diagnostic>> look_up_again(resolver const& by);
    std::expected<plan, diagnostic> bind(config const& c, tables routes);
    std::shared_ptr<front> same_as(listeners const& at, plan const& so_far) const;
    void apply(plan p, config const& c);
    void apply_admin(listeners at, http::open_doors doors, config const& c);
    std::expected<void, std::vector<diagnostic>> change_to(
        config const& c, std::expected<tables, std::vector<diagnostic>> routes);
    tables current_routes() const;
    bool follow_names();
    task<void> keep_following();
    void start_leaving(std::shared_ptr<front> const& f, clock::duration grace);
    void say_where() const;
    void forget_what_ended();
    fronts all_fronts() const;
    std::shared_ptr<http::admission> waiting_line() const;
    task<std::unique_ptr<readings>> read() const;
    task<void> close_lines(clock::duration after) const;
    // By the grace of the configuration, if it is not said.
    std::size_t end(std::optional<clock::duration> within = {});

    config settings;
    std::shared_ptr<spdlog::logger> log;
    std::shared_ptr<spdlog::sinks::sink> const access_lines;
    name_service const names;
    time_point const since = clock::now();
    std::atomic<bool> draining{false};
    std::atomic<std::uint64_t> version{1};
    std::atomic<std::uint64_t> refused{0};

    std::mutex asking;        // names are looked up; who has it only tries the next
    std::mutex control;       // one start or reload at a time, and none of them while it ends
    mutable std::mutex lock;  // of the servers, for those who only look
    runtime rt{{.blocking_threads = blocking_threads}};
    std::shared_ptr<http::admission> turns;  // null: nobody waits
    tables prepared;                         // until start()
    tables retired;                          // routes that requests may still use
    std::vector<running_server> servers;
    std::vector<departure> departures;
    monitor watcher;
    admin desk;
    std::optional<join_handle<void>> watching;
    std::optional<join_handle<void>> following;
    listeners admin_at;
    std::unique_ptr<http::server> admin_server;
};

// --- R1, R2 ------------------------------------------------------------------------------------

// Who waits in line goes on to wait there: the line is the same one, with other limits (R3). If
// turns are new there is a new line, which is kept if it comes to R3.
reception gateway::state::receive_by(config const& c) {
    reception r;
    if (c.admission) {
        r.turns = turns != nullptr ? turns
                                   : std::make_shared<http::admission>(*c.admission, rt.workers());
    }
    if (c.access != access_log::off) {
        r.access = std::make_shared<spdlog::logger>("access", access_lines);
        r.json = c.access == access_log::json;
    }
    return r;
}

auto gateway::state::open_routes(config const& c, resolver const& by)
    -> std::expected<tables, std::vector<diagnostic>> {
    tables made;
    std::vector<diagnostic> wrong;
    std::set<http::proxy const*> taken;
    reception const through = receive_by(c);
    surroundings const with{rt, log, asking_once(by)};
    for (server_config const& s : c.servers) {
        // What stays is found by address later; here it is enough that names are rarely changed.
        std::shared_ptr<route_table> before;
        for (running_server const& old : servers) {
            auto const routes = old.in_front->routes();
            auto const& was = routes->made_from().listen;
            bool const same = std::ranges::any_of(
                s.listen, [&was](address const& a) { return std::ranges::count(was, a) != 0; });
            if (same) before = routes;
            if (same) break;
        }
        made.push_back(route_table::open(s, through, with, {before.get(), taken}, wrong));
    }
    if (!wrong.empty()) return std::unexpected{std::move(wrong)};
    return made;
}

auto gateway::state::bind(config const& c, tables routes) -> std::expected<plan, diagnostic> {
    plan p;
    open_addresses open;
    for (running_server const& s : servers) open.add(s.at);
    open.add(admin_at);
    auto const take = [&open](std::vector<address> const& all,
                              listeners& to) -> std::optional<diagnostic> {
        for (address const& a : all) {
            auto const where = look_up(a);
            if (!where) return where.error();
            auto bound = open.take(*where);
            if (!bound) {
                return diagnostic{
                    a.at, "cannot listen at " + to_string(*where) + ": " + bound.error(), ""};
            }
            to.push_back(*std::move(bound));
        }
        return std::nullopt;
    };
    for (auto& table : routes) {
        plan::server s{.routes = std::move(table)};
        server_config const& from = s.routes->made_from();
        if (auto wrong = take(from.listen, s.at)) return std::unexpected{*wrong};
        auto doors = open_doors(rt, s.at, s.routes->tls(), from.proxies);
        if (!doors) return std::unexpected{std::move(doors.error())};
        s.doors = *std::move(doors);
        s.same = same_as(s.at, p);
        p.servers.push_back(std::move(s));
    }
    if (c.admin) {
        if (auto wrong = take(c.admin->listen, p.admin_at)) return std::unexpected{*wrong};
        auto doors = open_doors(rt, p.admin_at);
        if (!doors) return std::unexpected{std::move(doors.error())};
        p.admin_doors = *std::move(doors);
    }
    return p;
}

std::shared_ptr<front> gateway::state::same_as(listeners const& at, plan const& so_far) const {
    for (running_server const& s : servers) {
        bool const free = std::ranges::count(so_far.servers, s.in_front, &plan::server::same) == 0;
        if (free && share_an_address(at, s.at)) return s.in_front;
    }
    return nullptr;
}

// --- R3 ----------------------------------------------------------------------------------------

void gateway::state::apply(plan p, config const& c) {
    auto const line = p.servers.empty() ? nullptr : p.servers.front().routes->through().turns;
    if (line != nullptr && line == turns) line->reconfigure(*c.admission);
    std::vector<running_server> next;
    for (plan::server& s : p.servers) {
        auto f = s.same;
        if (f == nullptr) f = std::make_shared<front>(rt, s.routes, std::move(s.doors), log);
        next.push_back({std::move(f), std::move(s.at)});
    }
    std::vector<running_server> before;
    {
        std::lock_guard const guard{lock};
        turns = line;
        before = std::exchange(servers, std::move(next));
    }
    // An address that is gone is closed by the last who accepts there, when its queue is empty.
    for (running_server& s : before) s.at.clear();
    for (plan::server& s : p.servers) {
        if (s.same == nullptr) continue;
        retired.push_back(s.same->routes());
        rt.block_on(s.same->change(s.routes, std::move(s.doors)));
    }
    for (running_server const& s : before) {
        bool const stays = std::ranges::count(servers, s.in_front, &running_server::in_front) != 0;
        if (!stays) start_leaving(s.in_front, c.shutdown_grace);
    }
    apply_admin(std::move(p.admin_at), std::move(p.admin_doors), c);
}

void gateway::state::apply_admin(listeners at, http::open_doors doors, config const& c) {
    if (c.admin) desk.ask_for(c.admin->token);  // else who is left is asked for the old one
    admin_at = std::move(at);
    if (admin_at.empty() && admin_server) {
        rt.block_on(admin_server->replace_doors({}));  // as start_leaving() does
        // Who asked for this reload gets an answer before it ends.
        auto end = rt.spawn(leave(admin_server.get(), c.shutdown_grace));
        std::lock_guard const guard{lock};
        departures.push_back({nullptr, std::move(admin_server), std::move(end)});
    } else if (!admin_at.empty()) {
        if (!admin_server) {
            http::server_options o;
            o.max_connections = admin::most_connections;
            admin_server = std::make_unique<http::server>(
                rt, std::move(o), [this](http::exchange* x) { return desk.answer(x); });
            (void)admin_server->start();
        }
        rt.block_on(admin_server->replace_doors(std::move(doors)));
        if (!watching) watching = rt.spawn(watcher.run());
    }
}

void gateway::state::start_leaving(std::shared_ptr<front> const& f, clock::duration grace) {
    rt.block_on(f->server().replace_doors({}));  // the next reload may want the addresses again
    retired.push_back(f->routes());
    auto end = rt.spawn(leave(f.get(), grace, log));
    std::lock_guard const guard{lock};
    departures.push_back({f, nullptr, std::move(end)});
}

// R4
void gateway::state::forget_what_ended() {
    std::vector<departure> gone;
    {
        std::lock_guard const guard{lock};
        auto const is_needed = [](departure const& d) {
            return !d.end.ended() || d.in_front.use_count() > 1;  // somebody looks at it
        };
        auto const others = std::ranges::partition(departures, is_needed);
        std::ranges::move(others, std::back_inserter(gone));
        departures.erase(others.begin(), others.end());
    }
    std::erase_if(retired, [](auto const& t) { return t.use_count() == 1; });
}

// R2 and R3, from a plain thread that has the control.
std::expected<void, std::vector<diagnostic>> gateway::state::change_to(
    config const& c, std::expected<tables, std::vector<diagnostic>> routes) {
    if (!routes) return std::unexpected{std::move(routes.error())};
    auto next = bind(c, *std::move(routes));
    if (!next) return std::unexpected{std::vector{std::move(next.error())}};
    apply(*std::move(next), c);
    return {};
}

// --- names -------------------------------------------------------------------------------------

auto gateway::state::current_routes() const -> tables {
    std::lock_guard const guard{lock};
    tables all;
    for (running_server const& s : servers) all.push_back(s.in_front->routes());
    return all;
}

// Files and certificates stay: what is half renewed just now must not keep a backend from being
// followed, nor be shown before somebody has asked for it.
auto gateway::state::look_up_again(resolver const& by)
    -> std::expected<tables, std::vector<diagnostic>> {
    tables made;
    std::vector<diagnostic> wrong;
    for (auto const& routes : current_routes()) {
        made.push_back(routes->look_up_again({rt, log, by}, wrong));
    }
    if (!wrong.empty()) return std::unexpected{std::move(wrong)};
    return made;
}

// Answers may take long: nobody who changes or ends the gateway waits for them, and if somebody has
// changed it meanwhile they are for nothing.
bool gateway::state::follow_names() {
    std::lock_guard const once{asking};
    if (draining) return false;
    std::uint64_t const seen = version;
    std::vector<std::pair<address, tcp_addresses>> known;
    resolver const ask = asking_once(names.ask);
    bool changed = false;
    for (auto const& routes : current_routes()) {
        for (address const& name : routes->names()) {
            if (draining) return false;  // the end waits for us, and for no further answer
            endpoint const had = routes->address_of(name).value();
            auto found = ask(name);
            if (!found || found->empty()) found = tcp_addresses{had};
            bool const lost = std::ranges::count(*found, had) == 0;
            if (lost) log->info("'{}' is not at {} any more", name.host, to_string(had));
            changed = changed || lost;
            known.emplace_back(name, *std::move(found));
        }
    }
    if (!changed) return false;
    std::unique_lock const guard{control, std::try_to_lock};
    if (!guard || draining || version != seen) return false;
    auto const by = [&](address const& a) -> std::expected<tcp_addresses, std::string> {
        auto const it = std::ranges::find(known, a, &decltype(known)::value_type::first);
        return it != known.end() ? it->second : names.ask(a);
    };
    forget_what_ended();
    auto const done = change_to(settings, look_up_again(by));
    if (!done) log->warn("names have other addresses, but {}", done.error().front().problem);
    return done.has_value();
}

task<void> gateway::state::keep_following() {
    for (;;) {
        co_await sleep_for(names.every);
        bool const some = std::ranges::any_of(current_routes(),
                                              [](auto const& t) { return !t->names().empty(); });
        if (!some) continue;
        try {
            auto asked = rt.spawn_blocking([this] { return follow_names(); });
            (void)co_await asked.get();
        } catch (std::exception const& e) {  // no thread or no memory, which there may be next time
            log->warn("cannot look names up: {}", e.what());
        }
    }
}

// --- figures -----------------------------------------------------------------------------------

gateway::state::fronts gateway::state::all_fronts() const {
    std::lock_guard const guard{lock};
    fronts all;
    for (running_server const& s : servers) all.push_back(s.in_front);
    for (departure const& d : departures) {
        if (d.in_front != nullptr && !d.end.ended()) all.push_back(d.in_front);
    }
    return all;
}

std::shared_ptr<http::admission> gateway::state::waiting_line() const {
    std::lock_guard const guard{lock};
    return turns;
}

task<std::unique_ptr<readings>> gateway::state::read() const {
    auto r = std::make_unique<readings>();
    r->since = since;
    r->config_version = version.load(std::memory_order_relaxed);
    r->reloads_refused = refused.load(std::memory_order_relaxed);
    r->draining = draining.load(std::memory_order_relaxed);
    if (auto const line = waiting_line()) r->turns = std::make_unique<turns_reading>(*line);
    fronts const all = all_fronts();
    for (auto const& f : all) {
        auto const routes = f->routes();
        server_config const& from = routes->made_from();
        // One that ends is not shown beside its successor, which has its name.
        if (std::ranges::count(r->servers, from.name, &server_reading::name) != 0) continue;
        auto report = co_await f->server().survey();
        server_reading one{
            from.name, {}, from.max_connections, std::move(report), routes->backends()};
        for (endpoint const& at : f->server().addresses()) one.addresses.push_back(to_string(at));
        r->servers.push_back(std::move(one));
    }
    r->at = clock::now();
    co_return r;
}

// --- the gateway -------------------------------------------------------------------------------

gateway::gateway(std::unique_ptr<state> s) noexcept : state_(std::move(s)) {}

gateway::~gateway() { (void)state_->end(clock::duration::zero()); }

std::expected<std::unique_ptr<gateway>, std::vector<diagnostic>> gateway::prepare(
    config c, std::shared_ptr<spdlog::logger> log, name_service names) {
    auto s = std::make_unique<state>(std::move(c), std::move(log), std::move(names));
    auto routes = s->open_routes(s->settings, s->names.ask);
    if (!routes) return std::unexpected{std::move(routes.error())};
    s->prepared = *std::move(routes);
    return std::unique_ptr<gateway>{new gateway{std::move(s)}};
}

void gateway::obey(commands c) { state_->desk.obey(std::move(c)); }

std::expected<void, std::string> gateway::start() {
    std::lock_guard const guard{state_->control};
    auto plan = state_->bind(state_->settings, std::move(state_->prepared));
    if (!plan) return std::unexpected{std::move(plan.error().problem)};
    state_->apply(*std::move(plan), state_->settings);
    state_->say_where();
    state_->following = state_->rt.spawn(state_->keep_following());
    return {};
}

void gateway::state::say_where() const {
    for (running_server const& s : servers) {
        for (endpoint const& at : s.in_front->server().addresses()) {
            log->info("server {} listens at {}", s.in_front->routes()->made_from().name,
                      to_string(at));
        }
    }
    if (!admin_server) return;
    for (endpoint const& at : admin_server->addresses()) {
        log->info("operators look at http://{}/", to_string(at));
    }
}

std::expected<std::uint64_t, std::vector<diagnostic>> gateway::reload(config c) {
    std::lock_guard const guard{state_->control};
    auto const refuse = [this](std::vector<diagnostic> why) {
        refused();
        return std::unexpected{std::move(why)};
    };
    if (state_->draining) return refuse({{{}, "the gateway ends", ""}});
    state_->forget_what_ended();
    auto changed = state_->change_to(c, state_->open_routes(c, state_->names.ask));
    if (!changed) return refuse(std::move(changed.error()));
    state_->log->set_level(log_levels[static_cast<std::size_t>(c.log)]);
    state_->settings = std::move(c);
    state_->say_where();
    return ++state_->version;
}

bool gateway::follow_names() { return state_->follow_names(); }

void gateway::refused() noexcept { ++state_->refused; }

std::vector<gateway::endpoint> gateway::addresses() const {
    std::lock_guard const guard{state_->lock};
    std::vector<endpoint> all;
    for (running_server const& s : state_->servers) {
        for (endpoint const& at : s.in_front->server().addresses()) all.push_back(at);
    }
    return all;
}

std::vector<gateway::endpoint> gateway::admin_addresses() const {
    std::lock_guard const guard{state_->control};
    return state_->admin_server ? state_->admin_server->addresses() : std::vector<endpoint>{};
}

std::size_t gateway::stop() { return state_->end(); }

// Who is in line then could not be answered any more, and is told so.
task<void> gateway::state::close_lines(clock::duration after) const {
    co_await sleep_for(after);
    tables all = retired;
    for (auto const& f : all_fronts()) all.push_back(f->routes());
    for (auto const& t : all) {
        if (t->through().turns != nullptr) t->through().turns->close();
    }
}

std::size_t gateway::state::end(std::optional<clock::duration> within) {
    {
        // After it nobody changes anything; who asks for it is told so, and does not wait for us.
        std::lock_guard const guard{control};
        draining = true;
    }
    clock::duration const grace = within.value_or(settings.shutdown_grace);
    std::optional telling = rt.spawn(close_lines(grace - last_words(grace)));
    for (running_server& s : servers) s.at.clear();  // closed when their queues are empty
    std::vector<task<std::size_t>> stopping;
    for (auto const& f : all_fronts()) stopping.push_back(f->server().stop(grace));
    std::size_t sum = 0;
    if (!stopping.empty()) {
        for (std::size_t const cut : rt.block_on(when_all(std::move(stopping)))) sum += cut;
    }
    end_now(telling);
    end_now(watching);
    end_now(following);
    if (admin_server) (void)admin_server->blocking_stop(last_answers);
    std::lock_guard const answered{asking};  // what goes on there uses us
    for (departure& d : departures) {
        // The grace that an admin address left with may be longer than this one.
        if (d.admin != nullptr) (void)d.admin->blocking_stop(last_answers);
        (void)d.end.blocking_join();
    }
    departures.clear();
    return sum;
}

}  // namespace rondo::gateway
