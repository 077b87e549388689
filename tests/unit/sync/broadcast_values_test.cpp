// The values of a broadcast channel: who copies them, who destroys them and when, and what they may
// do meanwhile.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "rondo/sync/broadcast.hpp"

namespace rondo {
namespace {

using broadcast::channel;
using broadcast::try_recv_error;
using broadcast::try_recv_failure;

constexpr try_recv_error lagged(std::uint64_t n) { return {try_recv_failure::lagged, n}; }

// How many copies of it were made, and how many are there.
struct copy_census {
    int copies = 0;
    int alive = 0;
};
class copied {
  public:
    explicit copied(copy_census& c) noexcept : census_(&c) { ++census_->alive; }
    copied(copied const& other) noexcept : census_(other.census_) {
        ++census_->copies;
        ++census_->alive;
    }
    copied(copied&& other) noexcept : census_(other.census_) { ++census_->alive; }
    copied& operator=(copied const&) = delete;
    ~copied() { --census_->alive; }

  private:
    copy_census* census_;
};

TEST(BroadcastValues, TheLastReceiverTakesTheValueAndTheOthersCopyIt) {
    copy_census c;
    auto [tx, rx] = channel<copied>(4);
    auto other = tx.subscribe();
    EXPECT_EQ(tx.send(copied{c}), 2U);
    EXPECT_EQ(c.alive, 1);
    {
        auto const first = rx.try_recv();
        EXPECT_EQ(c.copies, 1);
        auto const last = other.try_recv();
        EXPECT_EQ(c.copies, 1) << "moved";
        EXPECT_EQ(c.alive, 2) << "none is left in the channel";
    }
    EXPECT_EQ(c.alive, 0);
}

TEST(BroadcastValues, AValueIsDestroyedWhenItIsPushedOutOrItsLastReceiverGoes) {
    copy_census c;
    auto [tx, rx] = channel<copied>(2);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(tx.send(copied{c}), 1U);
    EXPECT_EQ(c.alive, 2);
    auto other = tx.subscribe();
    EXPECT_EQ(tx.send(copied{c}), 2U);
    EXPECT_EQ(c.alive, 2);
    {
        auto const gone = std::move(rx);
    }
    EXPECT_EQ(c.alive, 1) << "the one that the other has not got";
    {
        auto const gone = std::move(other);
    }
    EXPECT_EQ(c.alive, 0);
}

TEST(BroadcastValues, ValuesThatNobodyFetchedGoWithTheChannel) {
    copy_census c;
    {
        auto [tx, rx] = channel<copied>(2);
        EXPECT_EQ(tx.send(copied{c}), 1U);
        EXPECT_EQ(c.alive, 1);
    }
    EXPECT_EQ(c.alive, 0);
}

// --- copies and destructors that misbehave ----------------------------------------------------

struct fragile {
    bool* breaks;
    explicit fragile(bool& b) noexcept : breaks(&b) {}
    fragile(fragile const& other) : breaks(other.breaks) {
        if (*breaks) throw std::runtime_error{"fragile"};
    }
    fragile(fragile&& other) noexcept = default;
};

TEST(BroadcastValues, ACopyThatThrowsLeavesTheValueToBeReceived) {
    bool breaks = true;
    auto [tx, rx] = channel<fragile>(2);
    auto other = tx.subscribe();
    EXPECT_EQ(tx.send(fragile{breaks}), 2U);
    EXPECT_THROW((void)rx.try_recv(), std::runtime_error);
    EXPECT_THROW((void)rx.blocking_recv(), std::runtime_error);
    EXPECT_EQ(rx.len(), 1U);
    breaks = false;
    EXPECT_TRUE(rx.try_recv());
    EXPECT_TRUE(other.try_recv());
    EXPECT_TRUE(tx.is_empty());
}

// One receiver's copy throws when the other one has just got the value: it is the last now, and the
// value is still to be received.
TEST(BroadcastValues, ACopyThatThrowsAfterEverybodyElseHasTheValueDoesNotDestroyIt) {
    struct rude {
        std::function<void()> on_copy;
        std::unique_ptr<int> number = std::make_unique<int>(7);
        explicit rude(std::function<void()> f) noexcept : on_copy(std::move(f)) {}
        rude(rude const& other) : number(std::make_unique<int>(*other.number)) {
            if (other.on_copy) other.on_copy();
        }
        rude(rude&&) noexcept = default;
    };
    auto [tx, rx] = channel<rude>(1);
    auto other = tx.subscribe();
    int copies = 0;
    EXPECT_EQ(tx.send(rude{[&, &second = other] {
        if (++copies != 1) return;
        EXPECT_TRUE(second.try_recv());
        throw std::runtime_error{"rude"};
    }}),
              2U);
    EXPECT_THROW((void)rx.try_recv(), std::runtime_error);
    EXPECT_EQ(*rx.try_recv()->number, 7);
    EXPECT_EQ(copies, 2);
}

// Does something when it is copied, and when it is destroyed.
class busy {
  public:
    busy(std::function<void()> copied_, std::function<void()> destroyed) noexcept
        : on_copy_(std::move(copied_)), on_end_(std::move(destroyed)) {}
    busy(busy const& other) : on_copy_(other.on_copy_) {
        if (on_copy_) on_copy_();
    }
    busy(busy&& other) noexcept
        : on_copy_(std::move(other.on_copy_)), on_end_(std::exchange(other.on_end_, nullptr)) {}
    ~busy() {
        if (on_end_) on_end_();
    }

