#include "rondo/core/timer_wheel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using rondo::timer_node;
using rondo::timer_wheel;
using time_point = timer_wheel::time_point;
using std::chrono::nanoseconds;

struct numbered : timer_node {
    explicit numbered(int n = 0) : number(n) {}
    int number;
};

constexpr time_point at(std::int64_t ns) { return time_point(nanoseconds(ns)); }

int pop_number(timer_wheel& wheel, time_point now) {
    timer_node* node = wheel.pop_expired(now);
    return node == nullptr ? -1 : static_cast<numbered*>(node)->number;
}

std::vector<int> pop_all(timer_wheel& wheel, time_point now) {
    std::vector<int> order;
    for (int n = pop_number(wheel, now); n != -1; n = pop_number(wheel, now)) {
        order.push_back(n);
    }
    return order;
}

TEST(TimerWheel, EmptyWheelHasNothingToWaitFor) {
    timer_wheel wheel(1ms, at(0));
    EXPECT_TRUE(wheel.empty());
    EXPECT_EQ(wheel.size(), 0U);
    EXPECT_FALSE(wheel.next_expiry().has_value());
    EXPECT_EQ(wheel.pop_expired(at(0)), nullptr);
    EXPECT_EQ(wheel.pop_expired(time_point::max()), nullptr);
}

TEST(TimerWheel, NodeComesOutAtItsDeadlineUnlinked) {
    timer_wheel wheel(1ns, at(100));
    timer_node node;
    wheel.insert(node, at(150));
    EXPECT_TRUE(node.linked());
    EXPECT_EQ(node.deadline, at(150));
    EXPECT_EQ(wheel.size(), 1U);
    EXPECT_EQ(wheel.pop_expired(at(149)), nullptr);
    EXPECT_EQ(wheel.pop_expired(at(150)), &node);
    EXPECT_FALSE(node.linked());
    EXPECT_TRUE(wheel.empty());
    EXPECT_EQ(wheel.pop_expired(at(150)), nullptr);
}

TEST(TimerWheel, DeadlineIsRoundedUpToTheTick) {
    timer_wheel wheel(1ms, at(500));
    numbered node;
    wheel.insert(node, at(500) + 2ms + 1ns);
    EXPECT_EQ(wheel.next_expiry(), at(500) + 3ms);
    EXPECT_EQ(wheel.pop_expired(at(500) + 3ms - 1ns), nullptr);
    EXPECT_EQ(wheel.pop_expired(at(500) + 3ms), &node);
}

TEST(TimerWheel, PastDeadlineIsDueAtOnce) {
    timer_wheel wheel(1ns, at(1000));
    numbered before_start(1);
    numbered before_now(2);
    numbered now(3);
    ASSERT_EQ(wheel.pop_expired(at(2000)), nullptr);
    wheel.insert(before_start, at(-5));
    wheel.insert(before_now, at(1500));
    wheel.insert(now, at(2000));
    ASSERT_TRUE(wheel.next_expiry().has_value());
    EXPECT_LE(*wheel.next_expiry(), at(2000));
    EXPECT_EQ(pop_all(wheel, at(2000)), (std::vector<int>{1, 2, 3}));
}

