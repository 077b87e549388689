// An operation of Asio is cancelled at its I/O object, in whose order it has to complete; so the
// token that a task awaits it with is bound to no other executor. (Each line has a type of its
// own.)
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>

#include "rondo/asio/use_task.hpp"
#include "rondo/core/task.hpp"

namespace rondo {

using namespace std::chrono_literals;
namespace net = boost::asio;
using asio::use_task;

task<void> sleeps(net::steady_timer* t, net::io_context* io) {
    co_await t->async_wait(net::bind_executor(*io, use_task));      // refused
    co_await t->async_wait(net::bind_executor(*io, use_task(1s)));  // refused
    co_await t->async_wait(use_task(1s));
}

}  // namespace rondo
