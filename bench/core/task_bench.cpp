// What running costs on one thread: awaiting a child, giving way, starting and joining, and two
// tasks that wake each other in turn. Against Boost.Asio's awaitable<> on an io_context, and for
// the child against a bare coroutine call, the floor.
//
// Both sides do the same: the same number of suspensions on one thread, no I/O, no timers.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>

#include "../support/ratio.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/core/when_all.hpp"

namespace {

namespace asio = boost::asio;
using rondo::bench::compare;
using rondo::bench::ns_per_operation;

constexpr std::size_t operations = 200'000;

// Runs an Asio coroutine to its end.
double run_asio(asio::awaitable<void> (*body)()) {
    asio::io_context context{1};
    asio::co_spawn(context, body(), asio::detached);
    return ns_per_operation(operations, [&] { context.run(); });
}

double run_rondo(rondo::task<void> (*body)()) {
    return ns_per_operation(operations, [&] { rondo::block_on(body()); });
}

// --- await a child ---

[[gnu::noinline]] rondo::task<std::size_t> child(std::size_t i) { co_return i; }
rondo::task<void> await_children() {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < operations; ++i) sum += co_await child(i);
    asm volatile("" ::"r"(sum));
}

[[gnu::noinline]] asio::awaitable<std::size_t> asio_child(std::size_t i) { co_return i; }
asio::awaitable<void> asio_await_children() {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < operations; ++i) sum += co_await asio_child(i);
    asm volatile("" ::"r"(sum));
}

// A coroutine that has nothing but a frame from malloc: create, resume, destroy.
struct bare {
    struct promise_type {
        bare get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
    std::coroutine_handle<> frame;
};
[[gnu::noinline]] bare bare_child(std::size_t& sum, std::size_t i) {
    sum += i;
    co_return;
}
double bare_children() {
    return ns_per_operation(operations, [] {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < operations; ++i) {
            bare const c = bare_child(sum, i);
            c.frame.resume();
            c.frame.destroy();
        }
        asm volatile("" ::"r"(sum));
    });
}

// --- give way ---

rondo::task<void> give_way() {
    for (std::size_t i = 0; i < operations; ++i) co_await rondo::yield();
}
asio::awaitable<void> asio_give_way() {
    auto const where = co_await asio::this_coro::executor;
    for (std::size_t i = 0; i < operations; ++i) co_await asio::post(where, asio::use_awaitable);
}

// --- start and join ---

rondo::task<void> start_and_join() {
    rondo::environment const& env = co_await rondo::this_environment();
    for (std::size_t i = 0; i < operations; ++i) {
        auto handle = rondo::spawn(*env.where, child(i));
        (void)co_await handle.join();
    }
}
asio::awaitable<void> asio_start_and_join() {
    auto const where = co_await asio::this_coro::executor;
    for (std::size_t i = 0; i < operations; ++i) {
        co_await asio::co_spawn(where, asio_child(i), asio::use_awaitable);
    }
}

// --- wake each other ---

// At most one thing to take; who finds nothing waits.
class baton : rondo::wait_queue {
  public:
    class take_op : public rondo::waiter {
      public:
        explicit take_op(baton& from) noexcept : waiter(from), from_(from) {}
        bool ready() noexcept {
            std::lock_guard const guard{from_.lock()};
            return !from_.has_waiters() && std::exchange(from_.there_, false);
        }
        void take() noexcept {}
        void hand_on() noexcept { from_.put(); }

      private:
        baton& from_;
    };

    void put() noexcept {
        serve([this] { there_ = true; });
    }
    rondo::wait<take_op> take() noexcept { return rondo::wait{take_op{*this}}; }

  private:
    bool grant(rondo::waiter&) noexcept override { return std::exchange(there_, false); }
    bool there_ = false;
};

rondo::task<void> pass(baton& from, baton& to) {
    for (std::size_t i = 0; i < operations / 2; ++i) {
        co_await from.take();
        to.put();
    }
}
rondo::task<void> wake_each_other() {
    baton left, right;
    left.put();
    co_await rondo::when_all(pass(left, right), pass(right, left));
}

using channel = asio::experimental::channel<void(boost::system::error_code)>;
asio::awaitable<void> asio_pass(channel& from, channel& to) {
    for (std::size_t i = 0; i < operations / 2; ++i) {
        co_await from.async_receive(asio::use_awaitable);
        (void)to.try_send(boost::system::error_code{});
    }
}
double asio_wake_each_other() {
    asio::io_context context{1};
    channel left{context, 1}, right{context, 1};
    (void)left.try_send(boost::system::error_code{});
    asio::co_spawn(context, asio_pass(left, right), asio::detached);
    asio::co_spawn(context, asio_pass(right, left), asio::detached);
    return ns_per_operation(operations, [&] { context.run(); });
}

}  // namespace

int main() {
    compare("core", "await_child", {"rondo", [] { return run_rondo(await_children); }},
            {{"asio_awaitable", [] { return run_asio(asio_await_children); }},
             {"bare_coroutine", bare_children}});
    compare("core", "yield_ct", {"rondo", [] { return run_rondo(give_way); }},
            {{"asio_post", [] { return run_asio(asio_give_way); }}});
    compare("core", "spawn_join_ct", {"rondo", [] { return run_rondo(start_and_join); }},
            {{"asio_co_spawn", [] { return run_asio(asio_start_and_join); }}});
    compare("core", "wake_each_other_ct", {"rondo", [] { return run_rondo(wake_each_other); }},
            {{"asio_channel", asio_wake_each_other}});
}
