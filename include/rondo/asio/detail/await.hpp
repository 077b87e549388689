// await.hpp: unwraps granted<R> where an asio::awaitable awaits it.
//
// use_awaitable is customised as Asio means it to be, through async_result. An operation that is
// awaited as it is has no such place: Asio picks a handler by the completion signature, in its
// namespace detail, and that handler's resume() makes the result of co_await. Hence the one
// specialisation of a detail of Asio. It adds the unwrapping to Asio's own handler for a single
// value and touches nothing else. Rejected: giving the wrapper to the user (every co_await would
// need another *), and asking for default-constructible results as Asio does (a permit is not).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "rondo/asio/detail/outcome.hpp"
#include "rondo/asio/granted.hpp"

namespace boost::asio {

namespace detail {

template <class R, class Executor>
class awaitable_async_op_handler<void(std::exception_ptr, rondo::asio::granted<R>), Executor>
    : public awaitable_async_op_handler<void(rondo::asio::detail::outcome<R>), Executor> {
    using outcome = rondo::asio::detail::outcome<R>;
    using single = awaitable_async_op_handler<void(outcome), Executor>;

  public:
    using single::single;

    void operator()(std::exception_ptr failure, rondo::asio::granted<R> value) {
        single::operator()(outcome{std::move(failure), std::move(value)});
    }
    static R resume(typename single::result_type& result) { return single::resume(result).get(); }
};

}  // namespace detail

template <class Executor, class R>
class async_result<use_awaitable_t<Executor>, void(std::exception_ptr, rondo::asio::granted<R>)> {
  public:
    using return_type = awaitable<R, Executor>;

    template <class Initiation, class... Args>
    static return_type initiate(Initiation initiation, use_awaitable_t<Executor>, Args... args) {
        auto operation =
            async_initiate<deferred_t const&, void(std::exception_ptr, rondo::asio::granted<R>)>(
                std::move(initiation), deferred, std::move(args)...);
        co_return co_await std::move(operation);
    }
};

}  // namespace boost::asio