TEST(TimerWheel, TicksComeOutInOrderWhateverTheOrderOfInsertion) {
    timer_wheel wheel(1ns, at(0));
    numbered nodes[] = {numbered(0), numbered(1), numbered(2), numbered(3), numbered(4)};
    std::int64_t const deadlines[] = {70'000, 3, 64, 5'000'000'000, 63};
    for (int i = 0; i < 5; ++i) {
        wheel.insert(nodes[i], at(deadlines[i]));
    }
    EXPECT_EQ(pop_all(wheel, at(10'000'000'000)), (std::vector<int>{1, 4, 2, 0, 3}));
}

// The same tick is reached from three levels: the nodes are inserted far ahead, nearer, and last in
// the same group of 64.
TEST(TimerWheel, OneTickComesOutInOrderOfInsertionAlsoAcrossLevels) {
    timer_wheel wheel(1ns, at(0));
    numbered far(1);
    numbered nearer(2);
    numbered last(3);
    std::int64_t const deadline = 5 * 4096 + 17 * 64 + 9;
    wheel.insert(far, at(deadline));
    ASSERT_EQ(wheel.pop_expired(at(5 * 4096 + 1)), nullptr);
    wheel.insert(nearer, at(deadline));
    ASSERT_EQ(wheel.pop_expired(at(deadline - 1)), nullptr);
    wheel.insert(last, at(deadline));
    EXPECT_EQ(pop_all(wheel, at(deadline)), (std::vector<int>{1, 2, 3}));
}

TEST(TimerWheel, CancelTakesOutAndIsFalseTheSecondTime) {
    timer_wheel wheel(1ns, at(0));
    timer_node node;
    EXPECT_FALSE(wheel.cancel(node));
    wheel.insert(node, at(77));
    EXPECT_TRUE(wheel.cancel(node));
    EXPECT_FALSE(node.linked());
    EXPECT_FALSE(wheel.cancel(node));
    EXPECT_TRUE(wheel.empty());
    EXPECT_FALSE(wheel.next_expiry().has_value());
    EXPECT_EQ(wheel.pop_expired(at(1000)), nullptr);
}

TEST(TimerWheel, CancelOfOneLeavesItsNeighboursInTheSlot) {
    timer_wheel wheel(1ns, at(0));
    numbered first(1);
    numbered middle(2);
    numbered last(3);
    for (numbered* node : {&first, &middle, &last}) {
        wheel.insert(*node, at(1000));
    }
    EXPECT_TRUE(wheel.cancel(middle));
    EXPECT_EQ(pop_all(wheel, at(1000)), (std::vector<int>{1, 3}));
}

TEST(TimerWheel, CallbackMayCancelNodesDueAtTheSameMoment) {
    timer_wheel wheel(1ns, at(0));
    numbered first(1);
    numbered second(2);
    numbered third(3);
    numbered later(4);
    for (numbered* node : {&first, &second, &third}) {
        wheel.insert(*node, at(10));
    }
    wheel.insert(later, at(11));
    ASSERT_EQ(pop_number(wheel, at(20)), 1);
    EXPECT_TRUE(wheel.cancel(second));  // both are in the due list by now
    EXPECT_TRUE(wheel.cancel(third));
    EXPECT_FALSE(wheel.cancel(first));
    EXPECT_EQ(wheel.size(), 1U);
    EXPECT_EQ(pop_number(wheel, at(20)), 4);
    EXPECT_EQ(pop_number(wheel, at(20)), -1);
}

TEST(TimerWheel, CallbackMayReinsertItsOwnNode) {
    timer_wheel wheel(1ns, at(0));
    numbered period;
    wheel.insert(period, at(10));
    int fired = 0;
    while (timer_node* node = wheel.pop_expired(at(1000))) {
        ++fired;
        wheel.insert(*node, node->deadline + 10ns);
    }
    EXPECT_EQ(fired, 100);  // 10, 20, ..., 1000: each in its turn although all were due
    EXPECT_EQ(wheel.next_expiry(), at(1010));
    EXPECT_TRUE(wheel.cancel(period));
}

TEST(TimerWheel, ReinsertedIntoTheTickBeingDrainedComesLastInIt) {
    timer_wheel wheel(1ns, at(0));
    numbered first(1);
    numbered second(2);
    numbered next_tick(3);
    wheel.insert(first, at(10));
    wheel.insert(second, at(10));
    wheel.insert(next_tick, at(11));
    ASSERT_EQ(pop_number(wheel, at(50)), 1);
    wheel.insert(first, at(10));
    EXPECT_EQ(pop_all(wheel, at(50)), (std::vector<int>{2, 1, 3}));
}

TEST(TimerWheel, TimeThatRunsBackwardsCountsAsStandingStill) {
    timer_wheel wheel(1ns, at(0));
    numbered node(1);
    ASSERT_EQ(wheel.pop_expired(at(1000)), nullptr);
    wheel.insert(node, at(1010));
    EXPECT_EQ(wheel.pop_expired(at(500)), nullptr);
    EXPECT_EQ(wheel.pop_expired(at(-500)), nullptr);
    EXPECT_EQ(wheel.pop_expired(at(600)), nullptr);
    EXPECT_EQ(wheel.next_expiry(), at(1010));
    EXPECT_EQ(pop_number(wheel, at(1010)), 1);
}

TEST(TimerWheel, NeverStaysUntilCancelled) {
    for (nanoseconds tick : {nanoseconds(1), nanoseconds(1ms)}) {
        timer_wheel wheel(tick, time_point::min());
        numbered never(1);
        numbered real(2);
        wheel.insert(never, time_point::max());
        EXPECT_FALSE(wheel.next_expiry().has_value());
        wheel.insert(real, at(0));
        EXPECT_EQ(pop_all(wheel, time_point::max()), (std::vector<int>{2}));
        EXPECT_EQ(wheel.size(), 1U);
        EXPECT_FALSE(wheel.next_expiry().has_value());
        EXPECT_TRUE(wheel.cancel(never));
        EXPECT_TRUE(wheel.empty());
    }
}

TEST(TimerWheel, DeadlineThatRoundsUpPastTheLastMomentIsNever) {
    timer_wheel wheel(1s, at(0));
    numbered node(1);
    wheel.insert(node, time_point::max() - 1ns);
    EXPECT_FALSE(wheel.next_expiry().has_value());
    EXPECT_EQ(wheel.pop_expired(time_point::max()), nullptr);
    EXPECT_TRUE(wheel.cancel(node));
}

TEST(TimerWheel, WholeRangeOfTimeFitsIntoOneWheel) {
    timer_wheel wheel(1ns, time_point::min());
    numbered first(1);
    numbered last(2);
    wheel.insert(last, time_point::max() - 1ns);
    wheel.insert(first, time_point::min() + 1ns);
    EXPECT_EQ(wheel.pop_expired(time_point::min()), nullptr);
    EXPECT_EQ(pop_number(wheel, time_point::min() + 1ns), 1);
    EXPECT_EQ(wheel.pop_expired(time_point::max() - 2ns), nullptr);
    EXPECT_EQ(pop_number(wheel, time_point::max() - 1ns), 2);
}

// Every pair of a starting tick and a distance around the places where a level ends.
TEST(TimerWheel, BoundariesBetweenLevelsAreExact) {
    std::vector<std::int64_t> edges;
    for (unsigned shift = 0; shift < 62; shift += 6) {
        for (std::int64_t off : {-2, -1, 0, 1, 2}) {
            if (std::int64_t const edge = (std::int64_t{1} << shift) + off; edge >= 0) {
                edges.push_back(edge);
            }
        }
    }
    for (std::int64_t from : edges) {
        for (std::int64_t distance : edges) {
            if (distance == 0 || from > std::numeric_limits<std::int64_t>::max() - 1 - distance) {
                continue;
            }
            timer_wheel wheel(1ns, at(0));
            timer_node node;
            ASSERT_EQ(wheel.pop_expired(at(from)), nullptr);
            wheel.insert(node, at(from + distance));
            ASSERT_LE(*wheel.next_expiry(), at(from + distance));
            ASSERT_EQ(wheel.pop_expired(at(from + distance - 1)), nullptr)
                << from << '+' << distance;
            ASSERT_EQ(wheel.pop_expired(at(from + distance)), &node) << from << '+' << distance;
        }
    }
}

TEST(TimerWheel, NextExpiryIsExactWithinAGroupOf64Ticks) {
    timer_wheel wheel(1ms, at(0));
    timer_node node;
    for (int ms = 1; ms < 64; ++ms) {
        wheel.insert(node, at(0) + ms * 1ms);
        EXPECT_EQ(wheel.next_expiry(), at(0) + ms * 1ms);
        wheel.cancel(node);
    }
}

TEST(TimerWheel, SleepingUntilNextExpiryReachesAnyTimerInAtMostLevelsWakes) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 2000; ++round) {
        std::int64_t now = static_cast<std::int64_t>(random() >> (2 + random() % 60));
        std::int64_t const deadline =
            now + 1 + static_cast<std::int64_t>(random() >> (2 + random() % 60));
        timer_wheel wheel(1ns, at(0));
        timer_node node;
        ASSERT_EQ(wheel.pop_expired(at(now)), nullptr);
        wheel.insert(node, at(deadline));
        unsigned wakes = 0;
        for (timer_node* fired = nullptr; fired == nullptr; ++wakes) {
            time_point const wake = wheel.next_expiry().value();
            ASSERT_GT(wake, at(now)) << "woke without progress";
            ASSERT_LE(wake, at(deadline)) << "woke late";
            now = wake.time_since_epoch().count();
            fired = wheel.pop_expired(wake);
        }
        EXPECT_EQ(now, deadline);
        EXPECT_LE(wakes, timer_wheel::levels);
    }
}

TEST(TimerWheel, HundredThousandDueTogetherComeOutInOrder) {
    for (nanoseconds tick : {nanoseconds(1), nanoseconds(1ms)}) {
        std::vector<numbered> nodes(100'000);
        timer_wheel wheel(tick, at(0));
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            nodes[i].number = static_cast<int>(i);
            wheel.insert(nodes[i], at(0) + 10s);
        }
        ASSERT_EQ(wheel.pop_expired(at(0) + 10s - 1ns), nullptr);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            ASSERT_EQ(wheel.pop_expired(at(0) + 10s), &nodes[i]);
        }
        EXPECT_TRUE(wheel.empty());
    }
}

