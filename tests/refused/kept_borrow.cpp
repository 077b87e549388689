// A borrowed value of a watch channel is locked for threads that want to change it. Where the
// result of a task is kept until somebody fetches it, another task may run in the same thread
// meanwhile and send: it would sleep for ever. (Each line has a type of its own, as an error is
// told once a type.)
#include <boost/asio/detached.hpp>

#include "rondo/asio/run.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/join_set.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/sync/watch.hpp"

namespace rondo {

using namespace std::chrono_literals;

constexpr auto right = [](auto const&) { return true; };

template <class T>
task<std::expected<watch::ref<T>, watch::changed_error>> borrow(watch::receiver<T> from) {
    co_return co_await from.wait_for(right);
}

task<void> directly(watch::receiver<int> rx) {
    auto const found = co_await rx.wait_for(right);
    auto const in_time = co_await with_timeout(rx.wait_for(right), 1h);
}

void refused_ones(run_loop& loop, runtime& threads) {
    (void)when_any(borrow(watch::channel('a').receiver), sleep_for(1h));          // refused
    (void)when_all(borrow(watch::channel(short{1}).receiver));                    // refused
    (void)block_on(loop, borrow(watch::channel(1).receiver));                     // refused
    (void)block_on(loop, with_timeout(borrow(watch::channel(1L).receiver), 1h));  // refused
    (void)spawn(loop, borrow(watch::channel(1U).receiver));                       // refused
    (void)threads.block_on(borrow(watch::channel(1.0).receiver));                 // refused
    asio::run(borrow(watch::channel(1.0F).receiver))(boost::asio::detached);      // refused
    auto job = [rx = watch::channel(true).receiver] { return rx.borrow(); };
    (void)threads.spawn_blocking(std::move(job));  // refused
}

}  // namespace rondo
