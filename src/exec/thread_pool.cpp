// The threads of a pool. What they run is the crew (crew.cpp), which a checked build explores
// without this file.
#include "rondo/exec/thread_pool.hpp"

#ifndef RONDO_CHECKED

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "rondo/core/assert.hpp"
#include "rondo/core/timer_queue.hpp"
#include "rondo/exec/detail/thread_name.hpp"

namespace rondo {

namespace {

void print(std::exception_ptr exception) {
    try {
        std::rethrow_exception(std::move(exception));
    } catch (std::exception const& e) {
        std::fprintf(stderr, "rondo: a job of a thread pool ended with: %s\n", e.what());
    } catch (...) {
        std::fputs("rondo: a job of a thread pool ended with an unknown exception\n", stderr);
    }
}

detail::crew::setup checked(thread_pool::options const& o, executor& place) {
    RONDO_ASSERT(o.workers > 0, "a thread pool has at least one worker");
    RONDO_ASSERT(o.capacity > 0, "a thread pool has room for at least one job");
    // More searchers than that would only take the processors from those who work.
    std::size_t const searchers = std::min(o.workers, processors()) / 2;
    return {.how = o.how,
            .workers = o.workers,
            .capacity = o.capacity,
            .searchers = std::max<std::size_t>(searchers, 1),
            .turns_taken = o.turns_taken,
            .place = &place,
            .on_failure = o.on_failure ? o.on_failure : print};
}

}  // namespace

thread_pool::thread_pool(options const& o) : crew_(checked(o, *this)), workers_here_(o.workers) {
    threads_.reserve(o.workers);
    try {
        for (auto const& w : crew_.workers()) {
            threads_.emplace_back([this, &w, prefix = o.name] {
                detail::name_this_thread(prefix, w->index());
                w->run();
                leave();
            });
        }
    } catch (...) {
        crew_.dismiss();
        join();
        throw;
    }
}

thread_pool::~thread_pool() {
    RONDO_ASSERT(crew_.here() == nullptr, "a pool is not ended by one of its own jobs");
    std::lock_guard const guard{ending_};
    join();
}

void thread_pool::leave() noexcept {
    // acq_rel: the last one has seen what the others did; pairs with has_ended()
    bool const last = workers_here_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    if (last && told_) told_->wake();
}

void thread_pool::close() noexcept {
    visitors_.await();
    crew_.close();
}

void thread_pool::join() noexcept {
    close();
    for (std::thread& t : threads_) {
        if (t.joinable()) t.join();
    }
}

void thread_pool::begin_stop(waker told) noexcept {
    RONDO_ASSERT(crew_.here() == nullptr, "a pool is not ended by one of its own jobs");
    std::lock_guard const guard{ending_};
    told_ = told;
    crew_.drop_waiting();
    close();
}

std::size_t thread_pool::stop_now() noexcept {
    RONDO_ASSERT(crew_.here() == nullptr, "a pool is not ended by one of its own jobs");
    // From the beginning: posted jobs are taken out of the queues and put back, and whoever ends
    // the workers meanwhile would leave nobody to run them.
    std::lock_guard const guard{ending_};
    crew_.drop_waiting();
    join();
    return crew_.dropped();
}

std::size_t thread_pool::depth(std::size_t worker) const noexcept {
    RONDO_ASSERT(worker < workers(), "a pool has no more workers than that");
    return crew_.workers()[worker]->depth();
}

thread_pool::counts thread_pool::count(std::size_t worker) const noexcept {
    RONDO_ASSERT(worker < workers(), "a pool has no more workers than that");
    detail::worker const& w = *crew_.workers()[worker];
    return {w.jobs_run.get(), w.jobs_stolen.get(), w.jobs_failed.get()};
}

thread_pool::counts thread_pool::count() const noexcept {
    counts sum{0, 0, crew_.failed_elsewhere()};
    for (std::size_t i = 0; i < workers(); ++i) {
        counts const one = count(i);
        sum.run += one.run;
        sum.stolen += one.stolen;
        sum.failed += one.failed;
    }
    return sum;
}

std::optional<std::size_t> thread_pool::this_worker() const noexcept {
    detail::worker const* const w = crew_.here();
    return w != nullptr ? std::optional{w->index()} : std::nullopt;
}

timer_service& thread_pool::timers() noexcept { return default_timers(); }

void thread_pool::unobserved(std::exception_ptr exception) noexcept {
    crew_.failed(std::move(exception));
}

}  // namespace rondo

#endif
