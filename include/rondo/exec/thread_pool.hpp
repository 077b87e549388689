// thread_pool.hpp: closures on named threads.
//
//   rondo::thread_pool pool{{.workers = 4}};
//   pool.blocking_execute([] { ... });                      // waits for room
//   if (!pool.try_execute(f)) ...                           // never waits
//   auto r = pool.submit([] { return 6 * 7; });             // and r.get()
//
// Guarantee      an accepted job runs exactly once, unless stop_now() drops it. How jobs find
//                workers is the dispatch (dispatch.hpp); with `stealing`, the default, no job
//                waits while a worker sleeps. Workers wait for jobs side by side, never behind a
//                lock that one of them sleeps with.
// Bound          `capacity` jobs wait at most: who finds it full is refused (try_execute, submit)
//                or waits its turn (execute and its other forms). With per_worker each queue has
//                its part of it, one job at least. A stealing worker has up to 256 more in its
//                hands, or `capacity` if that is less: what it took, and what its own jobs
//                submitted.
// Exceptions     one that leaves a job is counted and given to `on_failure`; the worker goes on. A
//                submitted job's goes to whoever takes the result. One that leaves a move of the
//                closure comes out of the call that moved it, and the job does not run.
// Jobs           run as plain threads do: they may block. One that waits for another job of the
//                same pool keeps a worker from running it; waiting for room in it is refused by an
//                assertion.
// Executor       the pool is one: rondo::spawn(pool, task) runs the task on its workers, with the
//                default timers. post() ignores the bound. Tasks that give way take turns, also
//                those for which a stealing worker has no room: they change places.
// Cancellation   an execute() that is stopped or timed out gives the job back: it does not run. One
//                that loses a when_any in the instant in which its job was let in cannot take it
//                back: it runs. execute_for() is for who has to know.
// Thread safety  every member may be called concurrently, but for the destructor.
// Memory order   what happens before a job is accepted is visible to it.
// Destruction    runs what was accepted, and what that submits, and joins. Workers end in
//                parallel, when none of them has a job; with per_worker each when it has none.
//                Nobody may be calling a member then, jobs excepted. Not in a job. Results may
//                outlive it.
// Idle           workers look around for some microseconds, then sleep; one that has found nothing
//                that way for a while sleeps sooner. A submit wakes one worker at most, and none
//                when one is looking around, unless jobs pile up all the same.
// Allocation     one block a job, recycled across threads.
// Example        examples/exec/word_count.cpp
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "rondo/core/executor.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/core/waker.hpp"
#include "rondo/exec/detail/crew.hpp"
#include "rondo/exec/detail/pool_job.hpp"
#include "rondo/exec/detail/visitors.hpp"
#include "rondo/exec/dispatch.hpp"
#include "rondo/exec/job_result.hpp"
#include "rondo/exec/processors.hpp"

namespace rondo {

enum class refusal : std::uint8_t {
    full,    // there is no room
    closed,  // stop_now() was called
    stopped,
    timed_out,
};

// A job that was not accepted, given back.
template <class F>
struct refused_job {
    refusal why;
    F job;
};

class thread_pool final : public executor {
  public:
    struct options {
        std::size_t workers = processors();
        dispatch how = dispatch::stealing;
        std::size_t capacity = 65536;
        std::string name = "pool";      // threads are called pool-0, pool-1, ...
        std::uint64_t turns_taken = 0;  // per_worker: begins as if so many had been
        // Gets what jobs throw, in the thread where they end: the worker's, or that of something
        // foreign that a task has awaited; and what is left in a result, in the thread that
        // destroys it, maybe after the pool. Must not end the pool. By default it is printed.
        std::function<void(std::exception_ptr)> on_failure = {};
    };
    struct counts {
        std::uint64_t run;     // including those that failed
        std::uint64_t stolen;  // times that a worker took jobs from another one
        std::uint64_t failed;  // left by an exception that nobody took as a result
    };
    template <class F>
    class execute_op;
    template <class F>
    using accepted = std::expected<void, refused_job<F>>;

    // No worker, no room, or more turns than are counted: an assertion fails and says so.
    // Throws std::system_error when a thread cannot be started.
    explicit thread_pool(options const& o);
    ~thread_pool();
    thread_pool(thread_pool const&) = delete;
    thread_pool& operator=(thread_pool const&) = delete;

    // The job is given back when it is not accepted.
    template <class F>
    [[nodiscard("a job that was refused does not run")]] accepted<std::decay_t<F>> try_execute(
        F&& f) {
        using closure = std::decay_t<F>;
        auto owned = std::make_unique<detail::closure_job<closure>>(std::forward<F>(f));
        return accept(owned, crew_.try_push(*owned));
    }
    // Waits for room. The result is `accepted` in every form.
    template <class F>
    wait<execute_op<std::decay_t<F>>> execute(F&& f) {
        return waiting(std::forward<F>(f));
    }
    template <class F>
    bounded_wait<execute_op<std::decay_t<F>>> execute(F&& f, stop_token t) {
        return {waiting(std::forward<F>(f)), t};
    }
    template <class F>
    bounded_wait<execute_op<std::decay_t<F>>> execute_until(F&& f, time_point d,
                                                            stop_token t = {}) {
        return {waiting(std::forward<F>(f)), {d, t}};
    }
    template <class F>
    bounded_wait<execute_op<std::decay_t<F>>> execute_for(F&& f, clock::duration d,
                                                          stop_token t = {}) {
        return {waiting(std::forward<F>(f)), {d, t}};
    }
    template <class F>
    accepted<std::decay_t<F>> blocking_execute(F&& f) {
        return blocking_wait(blocking(std::forward<F>(f)));
    }
    template <class F>
    accepted<std::decay_t<F>> blocking_execute(F&& f, stop_token t) {
        return blocking_wait(blocking(std::forward<F>(f)), t);
    }
    template <class F>
    accepted<std::decay_t<F>> blocking_execute_until(F&& f, time_point d, stop_token t = {}) {
        return blocking_wait(blocking(std::forward<F>(f)), {d, t});
    }
    template <class F>
    accepted<std::decay_t<F>> blocking_execute_for(F&& f, clock::duration d, stop_token t = {}) {
        return blocking_wait(blocking(std::forward<F>(f)), {d, t});
    }

