#include "rondo/http/balance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace rondo::http {
namespace {

using namespace std::chrono_literals;

constexpr time_point start{1000s};

std::string turns(balance& b, int n, time_point now = start) {
    std::string said;
    for (int i = 0; i < n; ++i) said += static_cast<char>('a' + b.next(now).index);
    return said;
}

TEST(Balance, GivesTurnsByWeightEvenlyInterleaved) {
    balance b{{3, 1}};
    std::string const said = turns(b, 8);
    EXPECT_EQ(std::ranges::count(said, 'a'), 6);
    EXPECT_EQ(said.find("bb"), std::string::npos);
    EXPECT_EQ(said.substr(0, 4), said.substr(4));
}

TEST(Balance, GivesNoTurnToTheWeightZero) {
    balance b{{1, 0, 1}};
    EXPECT_EQ(turns(b, 6).find('b'), std::string::npos);
    b.failed({0}, start);
    b.failed({2}, start);
    EXPECT_EQ(turns(b, 6).find('b'), std::string::npos);
    EXPECT_FALSE(b.other_than(0, start));
}

TEST(Balance, SetsAsideWhoFails) {
    balance b{{1, 1, 1}};
    b.failed({1}, start);
    EXPECT_TRUE(b.set_aside(1, start));
    std::string const said = turns(b, 12, start + 999ms);
    EXPECT_EQ(std::ranges::count(said, 'b'), 0);
    EXPECT_EQ(std::ranges::count(said, 'a'), 6);
}

TEST(Balance, SharesTheTurnsOfWhoFailsByWeight) {
    balance b{{100, 3, 1}};
    b.failed({0}, start);
    std::string const said = turns(b, 104 * 4);
    EXPECT_EQ(std::ranges::count(said, 'b'), 312);
    EXPECT_EQ(std::ranges::count(said, 'c'), 104);
}

TEST(Balance, TriesAgainWithOneRequest) {
    balance b{{1, 1}};
    b.failed({0}, start);
    int trials = 0;
    for (int i = 0; i < 10; ++i) {
        balance::turn const t = b.next(start + 1s);
        trials += t.trial ? 1 : 0;
        EXPECT_EQ(t.trial, t.index == 0);
    }
    EXPECT_EQ(trials, 1);
}

TEST(Balance, TakesBackWhoAnswers) {
    balance b{{1, 1}};
    b.failed({0}, start);
    b.succeeded({0, true});
    EXPECT_FALSE(b.set_aside(0, start));
    EXPECT_EQ(std::ranges::count(turns(b, 10), 'a'), 5);
}

TEST(Balance, DoublesThePauseOfWhoFailsAgain) {
    balance b{{1, 1}, {.first_pause = 1s, .longest_pause = 5s}};
    time_point now = start;
    b.failed({0}, now);
    for (auto const pause : {1s, 2s, 4s, 5s, 5s}) {
        EXPECT_TRUE(b.set_aside(0, now + pause - 1ms));
        EXPECT_FALSE(b.set_aside(0, now + pause));
        now += pause;
        balance::turn t = b.next(now);
        while (!t.trial) t = b.next(now);
        b.failed(t, now);
    }
    b.succeeded({0, true});
    b.failed({0}, now);
    EXPECT_FALSE(b.set_aside(0, now + 1s));
}

// As one does that begins each answer and breaks it off.
TEST(Balance, DoublesThePauseOfWhoseTrialFailsAfterAll) {
    balance b{{1, 1}, {.first_pause = 1s, .longest_pause = 5s}};
    time_point now = start;
    b.succeeded({0});
    b.failed({0}, now);
    for (auto const pause : {1s, 2s, 4s, 5s, 5s}) {
        EXPECT_TRUE(b.set_aside(0, now + pause - 1ms));
        EXPECT_FALSE(b.set_aside(0, now + pause));
        now += pause;
        balance::turn t = b.next(now);
        while (!t.trial) t = b.next(now);
        b.succeeded(t);
        EXPECT_FALSE(b.set_aside(0, now)) << "others may go there meanwhile";
        if (pause == 2s) b.failed({0}, now);  // and fail too
        b.failed(t, now);
    }
}

TEST(Balance, CountsAFailureOnceForManyRequestsInFlight) {
    balance b{{1, 1}};
    for (int i = 0; i < 50; ++i) b.failed({0}, start);
    EXPECT_TRUE(b.set_aside(0, start + 999ms));
    EXPECT_FALSE(b.set_aside(0, start + 1s));
}

TEST(Balance, TriesAgainAfterATrialThatNobodyReported) {
    balance b{{1}};
    b.failed({0}, start);
    EXPECT_TRUE(b.next(start + 1s).trial);
    EXPECT_FALSE(b.next(start + 1s).trial);
    EXPECT_TRUE(b.next(start + 2s).trial);
}

// One that takes requests and does not answer: each trial waits for as long as it may.
TEST(Balance, TriesLessAndLessOftenIfItHearsNothingOfItsTrials) {
    balance b{{1, 1}, {.first_pause = 1s, .longest_pause = 30s}};
    b.failed({0}, start);
    std::vector<balance::turn> trials;
    for (auto after = 0ms; after < 60s; after += 100ms) {
        balance::turn const t = b.next(start + after);
        if (t.index == 0) trials.push_back(t);
    }
    EXPECT_EQ(trials.size(), 6U);  // after 1, 2, 4, 8, 16 and 32 s
    // Each of them is a failure, and is counted once.
    for (balance::turn const& t : trials) b.failed(t, start + 60s);
    EXPECT_TRUE(b.set_aside(0, start + 90s - 1ms));
    b.succeeded(trials.back());
    EXPECT_FALSE(b.set_aside(0, start + 60s));
}

// The client went, perhaps.
TEST(Balance, TriesAgainAtOnceIfATrialShowedNothing) {
    balance b{{1, 1}};
    auto const trial = [&b](time_point now) {
        balance::turn t = b.next(now);
        while (!t.trial) t = b.next(now);
        return t;
    };
    b.failed({0}, start);
    for (int i = 0; i < 5; ++i) {
        balance::turn const t = trial(start + 1s);
        EXPECT_TRUE(b.set_aside(0, start + 1s));
        b.undecided(t);
        EXPECT_FALSE(b.set_aside(0, start + 1s));
    }
    b.failed(trial(start + 1s), start + 1s);
    EXPECT_TRUE(b.set_aside(0, start + 3s - 1ms)) << "the second failure";
    EXPECT_FALSE(b.set_aside(0, start + 3s));
    // What has been decided since stays so.
    balance::turn const late = trial(start + 3s);
    b.succeeded(late);
    b.undecided(late);
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(b.next(start + 3s).trial);
    b.undecided({0});
    EXPECT_FALSE(b.set_aside(0, start + 3s));
}

TEST(Balance, GivesTurnsAsUsualIfAllAreSetAside) {
    balance b{{1, 1}};
    b.failed({0}, start);
    b.failed({1}, start);
    std::string const said = turns(b, 10);
    EXPECT_EQ(std::ranges::count(said, 'a'), 5);
}

TEST(Balance, HasAnotherForASecondAttempt) {
    balance b{{1, 1, 1}};
    for (int i = 0; i < 5; ++i) EXPECT_NE(b.other_than(1, start)->index, 1U);
    b.failed({0}, start);
    EXPECT_EQ(b.other_than(1, start)->index, 2U);
    b.failed({2}, start);
    EXPECT_FALSE(b.other_than(1, start));
    EXPECT_TRUE(b.other_than(1, start + 1s)->trial);
    balance one{{1}};
    EXPECT_FALSE(one.other_than(0, start));
}

TEST(Balance, IsSharedByThreads) {
    balance b{{2, 1, 1}};
    std::array<std::array<int, 3>, 4> had{};
    {
        std::vector<std::jthread> threads;
        for (auto& mine : had) {
            threads.emplace_back([&b, &mine] {
                for (int i = 0; i < 1000; ++i) {
                    balance::turn const t = b.next(start);
                    ++mine[t.index];
                    b.succeeded(t);
                }
            });
        }
    }
    std::array<int, 3> sum{};
    for (auto const& mine : had) {
        for (std::size_t i = 0; i < 3; ++i) sum[i] += mine[i];
    }
    EXPECT_EQ(sum, (std::array{2000, 1000, 1000}));
}

TEST(Balance, LetsOneOfManyThreadsTry) {
    for (int round = 0; round < 100; ++round) {
        balance b{{1, 1}};
        b.failed({0}, start);
        std::atomic<int> trials{0};
        {
            std::vector<std::jthread> threads;
            for (int i = 0; i < 3; ++i) {
                threads.emplace_back([&] {
                    for (int k = 0; k < 4; ++k) trials += b.next(start + 1s).trial ? 1 : 0;
                });
            }
        }
        EXPECT_EQ(trials, 1);
    }
}

}  // namespace
}  // namespace rondo::http
