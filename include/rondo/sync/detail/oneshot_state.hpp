// oneshot_state.hpp: what the two ends of a oneshot share. The algorithm: src/sync/oneshot.cpp.
#pragma once

#include <cstdint>
#include <expected>
#include <utility>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/core/waiter.hpp"
#include "rondo/sync/detail/slot.hpp"

namespace rondo::detail {

// Where one end waits until the other sets a bit of the word they share.
class oneshot_queue final : public wait_queue {
  public:
    oneshot_queue(atomic<std::uint32_t>& word, std::uint32_t waits, std::uint32_t awaited) noexcept
        : word_(word), waits_(waits), awaited_(awaited) {}

    void look_again() noexcept {
        serve([] {});
    }

  private:
    bool grant(waiter&) noexcept override {
        // acquire, both: as in word(), for a waiter that is granted on entering
        std::uint32_t seen = word_.load(std::memory_order_acquire);
        if ((seen & waits_) == 0) seen = word_.fetch_or(waits_, std::memory_order_acquire);  // I3
        return (seen & awaited_) != 0;
    }

    atomic<std::uint32_t>& word_;
    std::uint32_t const waits_;
    std::uint32_t const awaited_;
};

class oneshot_base {
  public:
    // The word's bits. None is ever cleared.
    static constexpr std::uint32_t sent = 1;            // the value is in its slot
    static constexpr std::uint32_t left = 2;            // the sender went without sending
    static constexpr std::uint32_t sender_done = 4;     // the sender touches this no more
    static constexpr std::uint32_t closed = 8;          // nothing can be sent any more
    static constexpr std::uint32_t receiver_done = 16;  // the receiver touches this no more
    static constexpr std::uint32_t receiver_waits = 32;
    static constexpr std::uint32_t sender_waits = 64;

    static constexpr std::uint32_t answered = sent | left | closed;  // recv() need not wait

    std::uint32_t word() const noexcept {
        // acquire: pairs with the release of whoever set a bit that is found
        return word_.load(std::memory_order_acquire);
    }
    bool has(std::uint32_t bits) const noexcept { return (word() & bits) != 0; }

    // The sender's last act, with `how` = sent or left. False: closed came first, and the sender
    // still has to leave.
    bool finish(std::uint32_t how) noexcept {
        std::uint32_t seen = word_.load(std::memory_order_relaxed);
        while ((seen & (closed | receiver_waits)) == 0) {
            // release: pairs with the acquire in word()
            if (word_.compare_exchange_weak(seen, seen | how | sender_done,
                                            std::memory_order_release, std::memory_order_relaxed)) {
                return true;
            }
        }
        return finish_slowly(how);
    }
    void leave_sender() noexcept;

    void close() noexcept;
    void leave_receiver() noexcept;

    oneshot_queue& receiving() noexcept { return receiving_; }
    oneshot_queue& closing() noexcept { return closing_; }

  protected:
    oneshot_base() = default;
    ~oneshot_base() = default;

  private:
    bool finish_slowly(std::uint32_t how) noexcept;
    virtual void destroy() noexcept = 0;

    atomic<std::uint32_t> word_{0};
    oneshot_queue receiving_{word_, receiver_waits, answered};
    oneshot_queue closing_{word_, sender_waits, closed};
};

template <class T>
class oneshot_state final : public oneshot_base, public recycled {
  public:
    // Ends the sender's part.
    std::expected<void, T> send(T&& value) noexcept {
        slot_.put(std::move(value));
        if (finish(sent)) return {};
        std::expected<void, T> back{std::unexpect, slot_.take()};
        leave_sender();
        return back;
    }
    void drop_sender() noexcept {
        if (!finish(left)) leave_sender();
    }

    // For the receiver.
    bool has_value() const noexcept { return !taken_ && has(sent); }
    T take() noexcept {
        taken_ = true;
        return slot_.take();
    }

    void drop_receiver() noexcept {
        std::uint32_t seen = word();
        if ((seen & sender_done) == 0) {
            close();
            seen = word();
        }
        if ((seen & sent) != 0 && !taken_) slot_.drop();
        if ((seen & sender_done) != 0) {
            delete this;
        } else {
            leave_receiver();
        }
    }

  private:
    void destroy() noexcept override { delete this; }

    bool taken_ = false;  // the receiver's own
    slot<T> slot_;
};

}  // namespace rondo::detail
