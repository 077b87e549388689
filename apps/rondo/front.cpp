#include "front.hpp"

#include <exception>
#include <utility>

namespace rondo::gateway {

namespace {

http::server_options options_for(server_config const& from) {
    http::server_options o;
    o.max_connections = from.max_connections;
    o.max_connections_per_address = from.max_connections_per_address.value_or(0);
    o.head_timeout = from.limits.header;
    o.idle_timeout = from.limits.idle;
    o.read_timeout = from.limits.idle;
    o.write_timeout = from.limits.idle;
    return o;
}

void log_failure(spdlog::logger& log, std::exception_ptr thrown) {
    try {
        std::rethrow_exception(std::move(thrown));
    } catch (std::exception const& e) {
        log.error("a request failed: {}", e.what());
    } catch (...) {
        log.error("a request failed");
    }
}

}  // namespace

front::front(runtime& rt, std::shared_ptr<route_table> routes, http::open_doors doors,
             std::shared_ptr<spdlog::logger> log)
    : rt_(rt), routes_(std::move(routes)), slots_(rt.workers()) {
    for (slot& s : slots_) s.now = share_of(routes_);
    http::server_options o = options_for(routes_->made_from());
    o.on_failure = [log = std::move(log)](std::exception_ptr thrown) {
        log_failure(*log, std::move(thrown));
    };
    o.on_refusal = [this](http::refused_request const& r) { slots_[r.worker].now->note(r); };
    server_ = std::make_unique<http::server>(
        rt, std::move(o), [this](http::exchange* x) { return answer(&slots_[x->worker()], x); });
    (void)server_->start();  // without an address there is nothing that could fail
    rt.block_on(server_->replace_doors(std::move(doors)));
}

// With a count of its own.
front::share front::share_of(std::shared_ptr<route_table> const& table) {
    return {table.get(), [table](route_table const*) {}};
}

task<void> front::answer(slot const* at, http::exchange* x) {
    share const held = at->now;
    co_await held->answer(x);
}

task<void> front::take(slot* at, share next) {
    at->now = std::move(next);
    co_return;
}

task<void> front::change(std::shared_ptr<route_table> routes, http::open_doors doors) {
    auto opened = server_->replace_doors(std::move(doors));
    co_await std::move(opened);
    co_await server_->adjust(options_for(routes->made_from()));
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        auto there = rt_.spawn_pinned_to(i, take(&slots_[i], share_of(routes)));
        (void)co_await there.join();
    }
    std::lock_guard const guard{lock_};
    routes_ = std::move(routes);
}

std::shared_ptr<route_table> front::routes() const {
    std::lock_guard const guard{lock_};
    return routes_;
}

}  // namespace rondo::gateway
