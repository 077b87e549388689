// wait.hpp: makes every wait of Rondo an asynchronous operation of Boost.Asio.
//
//   boost::asio::awaitable<void> client(semaphore& limit) {
//       auto permit = co_await limit.acquire();             // throws when it is cancelled
//       auto maybe = co_await limit.acquire_for(1, 10ms);   // does not throw: a value
//   }
//   limit.acquire()([](std::exception_ptr, rondo::asio::granted<semaphore::acquired>) { ... });
//
// Including this header is all it takes: wait<Op> and bounded_wait<Op> are then awaited as they
// are inside boost::asio::awaitable<>, and called with any completion token.
//
// Guarantee      the same queue and the same turns as for tasks, threads and other coroutines.
// Completion     the handler gets (std::exception_ptr, granted<R>), see granted.hpp; co_await and
//                use_awaitable give R itself. For a bounded wait R is the expected.
// Resumption     through the handler's associated executor, as if by post: never inside the call
//                that grants or initiates it, never under a lock. Until then the wait counts as
//                outstanding work, so io_context::run() does not return.
// Cancellation   by the associated cancellation slot, with any type of cancellation: a cancelled
//                wait has taken nothing. A plain wait completes with system_error
//                (operation_aborted); a bounded one with wait_error::stopped, or what the
//                operation gives back instead. What was granted before the signal is delivered.
//                Asio's signals are not thread-safe: emit them where the handler runs.
// Deadlines      are kept by default_timers(), as Asio has no environment; its thread only posts.
// Shutdown       a context that is destroyed takes its waits along: each leaves its queue, or
//                hands on what it was granted, and its handler is destroyed. The primitive must
//                outlive its waits; a thread may be releasing meanwhile.
// Allocation     one block for the operation, from the handler's associated allocator if it has
//                one, else recycled (frame_allocator.hpp); it is freed before the handler runs.
//                The wake-up costs what boost::asio::post() costs in the waking thread: Asio
//                recycles its memory inside run() and allocates elsewhere.
// Example        examples/asio/shared_limit.cpp
#pragma once

#include <boost/asio/async_result.hpp>
#include <concepts>
#include <utility>

#include "rondo/asio/detail/await.hpp"
#include "rondo/asio/detail/outcome.hpp"
#include "rondo/asio/detail/wait_operation.hpp"
#include "rondo/asio/granted.hpp"
#include "rondo/core/wait.hpp"

namespace rondo {

namespace asio::detail {

template <class Op, class Bounds>
using signature_of =
    typename outcome<decltype(rondo::detail::result_of<Bounds>(std::declval<Op&>()))>::signature;

}  // namespace asio::detail

// What wait<Op>::operator() looks for.
template <std::derived_from<waiter> Op, class Bounds,
          boost::asio::completion_token_for<asio::detail::signature_of<Op, Bounds>> Token>
auto rondo_initiate(Op op, Bounds bounds, Token&& token) {
    return boost::asio::async_initiate<Token, asio::detail::signature_of<Op, Bounds>>(
        asio::detail::initiate_wait{}, token, std::move(op), std::move(bounds));
}

}  // namespace rondo
