// outcome.hpp: how an operation ended, on its way from the operation's memory to the handler.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <exception>
#include <utility>

#include "rondo/asio/granted.hpp"

namespace rondo::asio::detail {

template <class R>
class outcome {
  public:
    using signature = void(std::exception_ptr, granted<R>);

    explicit outcome(std::exception_ptr failure, granted<R> value = {}) noexcept
        : failure_(std::move(failure)), value_(std::move(value)) {}

    template <class Take>
    static outcome of(Take& take) noexcept {
        try {
            return outcome{nullptr, granted<R>{take()}};
        } catch (...) {
            return outcome{std::current_exception()};
        }
    }

    template <class Handler>
    void pass_to(Handler handler) && {
        std::move(handler)(std::move(failure_), std::move(value_));
    }

    R get() && {
        if (!value_) std::rethrow_exception(std::move(failure_));
        return *std::move(value_);
    }

  private:
    std::exception_ptr failure_;
    granted<R> value_;
};

template <>
class outcome<void> {
  public:
    using signature = void(std::exception_ptr);

    explicit outcome(std::exception_ptr failure) noexcept : failure_(std::move(failure)) {}

    template <class Take>
    static outcome of(Take& take) noexcept {
        try {
            take();
            return outcome{nullptr};
        } catch (...) {
            return outcome{std::current_exception()};
        }
    }

    template <class Handler>
    void pass_to(Handler handler) && {
        std::move(handler)(std::move(failure_));
    }

  private:
    std::exception_ptr failure_;
};

// A cancelled operation has none, and says so as Asio's own do. Else it is what `take` gives.
template <class Take>
auto outcome_of(bool cancelled, Take take) noexcept {
    using result = outcome<decltype(take())>;
    if (!cancelled) return result::of(take);
    return result{std::make_exception_ptr(boost::system::system_error(
        boost::asio::error::make_error_code(boost::asio::error::operation_aborted)))};
}

}  // namespace rondo::asio::detail