TEST(TimerWheel, DestructionUnlinksWhatIsLeft) {
    timer_node near;
    timer_node far;
    timer_node due;
    timer_node never;
    {
        timer_wheel wheel(1ns, at(0));
        wheel.insert(near, at(5));
        wheel.insert(far, at(5'000'000));
        wheel.insert(due, at(0));
        wheel.insert(never, time_point::max());
    }
    for (timer_node* node : {&near, &far, &due, &never}) {
        EXPECT_FALSE(node->linked());
    }
}

TEST(TimerWheelDeathTest, MisuseIsCaught) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    timer_wheel wheel(1ns, at(0));
    timer_node node;
    wheel.insert(node, at(5));
    EXPECT_DEATH(wheel.insert(node, at(6)), "inserted twice");
    wheel.cancel(node);
    EXPECT_DEATH(
        {
            timer_node gone;
            wheel.insert(gone, at(5));
        },
        "destroyed while in a wheel");
    EXPECT_DEATH(timer_wheel(0ns, at(0)), "tick");
}

// The reference: the same promises kept by a std::multimap from tick to node. equal_range of a
// multimap is in the order of insertion, and so is the wheel's.
class model {
  public:
    model(nanoseconds tick, time_point start) : tick_(tick), start_(start) {}

    void insert(numbered& node, time_point deadline) {
        entries_.emplace(std::max(tick_of(deadline), elapsed_), &node);
    }
    void cancel(numbered& node) {
        std::erase_if(entries_, [&](auto const& entry) { return entry.second == &node; });
    }
    numbered* pop_expired(time_point now) {
        std::int64_t const now_tick = (now - start_) / tick_;
        if (entries_.empty() || entries_.begin()->first > now_tick) {
            elapsed_ = std::max(elapsed_, now_tick);
            return nullptr;
        }
        numbered* node = entries_.begin()->second;
        elapsed_ = entries_.begin()->first;
        entries_.erase(entries_.begin());
        return node;
    }
    // Nothing if nothing is waiting.
    std::optional<time_point> earliest() const {
        if (entries_.empty()) {
            return std::nullopt;
        }
        return start_ + entries_.begin()->first * tick_;
    }
    std::size_t size() const { return entries_.size(); }

