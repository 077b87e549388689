// mpsc_unbounded.hpp: senders of an mpsc channel without a limit. The contract is in mpsc.hpp.
#pragma once

#include <expected>
#include <utility>

#include "rondo/sync/detail/mpsc_sender.hpp"
#include "rondo/sync/mpsc_receiver.hpp"

namespace rondo::mpsc {

template <class T>
class [[nodiscard("dropping the last sender closes the channel")]] unbounded_sender
    : public detail::mpsc_sender<unbounded_sender<T>, T, detail::unlimited_room> {
  public:
    using detail::mpsc_sender<unbounded_sender<T>, T, detail::unlimited_room>::mpsc_sender;

    // Never waits. The value comes back if the receiver has closed or is gone.
    std::expected<void, T> send(T value) const {
        if (this->channel().push(value)) return {};
        return std::unexpected<T>{std::move(value)};
    }
};

template <class T>
using unbounded_receiver = basic_receiver<T, detail::unlimited_room>;
template <class T>
using weak_unbounded_sender = basic_weak_sender<unbounded_sender<T>>;

template <class T>
struct unbounded_ends {
    unbounded_sender<T> sender;
    unbounded_receiver<T> receiver;
};

// Throws std::bad_alloc if there is no memory.
template <class T>
[[nodiscard("a channel is its two ends")]] unbounded_ends<T> unbounded() {
    static_assert(detail::is_message<T>, "a message is an object that moves without throwing");
    auto& shared = *new detail::mpsc_channel<T, detail::unlimited_room>{{}};
    return {unbounded_sender<T>{shared}, unbounded_receiver<T>{shared}};
}

}  // namespace rondo::mpsc
