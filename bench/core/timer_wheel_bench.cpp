// 100 000 timers: armed and cancelled (timeouts that do not strike, the usual fate), pushed further
// out (idle connections), fired over a second, fired all at once. Against a std::multimap, which is
// what one writes first, and boost::asio::steady_timer, a binary heap with an operation object for
// each wait, which is what we would otherwise use.
//
// All contenders see the same deadlines. Those to be fired lie in the past second, so that Asio,
// which reads the clock itself, finds them due; our wheel begins before them and so deals them out
// through its levels as it would in real time.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "../support/ratio.hpp"
#include "rondo/core/timer_wheel.hpp"

namespace {

using namespace std::chrono_literals;
using rondo::timer_node;
using rondo::timer_wheel;
using rondo::bench::contender;
using rondo::bench::ns_per_operation;
using time_point = timer_wheel::time_point;
using std::chrono::nanoseconds;

constexpr std::size_t timers = 100'000;
constexpr std::size_t rounds = 9;

struct plan {
    time_point start;  // no deadline lies before
    std::vector<time_point> deadlines;
    std::vector<std::size_t> order;  // in which they are cancelled or pushed out
};

// Deadlines from start to start + spread, at random.
plan make_plan(time_point start, nanoseconds spread) {
    std::mt19937_64 random(1);
    plan p{start, std::vector<time_point>(timers), std::vector<std::size_t>(timers)};
    for (time_point& deadline : p.deadlines) {
        deadline = start + nanoseconds(static_cast<std::int64_t>(
                               random() % static_cast<std::uint64_t>(spread.count() + 1)));
    }
    std::iota(p.order.begin(), p.order.end(), std::size_t{0});
    std::ranges::shuffle(p.order, random);
    return p;
}

class wheel_timers {
  public:
    wheel_timers(plan const& p, nanoseconds tick)
        : plan_(p), nodes_(timers), wheel_(tick, p.start) {}

    void arm_all() {
        for (std::size_t i = 0; i < timers; ++i) {
            wheel_.insert(nodes_[i], plan_.deadlines[i]);
        }
    }
    void cancel_all() {
        for (std::size_t i : plan_.order) {
            wheel_.cancel(nodes_[i]);
        }
    }
    void push_out_all() {
        for (std::size_t i : plan_.order) {
            wheel_.cancel(nodes_[i]);
            wheel_.insert(nodes_[i], plan_.deadlines[i] + 30s);
        }
    }
    std::size_t fire_all(time_point now) {
        std::size_t fired = 0;
        while (timer_node* node = wheel_.pop_expired(now)) {
            benchmark::DoNotOptimize(node);
            ++fired;
        }
        return fired;
    }

  private:
    plan const& plan_;
    std::deque<timer_node> nodes_;
    timer_wheel wheel_;
};

class map_timers {
  public:
    explicit map_timers(plan const& p) : plan_(p), places_(timers) {}

    void arm_all() {
        for (std::size_t i = 0; i < timers; ++i) {
            places_[i] = map_.emplace(plan_.deadlines[i], i);
        }
    }
    void cancel_all() {
        for (std::size_t i : plan_.order) {
            map_.erase(places_[i]);
        }
    }
    void push_out_all() {
        for (std::size_t i : plan_.order) {
            auto node = map_.extract(places_[i]);  // spares it the allocation
            node.key() += 30s;
            places_[i] = map_.insert(std::move(node));
        }
    }
    std::size_t fire_all(time_point now) {
        std::size_t fired = 0;
        while (!map_.empty() && map_.begin()->first <= now) {
            std::size_t which = map_.begin()->second;
            benchmark::DoNotOptimize(which);
            map_.erase(map_.begin());
            ++fired;
        }
        return fired;
    }

  private:
    plan const& plan_;
    std::multimap<time_point, std::size_t> map_;
    std::vector<decltype(map_)::iterator> places_;
};

class asio_timers {
  public:
    explicit asio_timers(plan const& p) : plan_(p) {
        for (std::size_t i = 0; i < timers; ++i) {
            timers_.emplace_back(context_);
        }
    }