  private:
    std::int64_t tick_of(time_point deadline) const {
        return deadline <= start_ ? 0 : (deadline - start_ + tick_ - nanoseconds(1)) / tick_;
    }

    nanoseconds tick_;
    time_point start_;
    std::int64_t elapsed_ = 0;
    std::multimap<std::int64_t, numbered*> entries_;
};

std::uint64_t seed_from_environment() {
    char const* given = std::getenv("RONDO_SEED");
    return given != nullptr ? std::stoull(given) : std::random_device{}();
}

// Distances from one tick to years, each power of two as likely as the next, so that every level
// and every boundary is met.
nanoseconds random_distance(std::mt19937_64& random, nanoseconds tick) {
    auto const magnitude = random() % 46;
    auto const ns = static_cast<std::int64_t>(random() % (std::uint64_t{1} << magnitude));
    return random() % 2 == 0 ? nanoseconds(ns) : ns % 100'000 * tick;
}

void compare_with_model(nanoseconds tick, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::list<numbered> nodes;  // outlives the wheel, which unlinks what is left
    for (int i = 0; i < 200; ++i) {
        nodes.emplace_back(i);
    }
    time_point now = at(static_cast<std::int64_t>(random() % 1'000'000'000));
    timer_wheel wheel(tick, now);
    model reference(tick, now);
    auto pick = [&]() -> numbered& {
        return *std::next(nodes.begin(), static_cast<std::ptrdiff_t>(random() % nodes.size()));
    };
    auto insert_or_cancel = [&] {
        numbered& node = pick();
        if (node.linked()) {
            ASSERT_TRUE(wheel.cancel(node));
            reference.cancel(node);
        } else {
            auto const back = random() % 8 == 0 ? -1 : 1;
            time_point const deadline = now + back * random_distance(random, tick);
            wheel.insert(node, deadline);
            reference.insert(node, deadline);
        }
    };
    for (int step = 0; step < 4000; ++step) {
        if (random() % 3 != 0) {
            ASSERT_NO_FATAL_FAILURE(insert_or_cancel()) << "step " << step;
        } else {
            auto const wake = wheel.next_expiry();
            ASSERT_EQ(wake.has_value(), reference.earliest().has_value()) << "step " << step;
            if (wake) {
                ASSERT_LE(*wake, std::max(now, *reference.earliest())) << "step " << step;
            }
            now = wake && random() % 2 == 0 ? std::max(now, *wake)
                                            : now + random_distance(random, tick);
            for (;;) {
                timer_node* popped = wheel.pop_expired(now);
                numbered* expected = reference.pop_expired(now);
                ASSERT_EQ(popped, expected) << "step " << step;
                if (popped == nullptr) {
                    break;
                }
                if (random() % 4 == 0) {
                    ASSERT_NO_FATAL_FAILURE(insert_or_cancel()) << "step " << step;
                }
                if (random() % 32 == 0) {
                    break;  // come back with some left in the due list
                }
            }
        }
        ASSERT_EQ(wheel.size(), reference.size()) << "step " << step;
    }
}

TEST(TimerWheel, BehavesLikeAnOrderedMap) {
    std::uint64_t const first = seed_from_environment();
    std::printf("RONDO_SEED=%llu\n", static_cast<unsigned long long>(first));
    for (std::uint64_t seed = first; seed < first + 20; ++seed) {
        for (nanoseconds tick : {nanoseconds(1), nanoseconds(7), nanoseconds(1ms)}) {
            SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed) + " tick " +
                         std::to_string(tick.count()));
            ASSERT_NO_FATAL_FAILURE(compare_with_model(tick, seed));
        }
    }
}

}  // namespace
