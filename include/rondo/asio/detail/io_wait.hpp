// io_wait.hpp: an operation of Asio inside a rondo task. remote_wait.hpp says who owns the frame.
//
// "There" is the executor of the I/O object. What the start and a request to cancel do is ordered
// there; hence the two flags between them are plain.
#pragma once

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <coroutine>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

#include "rondo/asio/detail/io_outcome.hpp"
#include "rondo/asio/detail/operation_memory.hpp"
#include "rondo/asio/detail/owner.hpp"
#include "rondo/asio/detail/recycled_signal.hpp"
#include "rondo/core/detail/frame_memory.hpp"
#include "rondo/core/detail/remote_wait.hpp"

namespace rondo::asio::detail {

using rondo::detail::frame_memory;

// What an asynchronous function was called with.
template <class Initiation, class... Given>
struct io_call {
    Initiation initiation;
    std::tuple<Given...> arguments;
};

// What starts the operation, and knows its place. Asio's adapters (as_tuple, append) put it into a
// wrapper of theirs, which in some versions of Asio names no executor.
template <class Initiation>
auto const& innermost(Initiation const& i) noexcept {
    constexpr bool knows = requires { typename Initiation::executor_type; };
    if constexpr (!knows && requires { i.initiation_; }) {
        return innermost(i.initiation_);
    } else {
        return i;
    }
}

// A function that is sent to the executor there. If it is destroyed without having run, because
// its context was, it says so.
template <class Wait, void (Wait::*Arrived)() noexcept, void (Wait::*Lost)() noexcept, class Memory>
class messenger {
  public:
    using allocator_type = Memory;

    messenger(Wait& from, Memory memory) noexcept : from_(&from), memory_(memory) {}
    messenger(messenger&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)), memory_(other.memory_) {}
    messenger& operator=(messenger&&) = delete;
    ~messenger() {
        if (from_ != nullptr) (from_->*Lost)();
    }

    allocator_type get_allocator() const noexcept { return memory_; }
    void operator()() noexcept { (std::exchange(from_, nullptr)->*Arrived)(); }

  private:
    Wait* from_;
    Memory memory_;
};

// The completion handler.
template <class Wait>
class io_handler {
  public:
    using allocator_type = operation_allocator<void>;
    using cancellation_slot_type = boost::asio::cancellation_slot;

    io_handler(Wait& to, operation_memory& memory) noexcept : to_(&to), memory_(memory) {}
    io_handler(io_handler&& other) noexcept
        : to_(std::exchange(other.to_, nullptr)), memory_(other.memory_), slot_(other.slot_) {}
    io_handler& operator=(io_handler&&) = delete;
    ~io_handler() {
        if (to_ != nullptr) to_->abandoned();
    }

    void listen(cancellation_slot_type slot) noexcept { slot_ = slot; }

    allocator_type get_allocator() const noexcept { return memory_; }
    cancellation_slot_type get_cancellation_slot() const noexcept { return slot_; }

    template <class... Given>
    void operator()(Given&&... given) noexcept {
        std::exchange(to_, nullptr)->completed(std::forward<Given>(given)...);
    }

  private:
    Wait* to_;
    allocator_type memory_;
    cancellation_slot_type slot_;
};

template <class Call, class Bounds, class... Args>
class io_wait final : rondo::detail::remote_wait<Bounds> {
    using outcome = io_outcome<Args...>;
    using place = boost::asio::associated_executor_t<
        std::decay_t<decltype(innermost(std::declval<Call&>().initiation))>>;
    using result = typename outcome::result;

  public:
    io_wait(Call& call, rondo::detail::promise_base& task, Bounds const& bounds) noexcept
        : rondo::detail::remote_wait<Bounds>(task, bounds),
          call_(call),
          there_(boost::asio::get_associated_executor(innermost(call.initiation))) {}

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept {
        return this->suspend();
    }
    result await_resume() {
        this->turn().spend();
        return outcome_.take(this->why() == wait_state::timed_out
                                 ? boost::asio::error::timed_out
                                 : boost::asio::error::operation_aborted);
    }

  private:
    friend io_handler<io_wait>;

    void send_start() noexcept override {
        if constexpr (is_a_place<place>) {
            using start_message =
                messenger<io_wait, &io_wait::start, &io_wait::lost, operation_allocator<void>>;
            go_there(there_, start_message{*this, operation_allocator<void>{memory_}});
        } else {
            start();
        }
    }
    void send_cancel() noexcept override {
        if constexpr (is_a_place<place>) {
            using cancel_message =
                messenger<io_wait, &io_wait::cancel, &io_wait::too_late, frame_memory<void>>;
            post_there(there_, cancel_message{*this, frame_memory<void>{}});
        } else {
            this->cancelled();
        }
    }
    bool aborted() const noexcept override { return outcome_.aborted(); }

    // There.
    void start() noexcept {
        if (!this->may_start()) return;
        try {
            // The first thing: whatever is thrown, it tells of the end.
            io_handler<io_wait> handler{*this, memory_};
            if (this->can_be_withdrawn()) {
                signal_.open();
                handler.listen(signal_.slot());
            }
            std::apply(
                [this, &handler](auto&... arguments) {
                    std::move(call_.initiation)(std::move(handler), std::move(arguments)...);
                },
                call_.arguments);
        } catch (...) {
            outcome_.fail(std::current_exception());  // the handler has been abandoned
        }
        started_ = true;
        if (cancelled_before_) signal_.emit();
        this->started();
    }
    void cancel() noexcept {
        if (started_) {
            signal_.emit();
        } else {
            cancelled_before_ = true;
        }
        this->cancelled();
    }
    template <class... Given>
    void completed(Given&&... given) noexcept {
        outcome_.set(std::forward<Given>(given)...);
        signal_.close();  // a request that comes now finds nobody
        this->ended();
    }

    // The context is gone.
    void lost() noexcept { this->never_started(); }
    void too_late() noexcept { this->cancelled(); }
    void abandoned() noexcept { this->ended(); }

    Call& call_;
    place there_;
    outcome outcome_;
    recycled_signal signal_;
    bool started_ = false;
    bool cancelled_before_ = false;
    operation_memory memory_;
};

}  // namespace rondo::asio::detail