    // Never waits: a job that is refused completes its result with the reason.
    template <class F, class T = std::invoke_result_t<std::decay_t<F>&&>>
    job_result<T> submit(F&& f) {
        auto* const j =
            new detail::submitted_job<std::decay_t<F>, T>{std::decay_t<F>(std::forward<F>(f))};
        job_result<T> result{*j};
        switch (crew_.try_push(*j)) {
            case detail::intake::outcome::accepted:
                break;
            case detail::intake::outcome::full:
                j->refuse(job_error::full);
                break;
            case detail::intake::outcome::closed:
                j->refuse(job_error::closed);
                break;
        }
        return result;
    }

    // Drops what has not started, waits for what has, and says how many were dropped. Their
    // results complete with job_error::dropped. Everything is refused from then on. Posted jobs
    // run. Not in a job, nor in what it ends: the destructor of a job that is dropped, or whoever
    // is resumed without an executor because one was.
    std::size_t stop_now() noexcept;

    std::size_t workers() const noexcept { return threads_.size(); }
    // How many jobs wait: in all, and of those in a worker's own queue.
    std::size_t depth() const noexcept { return crew_.depth(); }
    std::size_t depth(std::size_t worker) const noexcept;
    counts count() const noexcept;
    counts count(std::size_t worker) const noexcept;

    // The index of the worker that calls this; nothing in any other thread.
    std::optional<std::size_t> this_worker() const noexcept;

    // As an executor.
    void post(job& j) noexcept override { crew_.post(j); }
    timer_service& timers() noexcept override;
    void unobserved(std::exception_ptr exception) noexcept override;

  private:
    friend class runtime;

    bool begin_visit() noexcept override {
        visitors_.begin();
        return true;
    }
    void end_visit() noexcept override { visitors_.end(); }

    template <class F>
    execute_op<std::decay_t<F>> waiting(F&& f) {
        return {*this, std::forward<F>(f)};
    }
    template <class F>
    execute_op<std::decay_t<F>> blocking(F&& f) {
        RONDO_ASSERT(crew_.here() == nullptr, "a worker waits for room that it should make");
        return waiting(std::forward<F>(f));
    }
    template <class F>
    static accepted<F> accept(std::unique_ptr<detail::closure_job<F>>& owned,
                              detail::intake::outcome o) {
        if (o == detail::intake::outcome::accepted) {
            (void)owned.release();  // the pool's
            return {};
        }
        refusal const why = o == detail::intake::outcome::full ? refusal::full : refusal::closed;
        return std::unexpected{refused_job<F>{why, std::move(owned->closure())}};
    }
    // The first half of stop_now(), for a thread that has other things to do until has_ended(),
    // which the waker tells. stop_now() follows.
    void begin_stop(waker told) noexcept;
    bool has_ended() const noexcept {
        // acquire: pairs with the decrement in leave()
        return workers_here_.load(std::memory_order_acquire) == 0;
    }
    // Nothing begins any more, and the pool is never destroyed.
    void abandon() noexcept { crew_.abandon(); }
    void leave() noexcept;
    void close() noexcept;
    void join() noexcept;

    detail::crew crew_;
    detail::visitors visitors_;
    std::mutex ending_;          // one thread at a time
    std::optional<waker> told_;  // set before the workers are let go
    atomic<std::size_t> workers_here_;
    std::vector<std::thread> threads_;
};

template <class F>
class thread_pool::execute_op : public detail::intake::push_op {
    using closure_job = detail::closure_job<F>;

  public:
    template <class G>
    execute_op(thread_pool& pool, G&& f)
        : execute_op(pool, std::make_unique<closure_job>(std::forward<G>(f))) {}
    execute_op(execute_op&&) = default;
    ~execute_op() {
        // Accepted, but the coroutine is gone before it could go on: the job runs all the same.
        if (push_op::accepted()) (void)owned_.release();
    }

    thread_pool::accepted<F> take() { return accept(owned_, decided()); }
    refused_job<F> refuse(wait_error why) {
        return {reason<refusal>(why), std::move(owned_->closure())};
    }
    void hand_on() noexcept { (void)decided(); }

  private:
    execute_op(thread_pool& pool, std::unique_ptr<closure_job> owned) noexcept
        : push_op(pool.crew_.next_intake(), *owned), owned_(std::move(owned)) {}

    std::unique_ptr<closure_job> owned_;
};

}  // namespace rondo
