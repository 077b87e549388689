// task_operation.hpp: a task as Asio sees it: one block with its executor, its root, the handler.
//
// The block belongs to the task until that has ended, and to the posted delivery from then on.
#pragma once

#include <coroutine>
#include <memory>
#include <utility>

#include "rondo/asio/asio_executor.hpp"
#include "rondo/asio/detail/associated.hpp"
#include "rondo/asio/detail/outcome.hpp"
#include "rondo/core/detail/result_slot.hpp"
#include "rondo/core/environment.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/task.hpp"

namespace rondo::asio::detail {

template <class T, class Handler>
class task_operation final : rondo::detail::kept_result<T>, rondo::detail::resumption {
  public:
    task_operation(associated<Handler> handler, task<T> child) noexcept
        : handler_(std::move(handler)), child_(std::move(child)) {}

    static void start(associated<Handler> handler, task<T> child) {
        owner self{make_operation<task_operation>(std::move(handler), std::move(child))};
        self->handler_.on_cancel([&stop = self->stop_] { stop.request_stop(); });
        self->flow_.suspend_at(*self);
        self.release()->flow_.post();
    }

  private:
    struct destroyer {
        void operator()(task_operation* t) const noexcept {
            destroy_operation(t, t->handler_.template memory<task_operation>());
        }
    };
    using owner = std::unique_ptr<task_operation, destroyer>;

    task_trace describe() const override {
        return rondo::detail::trace_from(*child_.promise(), task_trace::activity::not_begun);
    }
    std::coroutine_handle<> on_turn() noexcept override { return child_.start(*this, env_); }

    std::coroutine_handle<> completed() noexcept override {
        {
            task<T> const done{std::move(child_)};
        }  // parameters are destroyed before anyone knows
        post();
        return std::noop_coroutine();
    }
    rondo::detail::unwound stopped() noexcept override {
        child_.forget();
        post();
        return rondo::detail::unwound::resume(std::noop_coroutine());
    }

    // Not in place: the task's executor is current here, and goes with the block.
    void post() noexcept {
        handler_.post([self = owner{this}]() mutable { self.release()->deliver(); });
    }

    void deliver() {
        handler_.disconnect();
        auto outcome = outcome_of(!this->has_result(), [this] { return this->take(); });
        associated<Handler> handler = std::move(handler_);
        destroy_operation(this, handler.template memory<task_operation>());
        std::move(outcome).pass_to(std::move(handler.function()));
    }

    associated<Handler> handler_;
    asio_executor<typename associated<Handler>::executor_type> where_{handler_.get_executor()};
    stop_source stop_;
    rondo::detail::flow flow_{where_};
    environment env_{&where_, stop_.token(), &flow_};
    task<T> child_;
};

struct initiate_task {
    template <class Handler, class T>
    void operator()(Handler handler, task<T> child) const {
        task_operation<T, Handler>::start(associated<Handler>{std::move(handler)},
                                          std::move(child));
    }
};

}  // namespace rondo::asio::detail
