// io_driver.hpp: an io_context as what a worker sleeps in. Its owner includes Boost.Asio.
//
// Waking        un-parking a worker that sleeps posts an empty handler to the context. There is one
//               at most, in memory of the driver's own: nothing is allocated.
// Turns         poll() runs so many handlers and no more: one that posts itself again does not keep
//               its worker from its tasks. park() runs one.
// Exceptions    what a handler throws is reported as a task's that nobody joins, and costs nothing
//               else.
// Resolution    a park ends at its deadline rounded up to a millisecond, as epoll counts them.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "rondo/core/executor.hpp"
#include "rondo/exec/detail/doorbell.hpp"
#include "rondo/exec/detail/driver.hpp"

namespace rondo::detail {

class io_driver final : public driver, doorbell {
  public:
    io_driver();

    boost::asio::io_context& context() noexcept { return *context_; }
    // Destroys the handlers that have not run; the worker has ended.
    void close() noexcept;

    // Where exceptions go; before the first handler runs.
    void report_to(executor& place) noexcept { place_ = &place; }

    void poll() noexcept override;
    void park(time_point until) noexcept override { doorbell::park(until); }
    void unpark() noexcept override { doorbell::unpark(); }

  private:
    // Gives out the one block that a posted handler needs.
    template <class T>
    class memory_for_one;

    void go_on() noexcept;
    void sleep(time_point until) noexcept override;
    void ring() noexcept override;

    executor* place_ = nullptr;
    std::optional<boost::asio::io_context> context_;
    std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
    alignas(std::max_align_t) std::byte memory_[128];
};

}  // namespace rondo::detail
