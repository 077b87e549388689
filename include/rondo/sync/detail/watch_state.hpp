// watch_state.hpp: what the ends of a watch channel share. The algorithm: src/sync/watch.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/core/waiter.hpp"
#include "rondo/sync/detail/borrow_lock.hpp"
#include "rondo/sync/detail/headcount.hpp"

namespace rondo::detail {

class watch_change;

// The part that does not depend on the type of the value. Receivers wait in it for a change.
class watch_base : public wait_queue {
  public:
    // The word: a version of the value, which grows by `step`, and two bits.
    static constexpr std::uint64_t closed = 1;   // no sender is left
    static constexpr std::uint64_t awaited = 2;  // a receiver is in line
    static constexpr std::uint64_t step = 4;

    static constexpr std::uint64_t version_in(std::uint64_t word) noexcept {
        return word & ~(closed | awaited);
    }
    // Whether one who has seen that version need not wait.
    static constexpr bool answers(std::uint64_t word, std::uint64_t seen) noexcept {
        return version_in(word) != seen || (word & closed) != 0;
    }

    std::uint64_t word() const noexcept {
        // acquire: pairs with the release in advance() and drop_sender()
        return word_.load(std::memory_order_acquire);
    }

    std::size_t sender_count() const noexcept { return senders_.load(std::memory_order_relaxed); }
    headcount& receivers() noexcept { return receivers_; }

    void add_sender() noexcept {
        senders_.fetch_add(1, std::memory_order_relaxed);  // by a sender: it is not the first
        own();
    }
    void drop_sender() noexcept;
    void add_receiver() noexcept {
        receivers_.add();
        own();
    }
    void drop_receiver() noexcept {
        receivers_.drop();
        disown();
    }

  protected:
    watch_base() = default;
    ~watch_base() = default;

    // The value has changed, under the lock of the value. True: announce() has to follow, without.
    [[nodiscard("somebody may be waiting for it")]] bool advance() noexcept {
        // release: pairs with the acquire in word()
        return (word_.fetch_add(step, std::memory_order_release) & awaited) != 0;
    }
    void announce() noexcept {
        serve_in_batches([] {});
    }

    virtual void destroy() noexcept = 0;

  private:
    bool grant(waiter& w) noexcept override;
    void give_back(waiter& w) noexcept override;
    bool owed(waiter& w) noexcept override;

    void own() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }  // by an owner
    void disown() noexcept;

    atomic<std::uint64_t> word_{0};
    atomic<std::size_t> senders_{1};
    headcount receivers_;
    atomic<std::size_t> owners_{1};
};

// Waits for a version other than the one that was seen.
class watch_change : public waiter {
  public:
    explicit watch_change(watch_base& channel) noexcept : waiter(channel), channel_(channel) {}

    void hand_on() noexcept {}  // the change is there for everyone

  protected:
    // Before it enters: others read from then on what was seen.
    bool ready(std::uint64_t seen) noexcept {
        seen_ = seen;
        return watch_base::answers(channel_.word(), seen_);
    }

    watch_base& channel_;
    std::uint64_t seen_ = 0;

  private:
    friend watch_base;
};

template <class T>
class watch_state final : public watch_base, public recycled {
  public:
    // Made with one sender.
    explicit watch_state(T first) : current_(new holder(std::move(first))) {}

    borrow_lock& lock() noexcept { return lock_; }
    T const& value() const noexcept { return current_.read()->value; }  // under that lock

    // Gives the value that was there. Values are moved and destroyed without the lock.
    T replace(T value) {
        auto* other = new holder(std::move(value));
        bool waited_for = false;
        {
            std::lock_guard const guard{lock_};
            other = std::exchange(current_.write(), other);
            waited_for = advance();
        }
        if (waited_for) announce();
        T old = std::move(other->value);
        delete other;
        return old;
    }

    // Under the lock. An exception leaves the version as it is.
    template <class F>
    bool modify(F&& change) {
        bool waited_for = false;
        {
            std::lock_guard const guard{lock_};
            if (!std::forward<F>(change)(current_.read()->value)) return false;
            waited_for = advance();
        }
        if (waited_for) announce();
        return true;
    }

  private:
    struct holder : recycled {
        explicit holder(T&& v) noexcept : value(std::move(v)) {}
        T value;
    };

    ~watch_state() { delete current_.read(); }
    void destroy() noexcept override { delete this; }

    borrow_lock lock_;
    cell<holder*> current_;
};

}  // namespace rondo::detail