  private:
    std::function<void()> on_copy_;
    std::function<void()> on_end_;
};

TEST(BroadcastValues, AValueMaySendWhileItIsCopiedEvenIfThatPushesItOut) {
    auto [tx, rx] = channel<busy>(1);
    auto other = tx.subscribe();
    int copies = 0, ends = 0;
    EXPECT_EQ(tx.send(busy{[&, &to = tx] {
                               ++copies;
                               EXPECT_EQ(to.send(busy{nullptr, nullptr}), 2U);
                           },
                           [&] { ++ends; }}),
              2U);
    EXPECT_TRUE(rx.try_recv());
    EXPECT_EQ(copies, 1);
    EXPECT_EQ(ends, 1) << "it was pushed out, and went when its reader was done";
    EXPECT_TRUE(rx.try_recv()) << "what the copy sent";
    EXPECT_EQ(other.try_recv().error(), lagged(1));
    EXPECT_TRUE(other.try_recv());
}

TEST(BroadcastValues, AValueMayUseItsChannelWhenItIsDestroyed) {
    auto [tx, rx] = channel<busy>(1);
    int ends = 0;
    auto const look_around = [&, &to = tx] {
        ++ends;
        EXPECT_LE(to.len(), 1U);
        auto const more = to.subscribe();
        EXPECT_GE(to.receiver_count(), 1U);
        auto const weak = to.downgrade();
    };
    EXPECT_EQ(tx.send(busy{nullptr, look_around}), 1U);
    EXPECT_EQ(tx.send(busy{nullptr, look_around}), 1U);
    EXPECT_EQ(ends, 1) << "pushed out";
    EXPECT_TRUE(tx.subscribe().is_empty());
    {
        auto const gone = std::move(rx);
    }
    EXPECT_EQ(ends, 2) << "left by the last receiver";
}

// Does something when one is first copied, and when one is first destroyed, even if that was moved
// from.
struct once_each {
    std::function<void()> on_copy = nullptr;
    std::function<void()> on_end = nullptr;
};
class eager {
  public:
    explicit eager(once_each& todo) noexcept : todo_(&todo) {}
    eager(eager const& other) : todo_(other.todo_) { run(todo_->on_copy); }
    eager(eager&& other) noexcept : todo_(other.todo_) {}
    ~eager() { run(todo_->on_end); }

  private:
    static void run(std::function<void()>& f) {
        if (auto const now = std::exchange(f, nullptr)) now();
    }
    once_each* todo_;
};

TEST(BroadcastValues, WhatIsDestroyedByItsLastReaderMayReceiveWhatIsNext) {
    once_each todo;
    auto [tx, rx] = channel<eager>(4);
    auto other = tx.subscribe();
    EXPECT_EQ(tx.send(eager{todo}), 2U);
    bool next = true;
    auto const receive = [&, &mine = rx] { next = mine.try_recv().has_value(); };
    // The other one reads it meanwhile: so nobody is known to be the last when it is copied.
    todo.on_copy = [&] {
        EXPECT_TRUE(other.try_recv());
        todo.on_end = receive;
    };
    EXPECT_TRUE(rx.try_recv());
    EXPECT_FALSE(todo.on_end) << "it was destroyed";
    EXPECT_FALSE(next);
    EXPECT_TRUE(rx.is_empty());
    EXPECT_TRUE(tx.is_empty());
}

TEST(BroadcastValues, WhatIsLeftOfAValueThatWasMovedMayReceiveWhatIsNext) {
    once_each todo;
    auto [tx, rx] = channel<eager>(4);
    EXPECT_EQ(tx.send(eager{todo}), 1U);
    bool next = true;
    todo.on_end = [&, &mine = rx] { next = mine.try_recv().has_value(); };
    EXPECT_TRUE(rx.try_recv());
    EXPECT_FALSE(next);
    EXPECT_TRUE(rx.is_empty());
    EXPECT_TRUE(tx.is_empty());
}

}  // namespace
}  // namespace rondo
