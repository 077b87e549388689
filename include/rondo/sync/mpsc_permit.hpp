// mpsc_permit.hpp: room in a bounded mpsc channel that is reserved for a value to come.
//
// Guarantee      whoever holds a permit can send without waiting, also after the receiver closed:
//                as long as permits are out the receiver waits for what comes with them. A permit
//                that is destroyed unused gives its room to the next sender in line.
// Lifetime       a permit, and permits, do not outlive the sender they come from. An owned_permit
//                is a sender too: it keeps the channel open, and may be kept anywhere.
// Thread safety  a permit belongs to one thread at a time.
// Failure        send() gives the value back when the receiver was destroyed. It throws
//                std::bad_alloc when there is no memory for a block; the permit is good then still.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <utility>

#include "rondo/sync/detail/mpsc_room.hpp"
#include "rondo/sync/detail/mpsc_sender.hpp"

namespace rondo::mpsc {

// Room for one value.
template <class T>
class [[nodiscard("dropping a permit gives its room back")]] permit {
  public:
    explicit permit(detail::held_room<T> room) noexcept : room_(std::move(room)) {}

    // Uses the permit up, without waiting.
    std::expected<void, T> send(T value) {
        if (room_.push(value)) return {};
        return std::unexpected<T>{std::move(value)};
    }

  private:
    detail::held_room<T> room_;
};

// Room for several values.
template <class T>
class [[nodiscard("dropping permits gives their room back")]] permits {
  public:
    explicit permits(detail::held_room<T> room) noexcept : room_(std::move(room)) {}

    std::size_t size() const noexcept { return room_.count(); }
    bool empty() const noexcept { return room_.count() == 0; }

    // Takes one of them out; nothing when none is left.
    std::optional<permit<T>> next() noexcept {
        if (empty()) return std::nullopt;
        return permit<T>{room_.split_one()};
    }

  private:
    detail::held_room<T> room_;
};

// Room for one value, and a sender.
template <class T>
class [[nodiscard("dropping a permit gives its room back")]] owned_permit {
  public:
    owned_permit(sender<T> from, detail::held_room<T> room) noexcept
        : sender_(std::move(from)), room_(std::move(room)) {}
    owned_permit(owned_permit&&) noexcept = default;
    owned_permit& operator=(owned_permit&& other) noexcept {
        room_ = std::move(other.room_);  // the old room is given back while its channel is there
        sender_ = std::move(other.sender_);
        return *this;
    }
    ~owned_permit() = default;

    // Uses the permit up, without waiting, and gives the sender back.
    std::expected<sender<T>, T> send(T value) {
        if (room_.push(value)) return std::move(sender_);
        return std::unexpected<T>{std::move(value)};
    }
    // Gives the room back, and the sender.
    sender<T> release() noexcept {
        {
            detail::held_room<T> const unused{std::move(room_)};
        }
        return std::move(sender_);
    }

    bool same_channel(sender<T> const& other) const noexcept { return sender_.same_channel(other); }
    bool same_channel(owned_permit const& other) const noexcept {
        return same_channel(other.sender_);
    }

  private:
    sender<T> sender_;
    detail::held_room<T> room_;  // given back before the sender goes
};

}  // namespace rondo::mpsc
