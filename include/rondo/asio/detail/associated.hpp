// associated.hpp: a handler with what belongs to it: executor, outstanding work, memory, slot.
//
// Only post() may be called by any thread. All else, and the destructor, belongs to the places
// where Asio itself uses a handler: where the operation is initiated, on the handler's executor,
// and where the context is destroyed.
#pragma once

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <memory>
#include <utility>

#include "rondo/core/detail/frame_memory.hpp"

namespace rondo::asio::detail {

using rondo::detail::frame_memory;

template <class Handler>
class associated {
  public:
    using executor_type = boost::asio::associated_executor_t<Handler>;
    template <class T>
    using memory_of = typename std::allocator_traits<
        boost::asio::associated_allocator_t<Handler, frame_memory<void>>>::template rebind_alloc<T>;

    explicit associated(Handler handler) noexcept
        : handler_(std::move(handler)), work_(boost::asio::get_associated_executor(handler_)) {}

    executor_type get_executor() const noexcept { return work_.get_executor(); }
    boost::asio::execution_context& context() const noexcept {
        return boost::asio::query(get_executor(), boost::asio::execution::context);
    }
    template <class T>
    memory_of<T> memory() const noexcept {
        return memory_of<T>{boost::asio::get_associated_allocator(handler_, frame_memory<void>{})};
    }

    // Out of memory here ends the program: a wake-up can neither fail nor wait.
    template <class Function>
    void post(Function function) const noexcept {
        boost::asio::post(work_.get_executor(), std::move(function));
    }

    // Asio's three kinds of cancellation are one to us: what is cancelled has taken nothing.
    template <class Function>
    void on_cancel(Function called) {
        auto slot = boost::asio::get_associated_cancellation_slot(handler_);
        if (!slot.is_connected()) return;
        slot.assign([called](boost::asio::cancellation_type_t type) {
            if (type != boost::asio::cancellation_type::none) called();
        });
    }
    void disconnect() noexcept {
        auto slot = boost::asio::get_associated_cancellation_slot(handler_);
        if (slot.is_connected()) slot.clear();
    }

    // The work ends with this object, so after the handler has run.
    Handler& function() noexcept { return handler_; }

  private:
    Handler handler_;
    boost::asio::executor_work_guard<executor_type> work_;
};

// Makes an operation in memory that belongs to its handler; destroy_operation() ends it.
template <class Operation, class Handler, class... Args>
Operation* make_operation(associated<Handler> handler, Args&&... args) {
    auto memory = handler.template memory<Operation>();
    Operation* const block = std::allocator_traits<decltype(memory)>::allocate(memory, 1);
    return std::construct_at(block, std::move(handler), std::forward<Args>(args)...);
}

template <class Operation, class Memory>
void destroy_operation(Operation* operation, Memory memory) noexcept {
    std::destroy_at(operation);
    std::allocator_traits<Memory>::deallocate(memory, operation, 1);
}

}  // namespace rondo::asio::detail
