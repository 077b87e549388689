// wait_operation.hpp: a wait as Asio sees it: one block with the operation, its hooks, the handler.
//
// Who owns the block
//   waiting      the queue it waits in; pending_waits knows it too, for the end of the context.
//   decided      whoever decided, until its waker has posted the block to the handler's executor.
//   posted       the posted function. It delivers when it runs; destroyed without having run, it
//                hands on what was granted.
#pragma once

#include <boost/asio/execution_context.hpp>
#include <memory>
#include <type_traits>
#include <utility>

#include "rondo/asio/detail/associated.hpp"
#include "rondo/asio/detail/outcome.hpp"
#include "rondo/asio/detail/pending_waits.hpp"
#include "rondo/core/detail/wait_bounds.hpp"
#include "rondo/core/timer_queue.hpp"

namespace rondo::asio::detail {

template <class Op, class Bounds, class Handler>
class wait_operation final : pending_wait {
  public:
    wait_operation(associated<Handler> handler, Op op, Bounds const& bounds) noexcept
        : op_(std::move(op)), bounds_(bounds), hooks_(op_, bounds_), handler_(std::move(handler)) {}

    static void start(associated<Handler> handler, Op op, Bounds const& bounds) {
        owner<&wait_operation::destroy> self{
            make_operation<wait_operation>(std::move(handler), std::move(op), bounds)};
        if (rondo::detail::ready_revocably(self->op_)) return self.release()->post();
        self->connect();
        self.release()->enter();
    }

  private:
    static constexpr bool bounded = !std::is_same_v<Bounds, rondo::detail::no_bounds>;
    static constexpr wait_state cancelled = bounded ? wait_state::interrupted : wait_state::stopped;

    // Owns a block that nobody else can reach; Last ends it.
    template <void (wait_operation::*Last)() noexcept>
    struct ends_with {
        void operator()(wait_operation* w) const noexcept { (w->*Last)(); }
    };
    template <void (wait_operation::*Last)() noexcept>
    using owner = std::unique_ptr<wait_operation, ends_with<Last>>;

    // All of the preparation that can throw.
    void connect() {
        context_ = &boost::asio::use_service<pending_waits>(handler_.context());
        handler_.on_cancel([this] { op_.withdraw(cancelled); });
    }

    void enter() noexcept {
        context_->add(*this);
        op_.wake_with({&wake, this});
        hooks_.arm([]() -> timer_service& { return default_timers(); });
        if (op_.enter()) wake(this);  // else the block is the queue's now
    }

    static void wake(void* self) noexcept {
        auto& w = *static_cast<wait_operation*>(self);
        pending_waits::hand_over const posting{*w.context_, w};
        w.post();
    }

    void post() noexcept {
        handler_.post(
            [self = owner<&wait_operation::drop>{this}]() mutable { self.release()->deliver(); });
    }

    // On the handler's executor.
    void deliver() {
        hooks_.disarm();
        handler_.disconnect();
        auto outcome = outcome_of(!bounded && withdrawn(),
                                  [this] { return rondo::detail::result_of<Bounds>(op_); });
        associated<Handler> handler = std::move(handler_);
        destroy_operation(this, handler.template memory<wait_operation>());
        std::move(outcome).pass_to(std::move(handler.function()));
    }

    // Decided, but its executor will not run it any more.
    void drop() noexcept {
        hooks_.disarm();
        if (!withdrawn()) op_.hand_on();
        destroy();
    }

    bool abandon() noexcept override {
        hooks_.disarm();
        if (!op_.leave()) return false;
        destroy();
        return true;
    }

    // The slot is left alone: its signal may be gone already.
    void destroy() noexcept { destroy_operation(this, handler_.template memory<wait_operation>()); }

    // An operation that was ready has no state.
    bool withdrawn() const noexcept {
        return op_.state() != wait_state::idle && op_.state() != wait_state::granted;
    }

    Op op_;
    [[no_unique_address]] Bounds bounds_;
    [[no_unique_address]] rondo::detail::hooks_of<Bounds> hooks_;
    associated<Handler> handler_;
    pending_waits* context_ = nullptr;
};

struct initiate_wait {
    template <class Handler, class Op, class Bounds>
    void operator()(Handler handler, Op op, Bounds const& bounds) const {
        wait_operation<Op, Bounds, Handler>::start(associated<Handler>{std::move(handler)},
                                                   std::move(op), bounds);
    }
};

}  // namespace rondo::asio::detail
