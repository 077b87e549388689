// mpsc_bounded.hpp: senders of an mpsc channel with room for so many values. The contract is in
// mpsc.hpp, that of permits in mpsc_permit.hpp.
#pragma once

#include <cstddef>
#include <expected>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/sync/detail/mpsc_reserve.hpp"
#include "rondo/sync/detail/mpsc_sender.hpp"
#include "rondo/sync/mpsc_permit.hpp"
#include "rondo/sync/mpsc_receiver.hpp"

namespace rondo::mpsc {

template <class T>
class [[nodiscard("dropping the last sender closes the channel")]] sender
    : public detail::mpsc_sender<sender<T>, T, detail::limited_room> {
    using send_op = detail::mpsc_send_op<T>;
    using reserve_op = detail::mpsc_reserve_op<T>;
    using reserve_many_op = detail::mpsc_reserve_many_op<T>;
    using reserve_owned_op = detail::mpsc_reserve_owned_op<T>;
    using sent = std::expected<void, unsent<T>>;
    using reserved = std::expected<permit<T>, reserve_error>;
    using reserved_many = std::expected<permits<T>, reserve_error>;
    using reserved_owned = std::expected<owned_permit<T>, reserve_error>;

  public:
    using detail::mpsc_sender<sender<T>, T, detail::limited_room>::mpsc_sender;

    // Sends when there is room. A send that fails gives the value back; one that is stopped by the
    // environment destroys it with the task.
    wait<send_op> send(T value) const noexcept {
        return wait<send_op>{std::in_place, this->channel(), std::move(value)};
    }
    bounded_wait<send_op> send(T value, stop_token t) const noexcept { return sending(value, t); }
    bounded_wait<send_op> send_until(T value, time_point d, stop_token t = {}) const noexcept {
        return sending(value, {d, t});
    }
    bounded_wait<send_op> send_for(T value, clock::duration d, stop_token t = {}) const noexcept {
        return sending(value, {d, t});
    }
    sent blocking_send(T value) const { return blocking_wait(sending(value)); }
    sent blocking_send(T value, stop_token t) const { return blocking_wait(sending(value), t); }
    sent blocking_send_until(T value, time_point d, stop_token t = {}) const {
        return blocking_wait(sending(value), {d, t});
    }
    sent blocking_send_for(T value, clock::duration d, stop_token t = {}) const {
        return blocking_wait(sending(value), {d, t});
    }
    // Sends if there is room and nobody waits for it.
    sent try_send(T value) const {
        send_op op = sending(value);
        if (op.ready()) return op.take();
        return std::unexpected{op.back(send_error::full)};
    }

    // Room for one value.
    wait<reserve_op> reserve() const noexcept { return reserving(); }
    bounded_wait<reserve_op> reserve(stop_token t) const noexcept { return {reserving(), t}; }
    bounded_wait<reserve_op> reserve_until(time_point d, stop_token t = {}) const noexcept {
        return {reserving(), {d, t}};
    }
    bounded_wait<reserve_op> reserve_for(clock::duration d, stop_token t = {}) const noexcept {
        return {reserving(), {d, t}};
    }
    reserved blocking_reserve() const { return blocking_wait(reserving()); }
    reserved blocking_reserve(stop_token t) const { return blocking_wait(reserving(), t); }
    reserved blocking_reserve_until(time_point d, stop_token t = {}) const {
        return blocking_wait(reserving(), {d, t});
    }
    reserved blocking_reserve_for(clock::duration d, stop_token t = {}) const {
        return blocking_wait(reserving(), {d, t});
    }
    std::expected<permit<T>, try_reserve_error> try_reserve() const noexcept {
        return detail::try_to_reserve(reserving());
    }

    // Room for n values, taken together.
    wait<reserve_many_op> reserve_many(std::size_t n) const noexcept { return reserving(n); }
    bounded_wait<reserve_many_op> reserve_many(std::size_t n, stop_token t) const noexcept {
        return {reserving(n), t};
    }
    bounded_wait<reserve_many_op> reserve_many_until(std::size_t n, time_point d,
                                                     stop_token t = {}) const noexcept {
        return {reserving(n), {d, t}};
    }
    bounded_wait<reserve_many_op> reserve_many_for(std::size_t n, clock::duration d,
                                                   stop_token t = {}) const noexcept {
        return {reserving(n), {d, t}};
    }
    reserved_many blocking_reserve_many(std::size_t n) const { return blocking_wait(reserving(n)); }
    reserved_many blocking_reserve_many(std::size_t n, stop_token t) const {
        return blocking_wait(reserving(n), t);
    }
    reserved_many blocking_reserve_many_until(std::size_t n, time_point d,
                                              stop_token t = {}) const {
        return blocking_wait(reserving(n), {d, t});
    }
    reserved_many blocking_reserve_many_for(std::size_t n, clock::duration d,
                                            stop_token t = {}) const {
        return blocking_wait(reserving(n), {d, t});
    }
    std::expected<permits<T>, try_reserve_error> try_reserve_many(std::size_t n) const noexcept {
        return detail::try_to_reserve(reserving(n));
    }

    // Room for one value, with a sender of its own.
    wait<reserve_owned_op> reserve_owned() const noexcept { return reserving_owned(); }
    bounded_wait<reserve_owned_op> reserve_owned(stop_token t) const noexcept {
        return {reserving_owned(), t};
    }
    bounded_wait<reserve_owned_op> reserve_owned_until(time_point d,
                                                       stop_token t = {}) const noexcept {
        return {reserving_owned(), {d, t}};
    }
    bounded_wait<reserve_owned_op> reserve_owned_for(clock::duration d,
                                                     stop_token t = {}) const noexcept {
        return {reserving_owned(), {d, t}};
    }
    reserved_owned blocking_reserve_owned() const { return blocking_wait(reserving_owned()); }
    reserved_owned blocking_reserve_owned(stop_token t) const {
        return blocking_wait(reserving_owned(), t);
    }
    reserved_owned blocking_reserve_owned_until(time_point d, stop_token t = {}) const {
        return blocking_wait(reserving_owned(), {d, t});
    }
    reserved_owned blocking_reserve_owned_for(clock::duration d, stop_token t = {}) const {
        return blocking_wait(reserving_owned(), {d, t});
    }
    std::expected<owned_permit<T>, try_reserve_error> try_reserve_owned() const noexcept {
        return detail::try_to_reserve(reserving_owned());
    }

    // How many values can be sent now without waiting, and how many on an empty channel.
    std::size_t capacity() const noexcept { return this->channel().room().free(); }
    std::size_t max_capacity() const noexcept { return this->channel().room().size(); }

  private:
    send_op sending(T& value) const noexcept { return {this->channel(), std::move(value)}; }
    bounded_wait<send_op> sending(T& value, wait_bounds bounds) const noexcept {
        return {bounds, std::in_place, this->channel(), std::move(value)};
    }
    reserve_op reserving() const noexcept { return {this->channel(), 1}; }
    reserve_many_op reserving(std::size_t n) const noexcept { return {this->channel(), n}; }
    reserve_owned_op reserving_owned() const noexcept { return {this->channel(), *this}; }
};

template <class T>
using receiver = basic_receiver<T, detail::limited_room>;
template <class T>
using weak_sender = basic_weak_sender<sender<T>>;

template <class T>
struct ends {
    mpsc::sender<T> sender;
    mpsc::receiver<T> receiver;
};

// Room for `capacity` values, at least one. Throws std::bad_alloc if there is no memory.
template <class T>
[[nodiscard("a channel is its two ends")]] ends<T> channel(std::size_t capacity) {
    static_assert(detail::is_message<T>, "a message is an object that moves without throwing");
    RONDO_ASSERT(capacity > 0, "a bounded channel has room for one value at least");
    auto& shared = *new detail::bounded_channel<T>{capacity};
    return {sender<T>{shared}, receiver<T>{shared}};
}

}  // namespace rondo::mpsc
