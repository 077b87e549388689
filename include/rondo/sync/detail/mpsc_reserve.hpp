// mpsc_reserve.hpp: the operations that wait for room in a bounded mpsc channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <utility>

#include "rondo/core/wait_error.hpp"
#include "rondo/sync/detail/mpsc_room.hpp"
#include "rondo/sync/mpsc_permit.hpp"

namespace rondo::mpsc {

enum class send_error : std::uint8_t {
    closed,  // the receiver has closed or is gone
    full,    // try_send(): no room now, or others wait for it
    stopped,
    timed_out,
};

// A value that was not sent, and why.
template <class T>
struct unsent {
    send_error why;
    T value;
};

enum class reserve_error : std::uint8_t {
    closed,    // the receiver has closed or is gone
    too_many,  // reserve_many(): more than the channel has room for when it is empty
    stopped,
    timed_out,
};

enum class try_reserve_error : std::uint8_t {
    closed,
    too_many,
    full,  // no room now, or others wait for it
};

}  // namespace rondo::mpsc

namespace rondo::detail {

template <class T>
class mpsc_send_op : public mpsc_request<T> {
  public:
    mpsc_send_op(bounded_channel<T>& c, T&& value) noexcept
        : mpsc_request<T>(c, 1), value_(std::move(value)) {}

    std::expected<void, mpsc::unsent<T>> take() {
        if (!this->refused() && this->room().push(value_)) return {};
        return std::unexpected{back(mpsc::send_error::closed)};
    }
    mpsc::unsent<T> refuse(wait_error why) noexcept { return back(reason<mpsc::send_error>(why)); }
    mpsc::unsent<T> back(mpsc::send_error why) noexcept { return {why, std::move(value_)}; }

  private:
    T value_;
};

// The part that requests for permits have in common.
template <class T>
class mpsc_reserving : public mpsc_request<T> {
  public:
    using mpsc_request<T>::mpsc_request;

    mpsc::reserve_error refuse(wait_error why) const noexcept {
        return reason<mpsc::reserve_error>(why);
    }
};

template <class T>
class mpsc_reserve_op : public mpsc_reserving<T> {
  public:
    using mpsc_reserving<T>::mpsc_reserving;

    std::expected<mpsc::permit<T>, mpsc::reserve_error> take() noexcept {
        if (this->refused()) return std::unexpected{mpsc::reserve_error::closed};
        return mpsc::permit<T>{this->room()};
    }
};

template <class T>
class mpsc_reserve_many_op : public mpsc_reserving<T> {
  public:
    // Too many: it asks for none, which is there at once, and says so then.
    mpsc_reserve_many_op(bounded_channel<T>& c, std::size_t n) noexcept
        : mpsc_reserving<T>(c, n <= c.room().size() ? n : 0), too_many_(n > c.room().size()) {}

    std::expected<mpsc::permits<T>, mpsc::reserve_error> take() noexcept {
        if (too_many_) return std::unexpected{mpsc::reserve_error::too_many};
        if (this->refused()) return std::unexpected{mpsc::reserve_error::closed};
        return mpsc::permits<T>{this->room()};
    }

  private:
    bool too_many_;
};

template <class T>
class mpsc_reserve_owned_op : public mpsc_reserving<T> {
  public:
    mpsc_reserve_owned_op(bounded_channel<T>& c, mpsc::sender<T> from) noexcept
        : mpsc_reserving<T>(c, 1), sender_(std::move(from)) {}

    std::expected<mpsc::owned_permit<T>, mpsc::reserve_error> take() noexcept {
        if (this->refused()) return std::unexpected{mpsc::reserve_error::closed};
        return mpsc::owned_permit<T>{std::move(sender_), this->room()};
    }

  private:
    mpsc::sender<T> sender_;
};

// The form that does not wait.
template <class Op>
auto try_to_reserve(Op op) noexcept
    -> std::expected<typename decltype(op.take())::value_type, mpsc::try_reserve_error> {
    if (!op.ready()) return std::unexpected{mpsc::try_reserve_error::full};
    auto taken = op.take();
    if (taken) return std::move(*taken);
    return std::unexpected{taken.error() == mpsc::reserve_error::too_many
                               ? mpsc::try_reserve_error::too_many
                               : mpsc::try_reserve_error::closed};
}

}  // namespace rondo::detail
