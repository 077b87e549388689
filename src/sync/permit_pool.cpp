// Algorithm
//   The batch semaphore of Tokio: one word with the number of permits and a bit that says that
//   somebody waits. While the bit is clear the word is all there is, and everybody changes it by
//   compare-exchange. Whoever finds too few takes the lock, and takes what is there and sets the
//   bit in one exchange; from then on permits go through the lock to those in line, until the
//   last of them is gone.
//
// Invariants
//   I1  while the lock is free: waiting_bit is set if and only if somebody is in line.
//   I2  while waiting_bit is set the word has no permits: `seen < n * one` also says that somebody
//       waits. What is put back is in spare_, or accrued to the first in line.
//   I3  while waiting_bit is set only the holder of the lock changes the word.
//   I4  while the lock is free: spare_ is 0. (I3 of waiter.cpp: the first in line has taken all
//       there was; if nobody is in line, nobody_waits() has moved it to the word.)
//   I5  while the lock is free: not both waiting_bit and closed_bit. Who is in line when the pool
//       closes is let go; who comes later is refused.
//
// Races considered
//   - a permit is put back between a failed ready() and the entry into the line: line_up() looks
//     again, in the exchange that sets the bit. One that comes later finds the bit.
//   - the bit is found set, and is cleared before the lock is there: put_back_in_line() looks
//     again under the lock.
//   - a permit is put back while close() runs: its exchange fails, and adds to a closed word.
//   - the first in line is withdrawn in the instant in which it is granted: one of the two has the
//     lock first. Withdrawn, it gives back its part to spare_, and the next in line takes it.
//   - zero permits are taken from a word with the bit set: the exchange changes nothing.
//
// Memory order
//   A permit carries what happened before it was put back to who takes it. By compare-exchange:
//   release in add(), acquire in take() and line_up(); other exchanges in between belong to the
//   release sequence. Through the line: by the lock. From the line back to the word: the store in
//   nobody_waits() ends the release sequence, so it is itself a release; whoever put back what
//   it stores did so under the lock.
#include "rondo/sync/detail/permit_pool.hpp"

#include <algorithm>

namespace rondo::detail {

std::size_t permit_pool::forget(std::size_t n) noexcept {
    std::size_t seen = word_.load(std::memory_order_relaxed);
    std::size_t some = 0;
    do {
        some = std::min(n, seen / one);
        if (some == 0) return 0;
        // relaxed: nobody uses what these permits stood for
    } while (!word_.compare_exchange_weak(seen, seen - some * one, std::memory_order_relaxed,
                                          std::memory_order_relaxed));
    return some;
}

void permit_pool::close() noexcept {
    // release: pairs with the acquire in try_take(), take() and closed()
    serve([this] { word_.fetch_or(closed_bit, std::memory_order_release); });
}

void permit_pool::put_back_in_line(std::size_t n) noexcept {
    serve([&] {
        if (add(n, word_.load(std::memory_order_relaxed))) return;
        RONDO_ASSERT(n <= maximum, "no more permits than the maximum");
        spare_ = n;  // I4
    });
}

bool permit_pool::grant(waiter& first) noexcept {
    auto& r = static_cast<request&>(first);
    std::size_t const seen = word_.load(std::memory_order_relaxed);  // the lock orders it
    if ((seen & closed_bit) != 0) {
        give_back(r);
        r.refused_ = true;
        return true;
    }
    if ((seen & waiting_bit) == 0) return line_up(r);
    std::size_t const part = std::min(r.missing_, spare_.read());
    spare_ = spare_ - part;
    r.missing_ -= part;
    return r.missing_ == 0;
}

// Takes what it needs, or all there is and the first place in line.
bool permit_pool::line_up(request& r) noexcept {
    std::size_t seen = word_.load(std::memory_order_relaxed);
    bool enough = false;
    do {
        enough = seen >= r.missing_ * one;
        // acquire: pairs with the release in add() and nobody_waits()
    } while (!word_.compare_exchange_weak(seen, enough ? seen - r.missing_ * one : waiting_bit,
                                          std::memory_order_acquire, std::memory_order_relaxed));
    r.missing_ -= enough ? r.missing_ : seen / one;
    return enough;
}

void permit_pool::give_back(waiter& w) noexcept {
    auto& r = static_cast<request&>(w);
    spare_ = spare_ + (r.needed_ - r.missing_);
    r.missing_ = r.needed_;
}

void permit_pool::nobody_waits() noexcept {
    // I3: nobody else changes the word.
    std::size_t const closed = word_.load(std::memory_order_relaxed) & closed_bit;
    // release: pairs with the acquire in take() and line_up()
    word_.store(spare_ * one + closed, std::memory_order_release);
    spare_ = std::size_t{0};
}

}  // namespace rondo::detail
