// bell.hpp: the smallest primitive without turns: each stroke lets go all who wait for it, or one.
//
// It exists to test what core offers beside FIFO: those who are owed a grant whatever their place,
// grants in batches, the last in line first, waiters that are enlisted while their owner runs, and
// one who lets others go by entering.
#pragma once

#include <cstddef>
#include <mutex>

#include "rondo/core/wait.hpp"

namespace rondo::test {

class bell final : wait_queue {
  public:
    // Waits for a stroke that comes after it was made, or for one that was meant for one.
    class stroke_op : public waiter {
      public:
        explicit stroke_op(bell& b) noexcept : waiter(b), bell_(b), heard_(b.strokes()) {}

        bool ready() noexcept { return bell_.strokes() != heard_; }
        void take() noexcept {}
        void hand_on() noexcept {}
        bool was_for_one() const noexcept { return for_one_; }

      private:
        friend bell;
        bell& bell_;
        std::size_t heard_;
        bool for_one_ = false;

      protected:
        bool strikes_ = false;
    };

    // Strikes for all as it enters, and does not wait.
    class striking_op : public stroke_op {
      public:
        explicit striking_op(bell& b) noexcept : stroke_op(b) { strikes_ = true; }
    };

    wait<stroke_op> stroke() noexcept { return wait{stroke_op{*this}}; }

    void strike_for_all() noexcept {
        serve_in_batches([this] { strokes_ = strokes_ + 1; });
    }
    void strike_for_the_first() noexcept {
        serve([this] { for_one_ = for_one_ + 1; });
    }
    // A second stroke at once is for the first again.
    void strike_for_the_last(std::size_t strokes = 1) noexcept {
        serve_last([&] { for_one_ = for_one_ + strokes; });
    }

    std::size_t strokes() noexcept {
        std::lock_guard const guard{lock()};
        return strokes_;
    }
    // Strokes for one that nobody has taken.
    std::size_t kept() noexcept {
        std::lock_guard const guard{lock()};
        return for_one_;
    }
    bool awaited() noexcept {
        std::lock_guard const guard{lock()};
        return has_waiters();
    }
    bool awaited_only_by(stroke_op const& op) noexcept {
        std::lock_guard const guard{lock()};
        return is_only(op);
    }

  private:
    bool owed(waiter& w) noexcept override {
        auto const& op = static_cast<stroke_op&>(w);
        return op.strikes_ || op.heard_ != strokes_;
    }
    bool grant(waiter& w) noexcept override {
        if (static_cast<stroke_op&>(w).strikes_) strokes_ = strokes_ + 1;
        if (owed(w)) return true;
        if (for_one_ == 0) return false;
        for_one_ = for_one_ - 1;
        static_cast<stroke_op&>(w).for_one_ = true;
        return true;
    }

    cell<std::size_t> strokes_;
    cell<std::size_t> for_one_;
};

}  // namespace rondo::test
