// job_result.hpp: what a job of a thread pool returns, for whoever submitted it.
//
//   job_result<int> r = pool.submit([] { return 6 * 7; });
//   auto v = co_await r.get();      // expected<int, job_error>
//   auto w = r.blocking_get();      // the same for a plain thread
//
// Guarantee      it completes exactly once: with the value, with the exception, or with the reason
//                why the job never ran. Nobody waits for a job that was dropped.
// Taking         once: get() after a get() that gave the value or the exception is a programmer's
//                error. (Why a job never ran may be asked again.)
// Exceptions     of the job are rethrown by get(). If the handle and its gets are gone before
//                anybody took one, it goes to the pool's hook.
// Lifetime       a get may outlive its handle, and a result its pool, which ends or drops the job
//                first. The hook is kept for as long as there is a result with an exception.
// Thread safety  one taker at a time; ended() from any thread.
// Memory order   what the job did is visible after get().
// Cancellation   a get() that is stopped or timed out leaves the job alone; get() may be called
//                again.
// Memory         one block for the closure, the result and those who wait.
#pragma once

#include <cstdint>
#include <exception>
#include <expected>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "rondo/core/assert.hpp"
#include "rondo/core/detail/result_slot.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/exec/detail/pool_job.hpp"

namespace rondo {

// Why there is no result.
enum class job_error : std::uint8_t {
    // The job did not run.
    full,     // there was no room
    closed,   // the pool had been stopped
    dropped,  // the pool was stopped before the job could start
    // get() gave up; the job runs.
    stopped,
    timed_out,
};

namespace detail {

// What a job, its handle and whoever waits for it share.
template <class T>
class result_state : public wait_queue {
    static_assert(!std::is_reference_v<T>, "a job returns a value: wrap a reference");

  public:
    // (Asserted here, where the compiler says it once and goes on.)
    result_state() noexcept {
        static_assert(!turn_bound<T>,
                      "this result holds a lock, and would hold it while others run: let the job "
                      "return what is needed of it");
    }

    bool ended() noexcept {
        std::lock_guard const guard{lock()};
        return ended_;
    }
    // By the one taker, after the end.
    std::expected<T, job_error> take() {
        if (auto* const lost = std::get_if<job_error>(&result_)) return std::unexpected{*lost};
        RONDO_ASSERT(!taken_, "a result is taken once");
        taken_ = true;
        if (auto* const e = std::get_if<std::exception_ptr>(&result_)) {
            std::rethrow_exception(std::exchange(*e, nullptr));
        }
        if constexpr (std::is_void_v<T>) {
            return {};
        } else {
            return std::move(std::get<1>(result_).value);
        }
    }

    // For the handle and its gets.
    void hold() noexcept {
        owners_.fetch_add(1, std::memory_order_relaxed);  // an owner makes another
    }
    virtual void release() noexcept = 0;

  protected:
    ~result_state() = default;

    struct nothing {};
    struct holder {  // so that a T that is one of the other alternatives can be told apart
        std::conditional_t<std::is_void_v<T>, nothing, T> value;
    };

    template <class F>
    void complete_with(F&& f) noexcept {
        try {
            if constexpr (std::is_void_v<T>) {
                std::forward<F>(f)();
                result_.template emplace<1>();
            } else {
                result_.template emplace<1>(holder{std::forward<F>(f)()});
            }
        } catch (...) {
            result_ = std::current_exception();
        }
    }
    void lose(job_error why) noexcept { result_ = why; }
    bool threw() const noexcept { return std::holds_alternative<std::exception_ptr>(result_); }
    // An exception that nobody took.
    std::exception_ptr untaken() noexcept {
        auto* const e = std::get_if<std::exception_ptr>(&result_);
        return e != nullptr ? std::exchange(*e, nullptr) : nullptr;
    }
    void end() noexcept {
        serve([this] { ended_ = true; });
    }
    // True for the last owner.
    bool disown() noexcept {
        // acq_rel: the last owner sees what the others did
        return owners_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }

