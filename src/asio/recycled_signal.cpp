#include "rondo/asio/detail/recycled_signal.hpp"

#include <array>
#include <cstddef>
#include <utility>

namespace rondo::asio::detail {

namespace {

using boost::asio::cancellation_signal;

// The free signals of a thread.
struct cache {
    std::array<std::unique_ptr<cancellation_signal>, 64> free;
    std::size_t size = 0;
};

[[gnu::noinline]] cache& here() noexcept {
    thread_local cache signals;
    asm volatile("" ::: "memory");
    return signals;
}

struct nothing {
    void operator()(boost::asio::cancellation_type_t) const noexcept {}
};

}  // namespace

void recycled_signal::open() {
    cache& signals = here();
    signal_ = signals.size != 0 ? std::move(signals.free[--signals.size])
                                : std::make_unique<cancellation_signal>();
}

void recycled_signal::close() noexcept {
    if (!signal_) return;
    // Takes the place of what is there, in its memory. A slot that was not used has none, and is
    // left alone: this must not allocate, as the operation has ended and nobody is left to tell.
    if (auto slot = signal_->slot(); slot.has_handler()) slot.emplace<nothing>();
    cache& signals = here();
    if (signals.size < signals.free.size()) {
        signals.free[signals.size++] = std::move(signal_);
    } else {
        signal_.reset();
    }
}

}  // namespace rondo::asio::detail
