// memory_test.cpp: lives of objects and of memory inside an execution.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "rondo/check/check.hpp"

namespace {

namespace check = rondo::check;
using check::failure;
using order = std::memory_order;

failure kind_of(std::function<void()> const& scenario) { return check::explore({}, scenario).kind; }

// Keeps the compiler from pairing new and delete away, as it may.
template <class T>
T* observed(T* pointer) {
    asm volatile("" : "+r"(pointer));
    return pointer;
}

TEST(Memory, LeakIsReported) {
    EXPECT_EQ(kind_of([] { observed(new int(1)); }), failure::leak);
    EXPECT_EQ(kind_of([] {
                  check::thread worker([] { observed(new char[100]); });
                  worker.join();
              }),
              failure::leak);
    EXPECT_EQ(kind_of([] { delete observed(new int(1)); }), failure::none);
}

TEST(Memory, LeakIsReportedWithSizeAndNumber) {
    auto const found = check::explore({}, [] {
        delete observed(new int(1));
        observed(new char[100]);
    });
    EXPECT_NE(found.error.find("allocation 1, 100 bytes"), std::string::npos) << found.error;
}

TEST(Memory, DoubleFreeIsReported) {
    EXPECT_EQ(kind_of([] {
                  auto* const block = observed(new int(1));
                  auto* const again = observed(block);
                  ::operator delete(block);
                  ::operator delete(again);
              }),
              failure::double_free);
}

TEST(Memory, FreeOfTheMiddleOfABlockIsReported) {
    EXPECT_EQ(kind_of([] {
                  auto* const block = static_cast<char*>(observed(::operator new(64)));
                  block[16] = 0;
                  ::operator delete(observed(block + 32));
              }),
              failure::misuse);
}

TEST(Memory, EveryFormOfNewIsServed) {
    struct alignas(64) wide {
        char bytes[64];
    };
    EXPECT_EQ(kind_of([] {
                  auto* const w = observed(new wide[3]);
                  RONDO_CHECK_EXPECT(reinterpret_cast<std::uintptr_t>(w) % 64 == 0);
                  delete[] w;
                  auto* const n = observed(new (std::nothrow) wide);
                  delete n;
                  auto* const i = observed(new (std::nothrow) int[5]);
                  delete[] i;
                  std::vector<std::string> grows;
                  for (int k = 0; k < 100; ++k) {
                      grows.emplace_back(static_cast<std::size_t>(k), 'x');
                  }
              }),
              failure::none);
}

TEST(Memory, TooMuchIsReported) {
    EXPECT_EQ(kind_of([] { observed(new char[std::size_t{1} << 30U]); }), failure::limit);
}

TEST(Memory, MayCrossTheBorderOfAnExecution) {
    auto before = std::make_unique<std::string>(100, 'a');
    std::vector<std::string> kept;
    EXPECT_EQ(kind_of([&] {
                  before.reset();  // allocated outside, freed inside
                  check::untracked_memory const guard;
                  kept.emplace_back(100, 'b');  // allocated inside, lives on
              }),
              failure::none);
    EXPECT_EQ(kept.front(), std::string(100, 'b'));
}

TEST(Memory, UseAfterFreeIsReported) {
    EXPECT_EQ(kind_of([] {
                  auto* const number = observed(new check::atomic<int>(1));
                  auto* const stale = observed(number);
                  delete number;
                  static_cast<void>(stale->load());
              }),
              failure::use_after_destroy);
    EXPECT_EQ(kind_of([] {
                  auto* const data = observed(new check::cell<int>(1));
                  auto* const stale = observed(data);
                  delete data;
                  stale->write() = 2;
              }),
              failure::use_after_destroy);
}

TEST(Memory, UseOfADestroyedStackObjectIsReported) {
    EXPECT_EQ(kind_of([] {
                  check::atomic<int>* dangling = nullptr;
                  {
                      check::atomic<int> gone{0};
                      dangling = observed(&gone);
                  }
                  dangling->store(1);
              }),
              failure::use_after_destroy);
    EXPECT_EQ(kind_of([] {
                  std::optional<check::mutex> lock(std::in_place);
                  check::mutex* const dangling = observed(&*lock);
                  lock.reset();
                  dangling->lock();
              }),
              failure::use_after_destroy);
}

// The thread that drops the last reference must have acquired what the others released.
TEST(Memory, ReferenceCountWithoutAcquireIsARaceOnTheEndOfLife) {
    struct counted {
        check::atomic<int> references{2};
        check::cell<int> data{0};
    };
    auto const drop_twice = [](order how) {
        return [=] {
            auto* const shared = new counted;
            auto const drop = [=] {
                static_cast<void>(shared->data.read());
                if (shared->references.fetch_sub(1, how) == 1) {
                    delete shared;
                }
            };
            check::thread other(drop);
            drop();
            other.join();
        };
    };
    EXPECT_EQ(kind_of(drop_twice(order::acq_rel)), failure::none);
    EXPECT_EQ(kind_of(drop_twice(order::release)), failure::race);
}

TEST(Memory, DestructionMustHappenAfterEveryAccess) {
    auto const signal_and_destroy = [](order signal) {
        return [=] {
            std::optional<check::atomic<int>> object(std::in_place, 0);
            check::atomic<bool> done{false};
            check::thread user([&] {
                static_cast<void>(object->load(order::relaxed));
                done.store(true, signal);
            });
            if (done.load(order::acquire)) {
                object.reset();
            }
            user.join();
        };
    };
    EXPECT_EQ(kind_of(signal_and_destroy(order::release)), failure::none);
    EXPECT_EQ(kind_of(signal_and_destroy(order::relaxed)), failure::race);
}

TEST(Memory, ObjectUsedBeforeItsConstructionIsVisibleIsARace) {
    auto const publish = [](order store) {
        return [=] {
            check::atomic<check::atomic<int>*> shared{nullptr};
            check::thread reader([&] {
                if (auto* const found = shared.load(order::acquire); found != nullptr) {
                    static_cast<void>(found->load(order::relaxed));
                }
            });
            check::atomic<int> object{1};
            shared.store(&object, store);
            reader.join();
        };
    };
    EXPECT_EQ(kind_of(publish(order::release)), failure::none);
    EXPECT_EQ(kind_of(publish(order::relaxed)), failure::race);
}

TEST(Memory, ObjectThatOutlivesTheScenarioIsALeak) {
    alignas(check::atomic<int>) static unsigned char place[sizeof(check::atomic<int>)];
    EXPECT_EQ(kind_of([] { ::new (place) check::atomic<int>(1); }), failure::leak);
}

TEST(Memory, ObjectFromOutsideMustNotBeUsedInside) {
    check::atomic<int> outside{1};
    EXPECT_EQ(kind_of([&] { static_cast<void>(outside.load()); }), failure::misuse);
}

TEST(Memory, OutsideAnExecutionObjectsArePlain) {
    check::atomic<int> number{1};
    EXPECT_FALSE(check::running());
    EXPECT_EQ(number.fetch_add(2), 1);
    EXPECT_EQ(number.exchange(9), 3);
    int expected = 1;
    EXPECT_FALSE(number.compare_exchange_strong(expected, 2));
    EXPECT_EQ(expected, 9);
    check::atomic<std::uint8_t> small{250};
    small.fetch_add(10);
    EXPECT_EQ(small.load(), 4);
    check::cell<std::string> text("a");
    text = "b";
    EXPECT_EQ(text->size(), 1U);
    check::mutex lock;
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
    check::thread_storage<int>() = 5;
    EXPECT_EQ(check::thread_storage<int>(), 5);
}

TEST(Memory, ArithmeticWrapsInTheTypesWidth) {
    EXPECT_EQ(kind_of([] {
                  check::atomic<std::int8_t> number{127};
                  number.fetch_add(1);
                  RONDO_CHECK_EXPECT(number.load() == -128);
                  number.fetch_sub(1);
                  RONDO_CHECK_EXPECT(number.load() == 127);
                  int array[4] = {};
                  check::atomic<int*> pointer{array};
                  pointer.fetch_add(3);
                  pointer.fetch_sub(1);
                  RONDO_CHECK_EXPECT(pointer.load() == array + 2);
                  check::atomic<std::uint64_t> bits{0xf0};
                  bits.fetch_or(0x0f);
                  bits.fetch_and(0x3c);
                  bits.fetch_xor(0xff);
                  RONDO_CHECK_EXPECT(bits.load() == 0xc3);
              }),
              failure::none);
}

TEST(Memory, ThreadStorageBelongsToOneThreadOfOneExecution) {
    struct counter {
        int value = 0;
        std::unique_ptr<int> owned = std::make_unique<int>(1);  // must be freed at the thread's end
    };
    EXPECT_EQ(kind_of([] {
                  auto const count = [] {
                      auto& mine = check::thread_storage<counter>();
                      RONDO_CHECK_EXPECT(mine.value == 0);
                      mine.value = 1 + static_cast<int>(check::thread_id());
                      RONDO_CHECK_EXPECT(&mine == &check::thread_storage<counter>());
                  };
                  check::atomic<int> shared{0};
                  check::thread other([&] {
                      count();
                      shared.store(1);
                      RONDO_CHECK_EXPECT(check::thread_storage<counter>().value == 2);
                  });
                  count();
                  shared.store(2);
                  RONDO_CHECK_EXPECT(check::thread_storage<counter>().value == 1);
                  other.join();
              }),
              failure::none);
}

}  // namespace
