// asio_executor.hpp: an executor of Rondo whose jobs run through an executor of Asio.
//
//   rondo::asio::asio_executor where{io.get_executor()};
//   auto handle = rondo::spawn(where, serve(connection));
//
// Guarantee      each posted job runs once, later, where Asio's executor says, and finds this
//                executor current. Through a strand, jobs exclude each other.
// Lifetime       longer than the tasks on it; and the context is run until they have ended: a job
//                in a context that is destroyed never runs. A task that only waits is no work to
//                the context, unlike rondo::asio::run() and co_await; keep a work guard.
// Timers         default_timers().
// Exceptions     of a task that nobody joins go to the function that was given, or else to stderr.
//                What leaves that function is ignored.
// Allocation     what boost::asio::post() allocates: recycled inside run(), else from the heap.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <functional>
#include <utility>

#include "rondo/core/executor.hpp"
#include "rondo/core/timer_queue.hpp"

namespace rondo::asio {

template <class Executor = boost::asio::any_io_executor>
class asio_executor final : public executor {
  public:
    using listener = std::function<void(std::exception_ptr)>;

    explicit asio_executor(Executor where, listener unobserved = {}) noexcept
        : where_(std::move(where)), listener_(std::move(unobserved)) {}
    asio_executor(asio_executor const&) = delete;
    asio_executor& operator=(asio_executor const&) = delete;

    void post(job& j) noexcept override {
        boost::asio::post(where_, [this, &j] {
            scope const here{this};
            j.run(j);  // may have ended this executor's life
        });
    }
    timer_service& timers() noexcept override { return default_timers(); }
    void unobserved(std::exception_ptr exception) noexcept override {
        if (!listener_) return executor::unobserved(std::move(exception));
        try {
            listener_(std::move(exception));
        } catch (...) {  // a function that fails must not cost the program
        }
    }

  private:
    Executor where_;
    listener listener_;
};

}  // namespace rondo::asio
