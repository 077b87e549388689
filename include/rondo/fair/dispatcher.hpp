// dispatcher.hpp: takes tasks of a scheduler in turn and runs them, so many at a time.
//
//   fair::scheduler<request, std::string> queue;
//   fair::dispatcher<request, std::string> running{queue, pool, 64,
//                                                  [](auto next) { return serve(next); }};
//   ...
//   co_await running.drain();
//
// Guarantee      at most `in_flight` tasks run at a time, and that many if they are there. Tasks
//                are begun in the order in which the scheduler delivers them if the executor has
//                one thread; on several, two that are delivered at about the same time may begin in
//                either order. Queued tasks whose deadline passes end then, also if nothing else
//                happens.
// Executor       any: a runtime, a pool, a loop, a simulated world. Deadlines are found by its
//                timers, so the scheduler has the same clock: config::time is that of the world, or
//                of the loop, and nothing where both have the steady clock.
// Exceptions     of a task end that task alone; they are counted, and go to executor::unobserved().
// End            drain(): nothing new, what was accepted is run, then it is over. Or close the
//                scheduler immediately and drain: what is queued is returned, what runs ends.
//                request_stop() asks what runs to stop as well. The dispatcher must have ended
//                before it is destroyed, and the scheduler and the executor outlive it.
// Thread safety  everything may be called concurrently, but for the destructor; one drains.
// Cost           one coroutine for each task that may be in flight, made at the beginning, and what
//                the work itself needs.
// Example        examples/fair/async_dispatcher.cpp
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "rondo/core/assert.hpp"
#include "rondo/core/executor.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/fair/scheduler.hpp"

namespace rondo::fair {

template <class T, class Key = std::uint64_t>
class dispatcher {
  public:
    using queue = scheduler<T, Key>;
    using work = std::function<rondo::task<void>(typename queue::task)>;

    dispatcher(queue& from, executor& on, std::size_t in_flight, work run)
        : from_(from), on_(on), run_(std::move(run)) {
        RONDO_ASSERT(in_flight > 0, "a dispatcher runs at least one task at a time");
        RONDO_ASSERT(have_one_clock(from, on),
                     "a scheduler has the clock of its dispatcher's executor");
        // What can throw comes first: who runs then has a dispatcher to run for.
        std::vector<rondo::detail::unbegun<void>> lanes;
        lanes.reserve(in_flight + 1);
        lanes_.reserve(in_flight + 1);
        for (std::size_t i = 0; i < in_flight; ++i) {
            lanes.emplace_back(on, take_turns(), stop_.token());
        }
        lanes.emplace_back(on, watch_deadlines(), stop_.token());
        for (auto& lane : lanes) lanes_.push_back(lane.begin());
    }
    ~dispatcher() { RONDO_ASSERT(lanes_.empty(), "a dispatcher is drained before it goes"); }
    dispatcher(dispatcher const&) = delete;
    dispatcher& operator=(dispatcher const&) = delete;

    // Refuses new tasks, and ends when those that were accepted have. One that is stopped before
    // can be repeated.
    rondo::task<void> drain() {
        from_.close_drain();
        while (!lanes_.empty()) {
            (void)co_await lanes_.back().join();
            lanes_.pop_back();
        }
    }
    void blocking_drain() {
        from_.close_drain();
        for (; !lanes_.empty(); lanes_.pop_back()) (void)lanes_.back().blocking_join();
    }

    // Closes the scheduler immediately and asks what runs to stop; drain() waits for it.
    void request_stop() noexcept {
        from_.close_immediate();
        stop_.request_stop();
    }

    std::size_t in_flight() const noexcept {
        return in_flight_.load(std::memory_order_relaxed);  // a gauge
    }
    std::uint64_t completed() const noexcept {
        return completed_.load(std::memory_order_relaxed);  // a counter
    }
    std::uint64_t failed() const noexcept {
        return failed_.load(std::memory_order_relaxed);  // a counter
    }

  private:
    // As far as one can see: their times do not differ by more than a coarse clock does.
    static bool have_one_clock(queue const& from, executor& on) noexcept {
        constexpr std::chrono::seconds coarse{1};
        time_point const before = from.now();
        time_point const between = on.timers().now();
        return before - coarse <= between && between <= from.now() + coarse;
    }

    rondo::task<void> take_turns() {
        for (;;) {
            auto next = co_await from_.dequeue();
            if (!next) co_return;
            running const counted{in_flight_};
            try {
                rondo::task<void> one = run_(std::move(*next));
                co_await std::move(one);
                completed_.fetch_add(1, std::memory_order_relaxed);  // a counter
            } catch (...) {
                failed_.fetch_add(1, std::memory_order_relaxed);  // a counter
                on_.unobserved(std::current_exception());
            }
        }
    }

    // Holds a timer for the deadline that comes next.
    rondo::task<void> watch_deadlines() {
        for (;;) {
            time_point const next = from_.next_deadline().value_or(time_point::max());
            auto const earlier = co_await from_.earlier_deadline_until(next, next);
            if (from_.is_finished()) co_return;
            if (!earlier) from_.advance(from_.now());
        }
    }

    class running {
      public:
        explicit running(atomic<std::size_t>& count) noexcept : count_(count) {
            count_.fetch_add(1, std::memory_order_relaxed);  // a gauge
        }
        ~running() { count_.fetch_sub(1, std::memory_order_relaxed); }  // a gauge
        running(running const&) = delete;
        running& operator=(running const&) = delete;

      private:
        atomic<std::size_t>& count_;
    };

    queue& from_;
    executor& on_;
    work run_;
    stop_source stop_;
    std::vector<join_handle<void>> lanes_;
    atomic<std::size_t> in_flight_{0};
    atomic<std::uint64_t> completed_{0};
    atomic<std::uint64_t> failed_{0};
};

}  // namespace rondo::fair