    void arm_all() {
        for (std::size_t i = 0; i < timers; ++i) {
            wait(i, plan_.deadlines[i]);
        }
    }
    void cancel_all() {
        for (std::size_t i : plan_.order) {
            timers_[i].cancel();
        }
        run_ready();
    }
    void push_out_all() {
        for (std::size_t i : plan_.order) {
            wait(i, plan_.deadlines[i] + 30s);
        }
        run_ready();
    }
    std::size_t fire_all(time_point) {
        run_ready();
        return fired_;
    }

  private:
    void wait(std::size_t i, time_point deadline) {
        timers_[i].expires_at(deadline);  // cancels the wait before
        timers_[i].async_wait([this](boost::system::error_code error) { fired_ += error ? 0 : 1; });
    }
    void run_ready() {  // the handlers of cancelled waits run too
        context_.restart();
        context_.poll();
    }

    plan const& plan_;
    std::size_t fired_ = 0;
    boost::asio::io_context context_{1};
    std::deque<boost::asio::steady_timer> timers_;
};

template <typename Timers, typename... Args>
contender arm_and_cancel(char const* name, plan const& p, Args... args) {
    return {name, [&p, args...] {
                Timers t(p, args...);
                return ns_per_operation(timers, [&] {
                    t.arm_all();
                    t.cancel_all();
                });
            }};
}

template <typename Timers, typename... Args>
contender push_out(char const* name, plan const& p, Args... args) {
    return {name, [&p, args...] {
                Timers t(p, args...);
                t.arm_all();
                double const ns = ns_per_operation(timers, [&] { t.push_out_all(); });
                t.cancel_all();
                return ns;
            }};
}

template <typename Timers, typename... Args>
contender arm_and_fire(char const* name, plan const& p, Args... args) {
    return {name, [&p, args...] {
                Timers t(p, args...);
                std::size_t fired = 0;
                double const ns = ns_per_operation(timers, [&] {
                    t.arm_all();
                    fired = t.fire_all(p.start + 2s);
                });
                if (fired != timers) {
                    std::printf("%zu timers of %zu fired\n", fired, timers);
                    std::abort();
                }
                return ns;
            }};
}

}  // namespace

int main() {
    time_point const now = timer_wheel::clock::now();
    plan const ahead = make_plan(now + 60s, 60s);
    plan const past_second = make_plan(now - 2s, 1s);
    plan const one_moment = make_plan(now - 2s, 0s);
    nanoseconds const coarse = 1ms;
    nanoseconds const exact = 1ns;
    using rondo::bench::compare;

    compare("core", "timer_arm_cancel_1e5", arm_and_cancel<wheel_timers>("rondo", ahead, coarse),
            {arm_and_cancel<map_timers>("std_multimap", ahead),
             arm_and_cancel<asio_timers>("asio_steady_timer", ahead)},
            rounds);
    compare("core", "timer_push_out_1e5", push_out<wheel_timers>("rondo", ahead, coarse),
            {push_out<map_timers>("std_multimap", ahead),
             push_out<asio_timers>("asio_steady_timer", ahead)},
            rounds);
    compare("core", "timer_arm_fire_1e5", arm_and_fire<wheel_timers>("rondo", past_second, coarse),
            {arm_and_fire<map_timers>("std_multimap", past_second),
             arm_and_fire<asio_timers>("asio_steady_timer", past_second)},
            rounds);
    compare("core", "timer_arm_fire_1e5_exact",
            arm_and_fire<wheel_timers>("rondo", past_second, exact),
            {arm_and_fire<map_timers>("std_multimap", past_second)}, rounds);
    compare("core", "timer_arm_fire_1e5_together",
            arm_and_fire<wheel_timers>("rondo", one_moment, coarse),
            {arm_and_fire<map_timers>("std_multimap", one_moment),
             arm_and_fire<asio_timers>("asio_steady_timer", one_moment)},
            rounds);
}
