// once_state.hpp: whether a value is there, who makes it, and who waits for it. The algorithm:
// src/sync/once_state.cpp.
#pragma once

#include <cstdint>
#include <utility>

#include "rondo/core/waiter.hpp"

namespace rondo::detail {

class once_op;

class once_state final : public wait_queue {
  public:
    once_state() = default;

    bool full() const noexcept {
        // acquire: pairs with the release in publish()
        return status_.load(std::memory_order_acquire) == status::full;
    }

    // True: the caller is the one who makes the value, and has to publish() or abandon() it. It may
    // say who it is, so that its own further claim is seen to be a mistake.
    bool try_claim(void const* who = nullptr) noexcept;
    void publish() noexcept;
    void abandon() noexcept;

    // For one who is alone with it: as it was before the value was there.
    void reset() noexcept { status_.store(status::empty, std::memory_order_relaxed); }

  private:
    enum class status : std::uint8_t { empty, busy, full };

    bool grant(waiter& w) noexcept override;
    bool owed(waiter& w) noexcept override;
    status now() const noexcept { return status_.load(std::memory_order_relaxed); }
    void claim(void const* who) noexcept;

    atomic<status> status_{status::empty};  // changes under the lock
    void const* maker_ = nullptr;           // under the lock
};

// The right, and the duty, to make the value. One that is dropped leaves both to the next.
class [[nodiscard("dropping a claim leaves it to the next")]] once_claim {
  public:
    explicit once_claim(once_state* state) noexcept : state_(state) {}
    once_claim(once_claim&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    once_claim& operator=(once_claim&&) = delete;
    ~once_claim() {
        if (state_ != nullptr) state_->abandon();
    }

    // False: the value is there.
    explicit operator bool() const noexcept { return state_ != nullptr; }
    void publish() noexcept { std::exchange(state_, nullptr)->publish(); }

  private:
    once_state* state_;
};

// Waits for the value. Who gives its name may also be asked to make it.
class once_op : public waiter {
  public:
    explicit once_op(once_state& s, void const* maker = nullptr) noexcept
        : waiter(s), state_(s), maker_(maker) {}

    bool ready() noexcept {
        if (state_.full()) return true;
        claimed_ = maker_ != nullptr && state_.try_claim(maker_);
        return claimed_;
    }
    once_claim take() noexcept { return once_claim{claimed_ ? &state_ : nullptr}; }
    void hand_on() noexcept {
        if (claimed_) state_.abandon();
    }

  private:
    friend once_state;

    once_state& state_;
    void const* maker_;
    bool claimed_ = false;
};

}  // namespace rondo::detail
