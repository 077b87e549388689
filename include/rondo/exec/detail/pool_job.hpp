// pool_job.hpp: a closure as a job: what a pool may also drop instead of running it.
#pragma once

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/core/executor.hpp"
#include "rondo/core/policy.hpp"

namespace rondo::detail {

// Gets the exceptions that leave closures. The pool owns it, together with every result that may
// have to hand one in later: such a result may be the last of them.
class failure_sink {
  public:
    failure_sink() = default;
    failure_sink(failure_sink const&) = delete;
    failure_sink& operator=(failure_sink const&) = delete;

    virtual void failed(std::exception_ptr exception) noexcept = 0;

    void hold() noexcept {
        owners_.fetch_add(1, std::memory_order_relaxed);  // an owner makes another
    }
    void let_go() noexcept {
        // acq_rel: the last owner sees what the others did
        if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

  protected:
    virtual ~failure_sink() = default;

  private:
    atomic<int> owners_{1};
};

struct lets_go {
    void operator()(failure_sink* s) const noexcept { s->let_go(); }
};
template <class Sink>
using shared_sink = std::unique_ptr<Sink, lets_go>;

// A job of the pool's own making, as opposed to one posted to it as an executor, which must run.
class pool_job : public job {
  public:
    // The job is gone when either returns.
    void start(failure_sink& sink) noexcept { act_(*this, &sink); }
    void drop() noexcept { act_(*this, nullptr); }

    static pool_job* from(job& j) noexcept {
        return j.run == &never_called ? static_cast<pool_job*>(&j) : nullptr;
    }

  protected:
    // Runs it, or drops it when there is no sink.
    using action = void (*)(pool_job&, failure_sink*) noexcept;

    explicit pool_job(action act) noexcept : job(&never_called), act_(act) {}
    ~pool_job() = default;

  private:
    // Its address is the mark by which from() knows one.
    static void never_called(job&) noexcept;

    action act_;
};

template <class F>
class closure_job final : public pool_job, public recycled {
  public:
    explicit closure_job(F&& f) : pool_job(&act), closure_(std::move(f)) {}
    explicit closure_job(F const& f) : pool_job(&act), closure_(f) {}

    F& closure() noexcept { return closure_; }

  private:
    static void act(pool_job& j, failure_sink* sink) noexcept {
        auto* const self = static_cast<closure_job*>(&j);
        if (sink != nullptr) {
            if constexpr (std::is_nothrow_invocable_v<F&&>) {
                std::move(self->closure_)();
            } else {
                try {
                    std::move(self->closure_)();
                } catch (...) {
                    sink->failed(std::current_exception());
                }
            }
        }
        delete self;
    }

    F closure_;
};

}  // namespace rondo::detail
