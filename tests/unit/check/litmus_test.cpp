// litmus_test.cpp: the memory model against tests whose outcomes are known.
//
// Each test explores without a preemption bound and compares the whole set of outcomes: what the
// model must allow, and what it must not. Names follow the literature (Alglave, Maranget,
// Tautschnig: Herding Cats, TOPLAS 2014).

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "rondo/check/check.hpp"

namespace {

namespace check = rondo::check;
using order = std::memory_order;
using outcomes = std::set<std::string>;

// Runs `scenario`, which adds one outcome to the set it is given, in every possible way.
outcomes all_outcomes(std::function<std::string()> const& scenario) {
    outcomes seen;
    auto const result = check::explore({.preemptions = -1}, [&] {
        check::untracked_memory const guard;
        seen.insert(scenario());
    });
    EXPECT_TRUE(result.ok) << result.error;
    EXPECT_TRUE(result.complete);
    return seen;
}

std::string pair(int a, int b) { return std::to_string(a) + std::to_string(b); }

// Starts both, joins both.
template <class A, class B>
void in_parallel(A a, B b) {
    check::thread other(b);
    a();
    other.join();
}

outcomes store_buffering(order store, order load) {
    return all_outcomes([=] {
        check::atomic<int> x{0};
        check::atomic<int> y{0};
        int r1 = -1;
        int r2 = -1;
        in_parallel(
            [&] {
                x.store(1, store);
                r1 = y.load(load);
            },
            [&] {
                y.store(1, store);
                r2 = x.load(load);
            });
        return pair(r1, r2);
    });
}

TEST(Litmus, StoreBufferingRelaxedAllowsAllFour) {
    EXPECT_EQ(store_buffering(order::relaxed, order::relaxed), (outcomes{"00", "01", "10", "11"}));
}

TEST(Litmus, StoreBufferingReleaseAcquireAllowsAllFour) {
    EXPECT_EQ(store_buffering(order::release, order::acquire), (outcomes{"00", "01", "10", "11"}));
}

TEST(Litmus, StoreBufferingSeqCstForbidsBothOld) {
    EXPECT_EQ(store_buffering(order::seq_cst, order::seq_cst), (outcomes{"01", "10", "11"}));
}

TEST(Litmus, StoreBufferingWithOneWeakLoadAllowsBothOld) {
    EXPECT_TRUE(store_buffering(order::seq_cst, order::acquire).contains("00"));
    EXPECT_TRUE(store_buffering(order::release, order::seq_cst).contains("00"));
}

outcomes message_passing(order store, order load) {
    return all_outcomes([=] {
        check::atomic<int> data{0};
        check::atomic<int> flag{0};
        int seen_flag = -1;
        int seen_data = -1;
        in_parallel(
            [&] {
                data.store(1, order::relaxed);
                flag.store(1, store);
            },
            [&] {
                seen_flag = flag.load(load);
                seen_data = data.load(order::relaxed);
            });
        return pair(seen_flag, seen_data);
    });
}

TEST(Litmus, MessagePassingReleaseAcquireIsNeverStale) {
    EXPECT_EQ(message_passing(order::release, order::acquire), (outcomes{"00", "01", "11"}));
}

TEST(Litmus, MessagePassingSeqCstIsNeverStale) {
    EXPECT_EQ(message_passing(order::seq_cst, order::seq_cst), (outcomes{"00", "01", "11"}));
}

TEST(Litmus, MessagePassingIsStaleWhenEitherSideIsRelaxed) {
    outcomes const all{"00", "01", "10", "11"};
    EXPECT_EQ(message_passing(order::relaxed, order::relaxed), all);
    EXPECT_EQ(message_passing(order::release, order::relaxed), all);
    EXPECT_EQ(message_passing(order::relaxed, order::acquire), all);
}

outcomes independent_reads(order store, order load) {
    return all_outcomes([=] {
        check::atomic<int> x{0};
        check::atomic<int> y{0};
        int r[4] = {};
        check::thread writes_x([&] { x.store(1, store); });
        check::thread writes_y([&] { y.store(1, store); });
        in_parallel(
            [&] {
                r[0] = x.load(load);
                r[1] = y.load(load);
            },
            [&] {
                r[2] = y.load(load);
                r[3] = x.load(load);
            });
        writes_x.join();
        writes_y.join();
        return pair(r[0], r[1]) + pair(r[2], r[3]);
    });
}

TEST(Litmus, IndependentReadsMayDisagreeWithReleaseAcquire) {
    auto const seen = independent_reads(order::release, order::acquire);
    EXPECT_TRUE(seen.contains("1010"));
    EXPECT_EQ(seen.size(), 16U);
}

TEST(Litmus, IndependentReadsAgreeWithSeqCst) {
    auto const seen = independent_reads(order::seq_cst, order::seq_cst);
    EXPECT_FALSE(seen.contains("1010"));
    EXPECT_EQ(seen.size(), 15U);
}

TEST(Litmus, CoherenceOfReadsOfOneThread) {
    auto const seen = all_outcomes([] {
        check::atomic<int> x{0};
        int r1 = -1;
        int r2 = -1;
        in_parallel([&] { x.store(1, order::relaxed); },
                    [&] {
                        r1 = x.load(order::relaxed);
                        r2 = x.load(order::relaxed);
                    });
        return pair(r1, r2);
    });
    EXPECT_EQ(seen, (outcomes{"00", "01", "11"}));
}

// A read that happens before another read of the same object orders it, too.
TEST(Litmus, CoherenceOfReadsAcrossThreads) {
    auto const seen = all_outcomes([] {
        check::atomic<int> x{0};
        check::atomic<int> ready{0};
        int first = -1;
        int second = -1;
        check::thread writer([&] { x.store(1, order::relaxed); });
        in_parallel(
            [&] {
                first = x.load(order::relaxed);
                ready.store(1, order::release);
            },
            [&] {
                if (ready.load(order::acquire) == 1) {
                    second = x.load(order::relaxed);
                }
            });
        writer.join();
        return second == -1 ? "-" : pair(first, second);
    });
    EXPECT_EQ(seen, (outcomes{"-", "00", "01", "11"}));
}

outcomes release_sequence(std::function<void(check::atomic<int>&)> const& continuation) {
    return all_outcomes([&] {
        check::atomic<int> data{0};
        check::atomic<int> flag{0};
        std::string found = "-";
        check::thread publisher([&] {
            data.store(1, order::relaxed);
            flag.store(1, order::release);
        });
        in_parallel([&] { continuation(flag); },
                    [&] {
                        if (flag.load(order::acquire) == 2) {
                            found = std::to_string(data.load(order::relaxed));
                        }
                    });
        publisher.join();
        return found;
    });
}

TEST(Litmus, ReleaseSequenceIsContinuedByReadModifyWrites) {
    auto const by_exchange = release_sequence([](auto& flag) {
        int one = 1;
        flag.compare_exchange_strong(one, 2, order::relaxed);
    });
    EXPECT_EQ(by_exchange, (outcomes{"-", "1"}));
    auto const by_addition =
        release_sequence([](auto& flag) { flag.fetch_add(1, order::relaxed); });
    EXPECT_EQ(by_addition, (outcomes{"-", "1"}));
}

TEST(Litmus, ReleaseSequenceIsBrokenByAPlainStore) {
    auto const seen = all_outcomes([] {
        check::atomic<int> data{0};
        check::atomic<int> flag{0};
        std::string found = "-";
        in_parallel(
            [&] {
                data.store(1, order::relaxed);
                flag.store(1, order::release);
                flag.store(2, order::relaxed);
            },
            [&] {
                if (flag.load(order::acquire) == 2) {
                    found = std::to_string(data.load(order::relaxed));
                }
            });
        return found;
    });
    EXPECT_EQ(seen, (outcomes{"-", "0", "1"}));
}

TEST(Litmus, WriteToReadCausalityIsTransitive) {
    auto const seen = all_outcomes([] {
        check::atomic<int> x{0};
        check::atomic<int> y{0};
        std::string found = "-";
        check::thread first([&] { x.store(1, order::release); });
        in_parallel(
            [&] {
                if (x.load(order::acquire) == 1) {
                    y.store(1, order::release);
                }
            },
            [&] {
                if (y.load(order::acquire) == 1) {
                    found = std::to_string(x.load(order::relaxed));
                }
            });
        first.join();
        return found;
    });
    EXPECT_EQ(seen, (outcomes{"-", "1"}));
}

TEST(Litmus, ReadModifyWritesNeverLoseAnUpdate) {
    auto const seen = all_outcomes([] {
        check::atomic<int> x{0};
        in_parallel([&] { x.fetch_add(1, order::relaxed); },
                    [&] { x.fetch_add(1, order::relaxed); });
        return std::to_string(x.load(order::relaxed));
    });
    EXPECT_EQ(seen, (outcomes{"2"}));
}

// Reads of one object are in S as well: if y's read shows that the first thread was before the
// second in S, the second must not read x's older value. No happens-before leads there.
TEST(Litmus, SeqCstReadsOfOneObjectFollowEachOther) {
    auto const seen = all_outcomes([] {
        check::atomic<int> x{0};
        check::atomic<int> y{0};
        int first_x = -1;
        int first_y = -1;
        int second_x = -1;
        check::thread writer([&] { x.store(1, order::relaxed); });
        in_parallel(
            [&] {
                first_x = x.load(order::seq_cst);
                first_y = y.load(order::seq_cst);
            },
            [&] {
                y.store(1, order::seq_cst);
                second_x = x.load(order::seq_cst);
            });
        writer.join();
        return pair(first_x, first_y) + pair(second_x, 0).substr(0, 1);
    });
    EXPECT_EQ(seen, (outcomes{"000", "001", "010", "011", "101", "110", "111"}));
}

TEST(Litmus, WeakCompareExchangeMayFailForNoReasonAndStrongMayNot) {
    auto const outcomes_of = [](bool weak) {
        return all_outcomes([=] {
            check::atomic<int> x{0};
            int expected = 0;
            bool const done = weak ? x.compare_exchange_weak(expected, 1, order::acq_rel)
                                   : x.compare_exchange_strong(expected, 1, order::acq_rel);
            return (done ? "done" : "failed") + std::to_string(expected);
        });
    };
    EXPECT_EQ(outcomes_of(true), (outcomes{"done0", "failed0"}));
    EXPECT_EQ(outcomes_of(false), (outcomes{"done0"}));
}

// A thread that knows, but not by happens-before, that x was stored to.
outcomes compare_exchange_after_store(int expected) {
    return all_outcomes([=] {
        check::atomic<int> x{0};
        check::atomic<int> stored{0};
        std::string found = "-";
        in_parallel(
            [&] {
                x.store(1, order::relaxed);
                stored.store(1, order::relaxed);
            },
            [&] {
                if (stored.load(order::relaxed) == 1) {
                    int value = expected;
                    bool const done = x.compare_exchange_strong(value, 2, order::relaxed);
                    found = (done ? "done" : "failed") + std::to_string(value);
                }
            });
        return found;
    });
}

TEST(Litmus, FailedCompareExchangeMayReadAnOldValue) {
    EXPECT_EQ(compare_exchange_after_store(1), (outcomes{"-", "done1", "failed0"}));
}

TEST(Litmus, CompareExchangeNeverFailsOnTheExpectedValue) {
    EXPECT_EQ(compare_exchange_after_store(0), (outcomes{"-", "failed1"}));
}

// Waiting orders the waited-for word, and nothing else.
TEST(Litmus, FutexWaitForbidsOlderValuesOfItsWord) {
    auto const seen = all_outcomes([] {
        check::atomic<int> other{0};
        check::atomic<std::uint32_t> word{0};
        check::thread setter([&] {
            other.store(1, order::relaxed);
            word.store(1, order::relaxed);
            check::futex_wake(&word, 1);
        });
        std::string found;
        check::futex_wait(word, 0);
        found += std::to_string(word.load(order::relaxed));
        found += std::to_string(other.load(order::relaxed));
        setter.join();
        return found;
    });
    // "0?" after a spurious return only.
    EXPECT_EQ(seen, (outcomes{"00", "01", "10", "11"}));
    auto const result = check::explore({.preemptions = -1, .spurious_wakeups = false}, [] {
        check::atomic<std::uint32_t> word{0};
        check::thread setter([&] {
            word.store(1, order::relaxed);
            check::futex_wake(&word, 1);
        });
        check::futex_wait(word, 0);
        RONDO_CHECK_EXPECT(word.load(order::relaxed) == 1);
        setter.join();
    });
    EXPECT_TRUE(result.ok) << result.error;
}

TEST(Litmus, SpuriousReturnForbidsOlderValuesOfTheWordToo) {
    auto const seen = all_outcomes([] {
        check::atomic<std::uint32_t> word{0};
        check::atomic<int> stored{0};
        std::string found = "-";
        check::thread first([&] {
            word.store(1, order::relaxed);
            stored.store(1, order::relaxed);
        });
        check::thread second([&] {
            while (stored.load(order::relaxed) == 0) {
                check::spin_pause();
            }
            word.store(2, order::relaxed);
            check::futex_wake(&word, 1);
        });
        if (stored.load(order::relaxed) == 1) {
            check::futex_wait(word, 1);
            found = std::to_string(word.load(order::relaxed));
        }
        first.join();
        second.join();
        return found;
    });
    EXPECT_EQ(seen, (outcomes{"-", "1", "2"}));
}

// The limits of the model, so that a change to any of them is noticed.

TEST(LitmusLimits, LoadBufferingIsNotProduced) {
    auto const seen = all_outcomes([] {
        check::atomic<int> x{0};
        check::atomic<int> y{0};
        int r1 = -1;
        int r2 = -1;
        in_parallel(
            [&] {
                r1 = x.load(order::relaxed);
                y.store(1, order::relaxed);
            },
            [&] {
                r2 = y.load(order::relaxed);
                x.store(1, order::relaxed);
            });
        return pair(r1, r2);
    });
    EXPECT_EQ(seen, (outcomes{"00", "01", "10"}));
}

TEST(LitmusLimits, TwoPlusTwoWritesFollowExecutionOrder) {
    auto const seen = all_outcomes([] {
        check::atomic<int> x{0};
        check::atomic<int> y{0};
        in_parallel(
            [&] {
                x.store(1, order::relaxed);
                y.store(2, order::relaxed);
            },
            [&] {
                y.store(1, order::relaxed);
                x.store(2, order::relaxed);
            });
        return pair(x.load(order::relaxed), y.load(order::relaxed));
    });
    EXPECT_EQ(seen, (outcomes{"12", "21", "22"}));
}

// Z6.U of Lahav et al. (Repairing Sequential Consistency in C/C++11, PLDI 2017): since C++20 the
// fetch_add() need not come after x.store() in S, as what is between them is no seq_cst operation.
TEST(LitmusLimits, SeqCstOperationsFollowExecutionOrder) {
    auto const seen = all_outcomes([] {
        check::atomic<int> x{0};
        check::atomic<int> y{0};
        int added_to = -1;
        int then = -1;
        int found = -1;
        check::thread publishes([&] {
            x.store(1);
            y.store(1, order::release);
        });
        check::thread adds([&] {
            added_to = y.fetch_add(1);
            then = y.load(order::relaxed);
        });
        y.store(3);
        found = x.load();
        publishes.join();
        adds.join();
        return pair(added_to, then) + std::to_string(found);
    });
    EXPECT_TRUE(seen.contains("131"));
    EXPECT_FALSE(seen.contains("130"));  // the standard allows it
}

}  // namespace
