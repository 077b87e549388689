// pool_job.hpp: a closure as a job: what a pool may also drop instead of running it.
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/core/executor.hpp"

namespace rondo::detail {

// Gets the exceptions that leave closures.
class failure_sink {
  public:
    virtual void failed(std::exception_ptr exception) noexcept = 0;

  protected:
    ~failure_sink() = default;
};

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
