// Everything at once with real threads, for the sanitizers and for what only a machine's own
// timing finds. Seeded: the seed fixes what each actor does, not how they interleave.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <random>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "support/permits.hpp"
#include "support/seed.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::permits;

// A loop and the thread that runs it.
class loop_thread {
  public:
    loop_thread() : thread_([this] { loop.run(); }) {}
    ~loop_thread() {
        loop.finish();
        thread_.join();
    }
    loop_thread(loop_thread const&) = delete;
    loop_thread& operator=(loop_thread const&) = delete;

    run_loop loop;

  private:
    std::thread thread_;
};

// Lets two threads do something in the same instant, again and again.
class start_line {
  public:
    void reach() {
        int const mine = arrived_.fetch_add(1);
        int const both = mine / 2 * 2 + 2;
        for (int spins = 0; arrived_.load() < both; ++spins) {
            spins < 200 ? spin_pause() : std::this_thread::yield();
        }
    }

  private:
    std::atomic<int> arrived_{0};
};

// Two threads walk along a row of pools: one releases a permit into each, the other stops the
// first of the two tasks that wait there. They walk towards each other, and meet somewhere.
TEST(Stress, APermitGrantedInTheInstantOfAStopIsNotLost) {
    constexpr std::size_t rounds = 40, row = 100;
    struct place {
        permits pool{0};
        join_handle<void> first, second;
        explicit place(run_loop& loop)
            : first(spawn(loop, take(pool))), second(spawn(loop, take(pool))) {}
        static task<void> take(permits& p) { auto const got = co_await p.acquire(); }
    };
    loop_thread home;
    start_line line;
    std::deque<place> places;
    std::thread releases{[&] {
        for (std::size_t i = 0; i < rounds; ++i) {
            line.reach();
            for (place& p : places) p.pool.release();
            line.reach();
        }
    }};
    std::size_t stopped = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
        for (std::size_t j = 0; j < row; ++j) places.emplace_back(home.loop);
        while (!places.back().pool.awaited()) std::this_thread::yield();
        line.reach();
        for (auto p = places.rbegin(); p != places.rend(); ++p) p->first.request_stop();
        line.reach();
        for (place& p : places) {
            stopped += p.first.blocking_join().has_value() ? 0 : 1;
            EXPECT_TRUE(p.second.blocking_join().has_value()) << "it gets it in any case";
            EXPECT_EQ(p.pool.available(), 1U);
        }
        places.clear();
    }
    releases.join();
    std::printf("[ outcomes ] stopped %zu of %zu\n", stopped, rounds * row);
}

TEST(Stress, APermitGrantedInTheInstantOfATimeoutIsNotLost) {
    constexpr int rounds = 300;
    loop_thread home;
    for (int i = 0; i < rounds; ++i) {
        permits p{0};
        time_point const moment = clock::now() + 1ms;
        auto first = spawn(home.loop, [](permits& q, time_point until) -> task<bool> {
            auto const got = co_await q.acquire_until(1, until);
            co_return got.has_value();
        }(p, moment));
        std::thread second{[&] {
            auto const got = p.blocking_acquire_until(1, moment);
            (void)got;
        }};
        while (clock::now() < moment - 20us) spin_pause();  // real time is what meets here
        p.release();
        EXPECT_TRUE(first.blocking_join().has_value());
        second.join();
        EXPECT_EQ(p.available(), 1U);
        EXPECT_FALSE(p.awaited());
    }
}

// --- the whole vocabulary --------------------------------------------------------------------

constexpr std::size_t pool_size = 4;

struct world {
    permits shared{pool_size};
    std::atomic<std::size_t> held{0};
    std::atomic<std::uint64_t> served{0};
    stop_source token;  // asked for in the middle of the run
};

// Counts what is held, between an acquire and the release that its permit does.
class holding {
  public:
    holding(world& w, std::size_t n) : world_(w), count_(n) {
        EXPECT_LE(world_.held.fetch_add(n) + n, pool_size);
        ++world_.served;
    }
    ~holding() { world_.held.fetch_sub(count_); }
    holding(holding const&) = delete;
    holding& operator=(holding const&) = delete;

