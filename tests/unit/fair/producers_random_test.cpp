// Producers that wait for room, at random: by themselves and in a when_any that they may lose, with
// consumers that take a task or give it back, deadlines, cancels, every policy and both closes.
// Nobody waits though there is room, the limits hold, and each accepted task ends once.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/fair/scheduler.hpp"
#include "support/manual_loop.hpp"
#include "support/seed.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;

using queue = scheduler<int, int>;

class run_of_producers {
  public:
    run_of_producers(std::uint64_t seed, backpressure when_full)
        : random_(seed),
          limits_(limits_for(when_full)),
          queue_(limits_, [this](auto, auto const& t) { ended(t); }) {}

    void step() {
        std::uint64_t const dice = below(100);
        if (dice < 30) {
            come();
        } else if (dice < 45) {
            offer();
        } else if (dice < 75) {
            if (auto const next = queue_.try_dequeue()) ended(*next);
        } else if (dice < 82) {
            think_again();
        } else if (dice < 87 && !handles_.empty()) {
            queue_.cancel(handles_[below(handles_.size())]);
        } else {
            loop_.pass(std::chrono::microseconds{below(20)});
        }
        if (below(3) == 0) settle();
    }
    void end() {
        settle();
        bool const drains = below(2) == 0;
        if (drains) {
            queue_.close_drain();
        } else {
            queue_.close_immediate();
        }
        loop_.run_ready();
        while (auto const next = queue_.try_dequeue()) ended(*next);
        notice();
        EXPECT_TRUE(waiting_.empty()) << "nobody told a producer of the end";
        EXPECT_TRUE(queue_.is_finished());
        EXPECT_EQ(queue_.stats().tenants_known, 0U);
        for (auto const& [id, t] : tasks_) {
            EXPECT_EQ(t.ends, t.accepted ? 1 : 0) << id << " of " << t.tenant;
        }
    }

  private:
    struct known {
        int tenant = 0;
        bool accepted = false;
        int ends = 0;
    };
    using result = enqueue_result<int>;
    using raced = std::variant<result, std::monostate>;

    config<int> limits_for(backpressure when_full) {
        config<int> c;
        c.time = &loop_.timers();
        c.max_global = 1 + below(6);
        c.max_per_tenant = 1 + below(3);
        c.quantum = 1 + below(5);
        c.when_full = when_full;
        return c;
    }
    std::uint64_t below(std::uint64_t n) { return random_() % n; }
    terms any_terms() {
        terms t{.cost = 1 + below(12), .priority = priority(below(3))};
        if (below(4) == 0) t.deadline = loop_.now() + std::chrono::microseconds{below(40)};
        return t;
    }
    int fresh(int tenant) {
        tasks_[++id_].tenant = tenant;
        return id_;
    }
    void ended(queue::task const& t) {
        ++tasks_[t.payload].ends;
        EXPECT_EQ(tasks_[t.payload].tenant, t.tenant);
    }

    void offer() {
        int const tenant = static_cast<int>(below(4));
        int const id = fresh(tenant);
        auto const h = queue_.enqueue_with_handle(tenant, id, any_terms());
        tasks_[id].accepted = h.has_value();
        if (h) handles_.push_back(*h);
    }
    void come() {
        int const tenant = static_cast<int>(below(4));
        int const id = fresh(tenant);
        auto const patience = std::chrono::microseconds{below(100)};
        bool const races = below(2) == 0;
        waiting_.emplace_back(id, spawn(loop_, races ? race(tenant, id, any_terms(), patience)
                                                     : wait(tenant, id, any_terms(), patience)));
    }
    rondo::task<bool> wait(int tenant, int id, terms t, clock::duration patience) {
        auto const got = co_await queue_.enqueue_wait_for(tenant, id, patience, t);
        co_return got.has_value();
    }
    rondo::task<bool> race(int tenant, int id, terms t, clock::duration patience) {
        auto winner = co_await when_any(queue_.enqueue_wait(tenant, id, t), sleep_for(patience));
        co_return winner.index() == 0 && std::get<0>(winner).has_value();
    }
    // A dequeue, or a producer, that finds what it wants and loses all the same.
    void think_again() {
        auto const nothing = []() -> rondo::task<void> { co_return; };
        if (below(2) == 0) {
            spawn(loop_, when_any(when_any(sleep_for(1h), queue_.dequeue()), nothing())).detach();
            return;
        }
        int const tenant = static_cast<int>(below(4));
        auto loses = queue_.enqueue_wait(tenant, fresh(tenant), any_terms());
        spawn(loop_, when_any(when_any(sleep_for(1h), std::move(loses)), nothing())).detach();
    }

    void notice() {
        std::erase_if(waiting_, [this](auto& one) {
            auto& [id, in] = one;
            if (!in.ended()) return false;
            tasks_[id].accepted = in.blocking_join().value();
            return true;
        });
    }
    void settle() {
        queue_.advance(loop_.now());  // what expires makes room
        loop_.run_ready();
        notice();
        std::map<int, std::size_t> live;
        std::size_t all = 0;
        std::size_t const queued = queue_.stats().queued;
        for (auto const& [id, t] : tasks_) {
            if (!t.accepted || t.ends != 0) continue;
            ++live[t.tenant];
            ++all;
        }
        EXPECT_EQ(queued, all);
        EXPECT_LE(all, limits_.max_global);
        for (auto const& [tenant, length] : live) EXPECT_LE(length, limits_.max_per_tenant);
        for (auto const& [id, in] : waiting_) {
            EXPECT_TRUE(all == limits_.max_global ||
                        live[tasks_[id].tenant] == limits_.max_per_tenant)
                << "nothing keeps " << id << " of " << tasks_[id].tenant << " from its place";
        }
    }

    std::mt19937_64 random_;
    test::manual_loop loop_;
    config<int> const limits_;
    std::map<int, known> tasks_;
    std::vector<handle> handles_;
    int id_ = 0;
    queue queue_;
    std::list<std::pair<int, join_handle<bool>>> waiting_;
};

class FairProducersAtRandom : public testing::TestWithParam<backpressure> {};

TEST_P(FairProducersAtRandom, NobodyWaitsThoughThereIsRoomAndEachTaskEndsOnce) {
    std::uint64_t const seed = test::seed(21);
    for (std::uint64_t i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed + i));
        run_of_producers run{seed + i, GetParam()};
        for (int n = 0; n < 400 && !testing::Test::HasFailure(); ++n) run.step();
        run.end();
    }
}

INSTANTIATE_TEST_SUITE_P(Policies, FairProducersAtRandom,
                         testing::Values(backpressure::reject, backpressure::drop_oldest,
                                         backpressure::drop_newest, backpressure::evict_longest,
                                         backpressure::wait));

}  // namespace
}  // namespace rondo::fair
