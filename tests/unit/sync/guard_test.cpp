// Guards: how a lock is held, moved, mapped, owned, downgraded and let go.
#include "rondo/sync/guard.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "rondo/sync/mutex.hpp"
#include "rondo/sync/rwlock.hpp"

namespace rondo {
namespace {

struct person {
    std::string name = "Ada";
    std::optional<int> age;
};

TEST(Guard, ReachesTheValueAsAPointerDoes) {
    mutex<person> m;
    auto const held = m.blocking_lock();
    held->name = "Grace";
    (*held).age = 85;
    EXPECT_EQ(held->name, "Grace");
    static_assert(std::is_same_v<decltype(*held), person&>);
    static_assert(std::is_same_v<decltype(*std::declval<read_guard<person>&>()), person const&>);
}

TEST(Guard, UnlocksOnceHoweverItIsMoved) {
    mutex<int> a{1}, b{2};
    {
        auto first = a.blocking_lock();
        auto second = b.blocking_lock();
        auto third{std::move(first)};
        EXPECT_FALSE(first);
        EXPECT_TRUE(third);
        second = std::move(third);
        EXPECT_EQ(*second, 1);
        EXPECT_TRUE(b.try_lock()) << "what it held before";
        EXPECT_FALSE(a.try_lock());
        auto& same = second;
        second = std::move(same);
        EXPECT_EQ(*second, 1);
    }
    EXPECT_TRUE(a.try_lock());
}

TEST(Guard, UnlocksBeforeItsEndIfItIsTold) {
    mutex<int> m{1};
    auto held = m.blocking_lock();
    held.unlock();
    EXPECT_FALSE(held);
    EXPECT_TRUE(m.try_lock());
    held.unlock();  // nothing to unlock
    EXPECT_TRUE(m.try_lock());
}

TEST(Guard, MayBeDestroyedByAnotherThread) {
    mutex<int> m{1};
    std::thread{[held = m.blocking_lock()]() mutable { *held = 2; }}.join();
    EXPECT_EQ(*m.blocking_lock(), 2);
}

// --- a part of the value ---------------------------------------------------------------------

TEST(MappedGuard, ReachesAPartAndHoldsTheSameLock) {
    mutex<person> m;
    {
        mutex_guard<std::string> name = m.blocking_lock().map(&person::name);
        *name = "Grace";
        EXPECT_FALSE(m.try_lock());
        auto first = [](std::string& s) -> char& { return s.front(); };
        mutex_guard<char> const letter = std::move(name).map(first);
        EXPECT_EQ(*letter, 'G');
        EXPECT_FALSE(m.try_lock());
    }
    EXPECT_EQ(m.blocking_lock()->name, "Grace");
}

TEST(MappedGuard, MayBeRefusedAndGivesTheGuardBack) {
    mutex<person> m;
    auto const age = [](person& p) { return p.age ? &*p.age : nullptr; };
    auto none = m.blocking_lock().try_map(age);
    ASSERT_FALSE(none);
    none.error()->age = 36;
    EXPECT_FALSE(m.try_lock());
    auto some = std::move(none.error()).try_map(age);
    ASSERT_TRUE(some);
    EXPECT_EQ(**some, 36);
    EXPECT_FALSE(m.try_lock());
    some->unlock();
    EXPECT_TRUE(m.try_lock());
}

TEST(MappedGuard, IsAsBeforeIfTheFunctionThrows) {
    mutex<person> m;
    auto held = m.blocking_lock();
    auto const throws = [](person&) -> int& { throw std::runtime_error{"no such part"}; };
    auto const throws_too = [](person&) -> int* { throw std::runtime_error{"no such part"}; };
    EXPECT_THROW((void)std::move(held).map(throws), std::runtime_error);
    EXPECT_THROW((void)std::move(held).try_map(throws_too), std::runtime_error);
    EXPECT_EQ(held->name, "Ada");
    EXPECT_FALSE(m.try_lock());
    held.unlock();
    EXPECT_TRUE(m.try_lock());
}

TEST(MappedGuard, OfAReaderStaysConst) {
    rwlock<person> lock;
    auto name = lock.blocking_read().map(&person::name);
    static_assert(std::is_same_v<decltype(*name), std::string const&>);
    EXPECT_EQ(*name, "Ada");
    EXPECT_TRUE(lock.try_read());
    EXPECT_FALSE(lock.try_write());
    name.unlock();
    auto written = lock.blocking_write().map(&person::name);
    EXPECT_FALSE(lock.try_read());
    *written = "Grace";
}

// --- owned -----------------------------------------------------------------------------------

TEST(OwnedGuard, KeepsTheLockAliveAndUnlocksBeforeItGoes) {
    auto m = std::make_shared<mutex<person>>();
    std::weak_ptr<mutex<person>> const alive{m};
    owned_mutex_guard<person> held = m->blocking_lock().owned(m);
    m.reset();
    held->name = "Grace";
    auto name = std::move(held).map(&person::name);  // owned still
    EXPECT_FALSE(alive.expired());
    EXPECT_EQ(*name, "Grace");
    EXPECT_FALSE(alive.lock()->try_lock());
    name.unlock();  // the address sanitizer would see an unlock of what is gone
    EXPECT_TRUE(alive.expired());
}

TEST(OwnedGuard, LetsGoOfWhatItIsOverwrittenWith) {
    auto const make = [] {
        auto m = std::make_shared<rwlock<int>>(1);
        return m->blocking_write().owned(m);
    };
    auto held = make();
    held = make();
    EXPECT_EQ(*held, 1);
}

TEST(OwnedGuard, OfAReaderOrAWriterIsTheSame) {
    auto lock = std::make_shared<rwlock<person>>();
    owned_read_guard<person> reading = lock->blocking_read().owned(lock);
    EXPECT_EQ(lock.use_count(), 2);
    EXPECT_FALSE(lock->try_write());
    reading.unlock();
    EXPECT_EQ(lock.use_count(), 1);
    owned_write_guard<person> writing = lock->blocking_write().owned(lock);
    owned_read_guard<person> again = std::move(writing).downgrade();
    EXPECT_FALSE(writing);
    EXPECT_EQ(lock.use_count(), 2);
    EXPECT_TRUE(lock->try_read());
    EXPECT_FALSE(lock->try_write());
}

TEST(OwnedGuard, OfAPartCanBeMadeToo) {
    auto m = std::make_shared<mutex<person>>();
    owned_mutex_guard<std::string> name = m->blocking_lock().map(&person::name).owned(m);
    m.reset();
    EXPECT_EQ(*name, "Ada");
}

TEST(MappedGuardDeathTest, IsNotMadeOfOneThatHoldsNothing) {
    mutex<person> m;
    auto guard = m.blocking_lock();
    guard.unlock();
    EXPECT_DEATH((void)std::move(guard).map(&person::name),
                 "a guard that is mapped holds its lock");
    auto const nothing = [](person&) -> std::string* { return nullptr; };
    EXPECT_DEATH((void)std::move(guard).try_map(nothing), "a guard that is mapped holds its lock");
}

TEST(OwnedGuardDeathTest, IsKeptWithItsOwnLock) {
    auto a = std::make_shared<mutex<int>>(1), b = std::make_shared<mutex<int>>(2);
    EXPECT_DEATH((void)a->blocking_lock().owned(b), "a guard is kept with its own lock");
}

}  // namespace
}  // namespace rondo