  private:
    world& world_;
    std::size_t count_;
};

std::chrono::microseconds some_time(std::minstd_rand& random) {
    return std::chrono::microseconds{random() % 2000};
}

task<void> hold(world& w, std::size_t n) {
    auto const got = co_await w.shared.acquire(n);
    holding const here{w, n};
    co_await yield();
}

task<void> one_operation(world& w, std::minstd_rand& random) {
    std::size_t const n = 1 + random() % pool_size;
    switch (random() % 6) {
        case 0:
            co_await hold(w, n);
            break;
        case 1: {
            auto const got = co_await w.shared.acquire(n, w.token.token());
            if (got) holding const here{w, n};
            break;
        }
        case 2: {
            auto const got = co_await w.shared.acquire_until(n, clock::now() + some_time(random));
            if (got) holding const here{w, n};
            break;
        }
        case 3:
            (void)co_await with_timeout(hold(w, n), some_time(random));
            break;
        case 4:
            (void)co_await when_any(hold(w, n), hold(w, 1), sleep_for(some_time(random)));
            break;
        default:
            (void)co_await when_all(hold(w, 1), hold(w, 2));
            break;
    }
}

task<void> actor(world& w, std::uint64_t seed, int operations) {
    std::minstd_rand random{static_cast<std::uint32_t>(seed)};
    for (int i = 0; i < operations; ++i) co_await one_operation(w, random);
}

void plain_thread(world& w, std::uint64_t seed, int operations) {
    std::minstd_rand random{static_cast<std::uint32_t>(seed)};
    for (int i = 0; i < operations; ++i) {
        std::size_t const n = 1 + random() % pool_size;
        if (random() % 2 == 0) {
            auto const got = w.shared.blocking_acquire(n);
            holding const here{w, n};
        } else {
            auto const got = w.shared.blocking_acquire_until(n, clock::now() + some_time(random),
                                                             w.token.token());
            if (got) holding const here{w, n};
        }
    }
}

// Spawns tasks on both loops and stops most of them somewhere on their way.
void stopper(world& w, run_loop& a, run_loop& b, std::uint64_t seed, int operations) {
    std::minstd_rand random{static_cast<std::uint32_t>(seed)};
    std::vector<join_handle<void>> victims;
    for (int i = 0; i < operations; ++i) {
        victims.push_back(spawn(i % 2 == 0 ? a : b, actor(w, random(), 20)));
        for (auto spin = random() % 2000; spin > 0; --spin) spin_pause();
        if (random() % 8 != 0) victims[random() % victims.size()].request_stop();
    }
    for (auto& v : victims) std::ignore = v.blocking_join();
}

TEST(Stress, ThreadsAndTasksOnTwoLoopsShareAPoolAndNothingIsLostNorGivenTwice) {
    std::uint64_t const seed = test::seed(20'240'607);
    world w;
    {
        std::array<loop_thread, 2> loops;
        constexpr int tasks = 6, threads = 3, operations = 400;
        std::vector<join_handle<void>> actors;
        for (std::uint64_t i = 0; i < tasks; ++i) {
            actors.push_back(spawn(loops[i % 2].loop, actor(w, seed + i, operations)));
        }
        std::vector<std::thread> others;
        for (std::uint64_t i = 0; i < threads; ++i) {
            others.emplace_back([&, i] { plain_thread(w, seed + 100 + i, operations); });
        }
        others.emplace_back([&] { stopper(w, loops[0].loop, loops[1].loop, seed + 200, 200); });
        while (w.served.load() < 100) std::this_thread::yield();
        w.token.request_stop();
        for (auto& t : others) t.join();
        for (auto& a : actors) EXPECT_TRUE(a.blocking_join().has_value());
    }
    std::printf("[ outcomes ] served %llu\n", static_cast<unsigned long long>(w.served.load()));
    EXPECT_EQ(w.held.load(), 0U);
    EXPECT_EQ(w.shared.available(), pool_size);
    EXPECT_FALSE(w.shared.awaited());
}

}  // namespace
}  // namespace rondo
