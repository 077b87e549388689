// No signal allocates in order to wait, or to wake, counted.
//
// Two tasks take turns through a signal, a few times so that frames are there, then many times
// more; the count before and after is compared.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "rondo/core/frame_allocator.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/sync.hpp"
#include "support/counted_new.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::allocation_count;

constexpr int warm_up = 1000;  // some turns: a task whose waits are ready gives way now and then
constexpr int rounds = 1000;

// Awaits what `step(i)` gives, again and again; what happened after the first few.
template <class Step>
task<long> count(Step step, int how_often = warm_up + rounds) {
    allocation_count const c;
    long before = 0;
    for (int i = 0; i < how_often; ++i) {
        if (i == warm_up) before = c.count();
        auto waiting = step(i);
        if constexpr (std::is_void_v<detail::await_result_t<decltype(waiting)>>) {
            co_await std::move(waiting);
        } else {
            std::ignore = co_await std::move(waiting);
        }
    }
    co_return c.count() - before;
}

// With a partner that goes on as long as it is needed.
template <class Step, class Partner>
void expect_no_allocation(Step step, Partner other) {
    run_loop loop;
    auto first = spawn(loop, count(step)), second = spawn(loop, count(other, 10 * rounds));
    loop.run_ready();
    second.request_stop();
    loop.run_ready();
    ASSERT_TRUE(first.ended());
    EXPECT_EQ(first.blocking_join().value(), 0);
}

template <class Step>
void expect_no_allocation(Step step) {
    expect_no_allocation(step, [](int) { return yield(); });
}

TEST(SignalsAllocation, Notify) {
    notify there, back;
    stop_source source;
    stop_token const token = source.token();
    expect_no_allocation(
        [&](int) {
            there.notify_one();
            return back.notified();
        },
        [&](int) {
            back.notify_last();
            return there.notified();
        });
    expect_no_allocation(
        [&](int) {
            there.notify_waiters();
            there.notify_one();
            return back.notified_for(1h, token);
        },
        [&](int) {
            back.notify_one();
            return there.notified_until(clock::now() + 1h, token);
        });
}

TEST(SignalsAllocation, EnabledNotify) {
    notify there, back;
    std::optional<notified> change;
    expect_no_allocation(
        [&](int) {
            change.emplace(back.notified());
            change->enable();
            there.notify_one();
            return change->wait();
        },
        [&](int) {
            back.notify_one();
            return there.notified();
        });
}

TEST(SignalsAllocation, Barrier) {
    barrier b{2};
    expect_no_allocation([&](int) { return b.arrive_and_wait(); },
                         [&](int) { return b.arrive_and_wait_for(1h); });
    expect_no_allocation([&](int) { return b.arrive_and_wait_for(0ns); });
}

TEST(SignalsAllocation, Watch) {
    auto there = watch::channel(0), back = watch::channel(0);
    auto const more = [](int& v) { ++v; };
    expect_no_allocation(
        [&](int) {
            there.sender.send_modify(more);
            return back.receiver.changed();
        },
        [&](int) {
            back.sender.send_modify(more);
            return there.receiver.changed_for(1h);
        });
    expect_no_allocation([&](int) { return there.sender.closed_for(0ns); });
}

TEST(SignalsAllocation, SetOnce) {
    std::optional<set_once<int>> value;
    expect_no_allocation(
        [&](int) {
            value.emplace();
            return value->wait();
        },
        [&](int i) {
            std::ignore = value->set(i);
            return yield();
        });
}

// Who gives way there does so in a frame, which is recycled; but not under sanitizers.
TEST(SignalsAllocation, AOnceCellThatIsFull) {
    if (!this_thread_frame_stats().recycling) return;
    once_cell<int> cell{7};
    expect_no_allocation([&](int) { return cell.get_or_init([] { return 1; }); });
}

TEST(SignalsAllocation, Shutdown) {
    shutdown::notifier n;
    auto s = n.subscribe("a");
    stop_source stopped;
    stopped.request_stop();
    expect_no_allocation([&](int) { return s.receive_for(0ns); });
    expect_no_allocation([&](int) { return s.receive(stopped.token()); });
    s.acknowledge();
    expect_no_allocation([&](int) { return n.collect_acknowledgements(); });
}

TEST(SignalsAllocation, Cancellation) {
    cancellation_token const t;
    stop_source stopped;
    stopped.request_stop();
    expect_no_allocation([&](int) { return t.cancelled_for(0ns); });
    expect_no_allocation([&](int) { return t.cancelled(stopped.token()); });
    t.cancel();
    expect_no_allocation([&](int) { return t.cancelled(); });
}

}  // namespace
}  // namespace rondo