  private:
    bool grant(waiter&) noexcept override { return ended_; }

    std::variant<std::monostate, holder, std::exception_ptr, job_error> result_;
    bool ended_ = false;  // under the lock
    bool taken_ = false;  // the taker's
    atomic<int> owners_{2};
};

template <class F, class T>
class submitted_job final : public pool_job, public result_state<T>, public recycled {
  public:
    explicit submitted_job(F&& f) : pool_job(&act), closure_(std::move(f)) {}

    // It was not accepted.
    void refuse(job_error why) noexcept { complete_without(why); }

    void release() noexcept override {
        if (!this->disown()) return;
        if (auto e = this->untaken()) unobserved_->failed(std::move(e));
        delete this;
    }

  private:
    static void act(pool_job& j, failure_sink* sink) noexcept {
        auto& self = static_cast<submitted_job&>(j);
        if (sink == nullptr) {
            self.complete_without(job_error::dropped);
            return;
        }
        self.complete_with(std::move(*self.closure_));
        if (self.threw()) {
            sink->hold();  // only now: every job would write to it
            self.unobserved_.reset(sink);
        }
        self.finish();
    }
    void complete_without(job_error why) noexcept {
        this->lose(why);
        finish();
    }
    void finish() noexcept {
        closure_.reset();  // what it captured is gone before anybody gets the result
        this->end();
        release();
    }

    shared_sink<failure_sink> unobserved_;  // if there is an exception
    std::optional<F> closure_;
};

template <class T>
class get_op : public waiter {
  public:
    explicit get_op(result_state<T>& s) noexcept : waiter(s), state_(&s) { s.hold(); }
    get_op(get_op&& other) noexcept
        : waiter(static_cast<waiter&&>(other)), state_(std::exchange(other.state_, nullptr)) {}
    ~get_op() {
        if (state_ != nullptr) state_->release();
    }

    bool ready() noexcept { return state_->ended(); }
    std::expected<T, job_error> take() { return state_->take(); }
    void hand_on() noexcept {}
    job_error refuse(wait_error why) const noexcept { return reason<job_error>(why); }

  private:
    result_state<T>* state_;
};

}  // namespace detail

template <class T>
class [[nodiscard("use execute() for a job without a result")]] job_result {
    using op = detail::get_op<T>;
    using result = std::expected<T, job_error>;

  public:
    // For pools. It takes over one of the two shares in the state.
    explicit job_result(detail::result_state<T>& s) noexcept : state_(&s) {}
    job_result(job_result&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    job_result& operator=(job_result&& other) noexcept {
        job_result{std::move(other)}.swap(*this);
        return *this;
    }
    ~job_result() {
        if (state_ != nullptr) state_->release();
    }
    void swap(job_result& other) noexcept { std::swap(state_, other.state_); }

    // Whether get() will not wait.
    bool ended() const noexcept { return state().ended(); }

    wait<op> get() noexcept { return op{state()}; }
    bounded_wait<op> get(stop_token t) noexcept { return {op{state()}, t}; }
    bounded_wait<op> get_until(time_point d, stop_token t = {}) noexcept {
        return {op{state()}, {d, t}};
    }
    bounded_wait<op> get_for(clock::duration d, stop_token t = {}) noexcept {
        return {op{state()}, {d, t}};
    }
    result blocking_get() { return blocking_wait(op{state()}); }
    result blocking_get(stop_token t) { return blocking_wait(op{state()}, t); }
    result blocking_get_until(time_point d, stop_token t = {}) {
        return blocking_wait(op{state()}, {d, t});
    }
    result blocking_get_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(op{state()}, {d, t});
    }
    // Nothing while the job has not ended.
    std::optional<result> try_get() {
        if (!ended()) return std::nullopt;
        return state().take();
    }

  private:
    detail::result_state<T>& state() const noexcept {
        RONDO_ASSERT(state_ != nullptr, "a result that was moved has no job");
        return *state_;
    }

    detail::result_state<T>* state_;
};

}  // namespace rondo
