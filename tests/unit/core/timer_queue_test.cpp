// timer_queue and the services over it; the order of timers is tested with the wheel itself.
#include "rondo/core/timer_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/parker.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;

class timer_call final : public timer {
  public:
    explicit timer_call(std::function<void()> f)
        : timer([](timer& t) noexcept { static_cast<timer_call&>(t).function_(); }),
          function_(std::move(f)) {}

  private:
    std::function<void()> function_;
};

constexpr time_point start{1h};

TEST(TimerQueue, FiresWhatIsDueAndNothingElse) {
    timer_queue queue{1ms, start};
    std::vector<int> fired;
    timer_call one{[&] { fired.push_back(1); }}, two{[&] { fired.push_back(2); }};
    queue.add(two, start + 2ms);
    queue.add(one, start + 1ms);
    EXPECT_EQ(queue.fire_due(start), 0U);
    EXPECT_EQ(queue.fire_due(start + 1ms), 1U);
    EXPECT_EQ(queue.fire_due(start + 1h), 1U);
    EXPECT_EQ(fired, (std::vector{1, 2}));
    EXPECT_EQ(queue.next(), std::nullopt);
}

TEST(TimerQueue, CancelSaysWhetherItWasInTime) {
    timer_queue queue{1ms, start};
    int fired = 0;
    timer_call t{[&] { ++fired; }};
    EXPECT_FALSE(queue.cancel(t)) << "it was never added";
    queue.add(t, start + 1ms);
    EXPECT_TRUE(queue.cancel(t));
    queue.fire_due(start + 1h);
    EXPECT_EQ(fired, 0);
    queue.add(t, start + 2h);
    queue.fire_due(start + 2h);
    EXPECT_FALSE(queue.cancel(t));
    EXPECT_EQ(fired, 1);
}

TEST(TimerQueue, AFireMayCancelItselfAndOthersThatAreDueToo) {
    timer_queue queue{1ms, start};
    int fired = 0;
    timer_call later{[&] { ++fired; }};
    std::unique_ptr<timer_call> first;
    first = std::make_unique<timer_call>([&] {
        ++fired;
        EXPECT_FALSE(queue.cancel(*first)) << "it is firing, and does not wait for itself";
        EXPECT_TRUE(queue.cancel(later));
    });
    queue.add(*first, start + 1ms);
    queue.add(later, start + 1ms);
    EXPECT_EQ(queue.fire_due(start + 1ms), 1U);
    EXPECT_EQ(fired, 1);
}

TEST(TimerQueue, AFireMayAddOthersAndHoldsNoLock) {
    timer_queue queue{1ms, start};
    std::vector<int> fired;
    timer_call second{[&] { fired.push_back(2); }};
    timer_call first{[&] {
        fired.push_back(1);
        queue.add(second, start);
        EXPECT_TRUE(queue.next().has_value());
    }};
    queue.add(first, start + 1ms);
    EXPECT_EQ(queue.fire_due(start + 1ms), 2U);
    EXPECT_EQ(fired, (std::vector{1, 2}));
}

TEST(TimerQueue, AddSaysWhenTheDriverMustLookEarlierThanItMeantTo) {
    timer_queue queue{1ms, start};
    timer_call a{[] {}}, b{[] {}}, c{[] {}}, d{[] {}};
    EXPECT_TRUE(queue.add(a, start + 50ms)) << "the driver meant to sleep for ever";
    ASSERT_TRUE(queue.next().has_value());
    EXPECT_FALSE(queue.add(b, start + 60ms));
    EXPECT_TRUE(queue.add(c, start + 10ms));
    EXPECT_FALSE(queue.add(d, start + 20ms)) << "it was woken for the other one already";
    EXPECT_EQ(queue.next(), start + 10ms);
    for (timer_call* t : {&a, &b, &c, &d}) EXPECT_TRUE(queue.cancel(*t));
}

// A driver that sleeps until next(), as run_loop's and the default timers' do.
class driver {
  public:
    driver() : thread_([this] { run(); }) {}
    ~driver() {
        ending_ = true;
        parker_.unpark();
        thread_.join();
    }
    void add(timer& t, time_point at) {
        if (queue_.add(t, at)) parker_.unpark();
    }
    bool cancel(timer& t) { return queue_.cancel(t); }

  private:
    void run() {
        while (!ending_) {
            queue_.fire_due(clock::now());
            (void)parker_.park_until(queue_.next().value_or(time_point::max()));
        }
    }

    timer_queue queue_{100us, clock::now()};
    parker parker_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

TEST(TimerQueueStress, EveryTimerIsFiredOnceOrCancelledNeverBothAndGoneAfterwards) {
    std::atomic<int> fired{0};
    std::atomic<int> cancelled{0};
    constexpr int threads = 3, each = 2000;
    {
        driver d;
        std::vector<std::thread> users;
        for (int u = 0; u < threads; ++u) {
            users.emplace_back([&, u] {
                for (int i = 0; i < each; ++i) {
                    int calls = 0;  // plain: a call that overlaps the read below is a race
                    timer_call t{[&calls, &fired] {
                        ++calls;
                        ++fired;
                    }};
                    d.add(t, clock::now() + std::chrono::microseconds{(i * 37 + u) % 200});
                    for (int spin = (i * 7919) % 300; spin > 0; --spin)
                        std::atomic_signal_fence(std::memory_order_seq_cst);
                    bool const in_time = d.cancel(t);
                    EXPECT_EQ(calls, in_time ? 0 : 1);
                    if (in_time) ++cancelled;
                }
            });
        }
        for (auto& u : users) u.join();
    }
    EXPECT_EQ(fired + cancelled, threads * each);
}

TEST(DefaultTimers, FireOnAThreadOfTheirOwn) {
    timer_service& timers = default_timers();
    EXPECT_EQ(&timers, &default_timers());
    parker done;
    std::thread::id fired_on;
    timer_call t{[&] {
        fired_on = std::this_thread::get_id();
        done.unpark();
    }};
    time_point const deadline = timers.now() + 2ms;
    timers.add(t, deadline);
    done.park();
    EXPECT_GE(clock::now(), deadline);
    EXPECT_NE(fired_on, std::this_thread::get_id());
    EXPECT_FALSE(timers.cancel(t));
}

TEST(DefaultTimers, AnEarlierTimerOvertakesALaterOne) {
    timer_service& timers = default_timers();
    parker done;
    timer_call late{[] {}}, early{[&] { done.unpark(); }};
    timers.add(late, timers.now() + 1h);
    timers.add(early, timers.now());
    done.park();
    EXPECT_TRUE(timers.cancel(late));
    EXPECT_FALSE(timers.cancel(early));
}

}  // namespace
}  // namespace rondo
