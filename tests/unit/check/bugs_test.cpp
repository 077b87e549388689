// bugs_test.cpp: seeded bugs that the checker must find, each next to the version that is right.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "rondo/check/atomic.hpp"
#include "rondo/check/cell.hpp"
#include "rondo/check/explore.hpp"
#include "rondo/check/futex.hpp"
#include "rondo/check/mutex.hpp"
#include "rondo/check/thread.hpp"

namespace {

namespace check = rondo::check;
using check::failure;
using order = std::memory_order;

// Finds the failure, and finds it again by its schedule.
void expect_found(failure kind, std::function<void()> const& scenario,
                  check::options const& how = {}) {
    auto const found = check::explore(how, scenario);
    EXPECT_FALSE(found.ok);
    EXPECT_EQ(found.kind, kind) << found.error;
    auto const again = check::replay(found.schedule, scenario);
    EXPECT_EQ(again.kind, kind) << again.error;
    EXPECT_EQ(again.trace, found.trace);
}

void expect_correct(std::function<void()> const& scenario, check::options const& how = {}) {
    auto const result = check::explore(how, scenario);
    EXPECT_TRUE(result.ok) << result.error;
    EXPECT_TRUE(result.complete);
}

template <class F>
void twice_in_parallel(F body) {
    check::thread other(body);
    body();
    other.join();
}

TEST(SeededBugs, UnlockedCounterLosesAnUpdate) {
    expect_found(failure::assertion, [] {
        check::atomic<int> counter{0};
        twice_in_parallel([&] { counter.store(counter.load() + 1); });
        RONDO_CHECK_EXPECT(counter.load() == 2);
    });
}

TEST(SeededBugs, CellWithoutALockRaces) {
    expect_found(failure::race, [] {
        check::cell<int> counter{0};
        twice_in_parallel([&] { ++counter.write(); });
    });
    expect_correct([] {
        check::mutex lock;
        check::cell<int> counter{0};
        twice_in_parallel([&] {
            std::scoped_lock const held(lock);
            ++counter.write();
        });
        RONDO_CHECK_EXPECT(counter == 2);
    });
}

TEST(SeededBugs, TryLockProtectsWhenItSucceeds) {
    expect_correct([] {
        check::mutex lock;
        check::cell<int> counter{0};
        twice_in_parallel([&] {
            if (lock.try_lock()) {
                ++counter.write();
                lock.unlock();
            }
        });
        RONDO_CHECK_EXPECT(counter >= 1);
    });
}

TEST(SeededBugs, RaceNamesBothThreads) {
    auto const found = check::explore({}, [] {
        check::cell<int> data{0};
        label(data, "data");
        check::thread writer([&] { data = 1; });
        static_cast<void>(data.read());
        writer.join();
    });
    EXPECT_NE(found.error.find("T1: write of data races with a read by T0"), std::string::npos)
        << found.error;
}

// Publishing a cell is right with release and acquire only.
TEST(SeededBugs, RelaxedPublicationRaces) {
    auto const publish = [](order store, order load) {
        return [=] {
            check::cell<int> data{0};
            check::atomic<bool> ready{false};
            check::thread writer([&] {
                data = 42;
                ready.store(true, store);
            });
            if (ready.load(load)) {
                RONDO_CHECK_EXPECT(data == 42);
            }
            writer.join();
        };
    };
    expect_found(failure::race, publish(order::relaxed, order::acquire));
    expect_found(failure::race, publish(order::release, order::relaxed));
    expect_correct(publish(order::release, order::acquire));
}

TEST(SeededBugs, BrokenDoubleCheckedInitialisationRaces) {
    auto const initialise = [](order load, order store) {
        return [=] {
            check::atomic<int*> instance{nullptr};
            check::mutex lock;
            check::cell<int> value{0};
            static int made = 0;
            twice_in_parallel([&] {
                if (instance.load(load) == nullptr) {
                    std::scoped_lock const held(lock);
                    if (instance.load(order::relaxed) == nullptr) {
                        value = 7;
                        instance.store(&made, store);
                    }
                }
                RONDO_CHECK_EXPECT(value == 7);
            });
        };
    };
    expect_found(failure::race, initialise(order::relaxed, order::relaxed));
    expect_correct(initialise(order::acquire, order::release));
}

TEST(SeededBugs, LocksTakenInTwoOrdersDeadlock) {
    expect_found(failure::deadlock, [] {
        check::mutex a;
        check::mutex b;
        check::thread other([&] {
            std::scoped_lock const first(b);
            std::scoped_lock const second(a);
        });
        a.lock();
        b.lock();
        b.unlock();
        a.unlock();
        other.join();
    });
}

// The flag is checked, but the wait compares with what was read too late.
TEST(SeededBugs, WaitWithoutCheckingAgainLosesTheWakeUp) {
    auto const wait_for_flag = [](bool recheck) {
        return [=] {
            check::atomic<std::uint32_t> flag{0};
            check::atomic<std::uint32_t> sequence{0};
            check::thread setter([&] {
                flag.store(1);
                sequence.fetch_add(1);
                check::futex_wake(&sequence, 1);
            });
            if (recheck) {
                for (;;) {
                    auto const before = sequence.load();
                    if (flag.load() == 1) {
                        break;
                    }
                    check::futex_wait(sequence, before);
                }
            } else if (flag.load() == 0) {
                check::futex_wait(sequence, sequence.load());
            }
            setter.join();
        };
    };
    expect_found(failure::deadlock, wait_for_flag(false));
    expect_correct(wait_for_flag(true));
}

TEST(SeededBugs, WaitThatTrustsItsReturnBreaksOnASpuriousWakeUp) {
    auto const scenario = [] {
        check::atomic<std::uint32_t> flag{0};
        check::thread setter([&] {
            flag.store(1);
            check::futex_wake(&flag, 1);
        });
        check::futex_wait(flag, 0);
        RONDO_CHECK_EXPECT(flag.load() == 1);
        setter.join();
    };
    expect_found(failure::assertion, scenario);
    expect_correct(scenario, {.spurious_wakeups = false});
}

TEST(SeededBugs, SpinningForAStoreThatNeverComesIsALivelock) {
    expect_found(failure::livelock,
                 [] {
                     check::atomic<bool> flag{false};
                     while (!flag.load()) {
                         check::spin_pause();
                     }
                 },
                 {.max_steps = 500});
}

// The head of a stack comes back to the same node while a pop is under way.
TEST(SeededBugs, StackWithoutTagsSuffersFromAba) {
    struct node {
        check::atomic<node*> next{nullptr};
    };
    expect_found(failure::assertion, [] {
        std::array<node, 3> nodes;
        check::atomic<node*> head{&nodes[0]};
        nodes[0].next.store(&nodes[1]);
        nodes[1].next.store(&nodes[2]);
        check::atomic<int> owners{0};
        auto const pop = [&] {
            node* top = head.load();
            while (top != nullptr && !head.compare_exchange_strong(top, top->next.load())) {
            }
            return top;
        };
        auto const push = [&](node* added) {
            node* top = head.load();
            do {
                added->next.store(top);
            } while (!head.compare_exchange_strong(top, added));
        };
        check::thread other([&] {
            node* const first = pop();
            node* const second = pop();
            if (second != nullptr) {
                owners.fetch_add(second == &nodes[1] ? 1 : 0);
                push(first);
            }
        });
        node* const popped = pop();
        other.join();
        // Node 1 belongs to the other thread, and yet it is on the stack again.
        RONDO_CHECK_EXPECT(popped != &nodes[0] || owners.load() == 0 || head.load() != &nodes[1]);
    });
}

TEST(SeededBugs, PetersonNeedsSequentialConsistency) {
    auto const peterson = [](order store, order load) {
        return [=] {
            std::array<check::atomic<bool>, 2> wants;
            check::atomic<int> turn{0};
            check::cell<int> counter{0};
            auto const enter = [&](unsigned self) {
                unsigned const other = 1 - self;
                wants[self].store(true, store);
                turn.store(static_cast<int>(other), store);
                while (wants[other].load(load) && turn.load(load) == static_cast<int>(other)) {
                    check::spin_pause();
                }
                ++counter.write();
                wants[self].store(false, store);
            };
            check::thread second([&] { enter(1); });
            enter(0);
            second.join();
        };
    };
    expect_found(failure::race, peterson(order::release, order::acquire));
    expect_correct(peterson(order::seq_cst, order::seq_cst));
}

TEST(SeededBugs, ExceptionThatLeavesAThreadIsReported) {
    expect_found(failure::exception, [] {
        check::thread thrower([] { throw std::runtime_error("out of paper"); });
        thrower.join();
    });
    expect_found(failure::exception, [] { throw 7; });
    auto const found = check::explore({}, [] { throw std::runtime_error("out of paper"); });
    EXPECT_NE(found.error.find("out of paper"), std::string::npos);
}

TEST(SeededBugs, ExceptionThatMeetsNoexceptIsReported) {
    expect_found(failure::exception, [] {
        std::function<void()> const thrower = [] { throw std::runtime_error("broken"); };
        auto const promise = [&]() noexcept { thrower(); };
        promise();
    });
}

// A handler that is suspended in the middle keeps its exception while another thread throws.
TEST(SeededBugs, ExceptionsOfDifferentThreadsDoNotMix) {
    expect_correct([] {
        check::atomic<int> turn{0};
        auto const thrower = [&](int value) {
            try {
                throw value;
            } catch (int caught) {
                turn.fetch_add(1);
                turn.fetch_add(1);
                try {
                    throw;
                } catch (int again) {
                    RONDO_CHECK_EXPECT(again == value && caught == value);
                }
            }
        };
        check::thread other([&] { thrower(1); });
        thrower(2);
        other.join();
    });
}

TEST(SeededBugs, MutexMisuseIsReported) {
    expect_found(failure::misuse, [] {
        check::mutex lock;
        lock.lock();
        lock.unlock();
        lock.unlock();
    });
    expect_found(failure::misuse, [] {
        check::mutex lock;
        lock.lock();
        check::thread stranger([&] { lock.unlock(); });
        stranger.join();
    });
    expect_found(failure::misuse, [] {
        check::mutex lock;
        lock.lock();
    });
    expect_found(failure::misuse, [] {
        check::mutex lock;
        lock.lock();
        lock.lock();
    });
}

TEST(SeededBugs, ThreadThatIsNotJoinedIsReported) {
    expect_found(failure::misuse, [] { check::thread const forgotten([] {}); });
    expect_found(failure::misuse, [] {
        check::thread once([] {});
        once.join();
        once.join();
    });
}

TEST(SeededBugs, TooManyThreadsAreReported) {
    expect_found(failure::limit, [] {
        for (int i = 0; i < 8; ++i) {
            check::thread worker([] {});
            worker.join();
        }
    });
}

}  // namespace
