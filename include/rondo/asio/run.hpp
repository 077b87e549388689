// run.hpp: a task as an asynchronous operation of Boost.Asio.
//
//   boost::asio::awaitable<void> session(tcp::socket s) {
//       reply r = co_await rondo::asio::run(answer(request));      // answer is a rondo::task
//   }
//
// Guarantee      the task runs on the handler's associated executor, as a flow of its own: with a
//                strand below it, it excludes what else runs there. The handler follows when the
//                task has ended and its frame is gone.
// Completion     as in wait.hpp: co_await gives the task's result, and throws what it threw.
// Cancellation   requests stop of the task's environment. A task that is stopped unwinds, and the
//                operation completes with system_error(operation_aborted); one that completes
//                first gives its result. As with all of Asio, emit signals where the handler runs.
// Timers         default_timers().
// Shutdown       a task cannot be destroyed while it waits, it can only be stopped: cancel it and
//                run the context until it has ended. A context that is destroyed before leaves
//                the task behind, with what it holds.
// Allocation     one block beside the task's frame, as in wait.hpp.
#pragma once

#include <boost/asio/async_result.hpp>
#include <type_traits>
#include <utility>

#include "rondo/asio/detail/await.hpp"
#include "rondo/asio/detail/outcome.hpp"
#include "rondo/asio/detail/task_operation.hpp"
#include "rondo/core/detail/as_task.hpp"
#include "rondo/core/task.hpp"

namespace rondo::asio {

template <class T>
class [[nodiscard("a task does nothing until it is awaited")]] running {
    static_assert(!std::is_reference_v<T>, "Asio passes results on by value");

  public:
    using signature = typename detail::outcome<T>::signature;

    explicit running(task<T> t) noexcept : task_(std::move(t)) {}

    template <boost::asio::completion_token_for<signature> Token>
    auto operator()(Token&& token) && {
        return boost::asio::async_initiate<Token, signature>(detail::initiate_task{}, token,
                                                             std::move(task_));
    }

  private:
    task<T> task_;
};

template <class T>
running<T> run(task<T> t) noexcept {
    return running<T>{std::move(t)};
}
// Whatever else a task can await and Asio cannot: once_cell::get_or_init(), wait() of an enabled
// notified, when_any().
template <class Awaitable>
running<rondo::detail::await_result_t<Awaitable>> run(Awaitable a) {
    return run(rondo::detail::as_task(std::move(a)));
}

}  // namespace rondo::asio
