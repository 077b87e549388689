// context_owner.hpp: says that the calling thread alone runs a context.
//
//   rondo::asio::context_owner const mine{io};      // at the top of the thread that polls io
//
// Asio knows that a thread runs a context while it is inside run() or poll(). A thread that does
// other work in between, such as a worker of a runtime, is as good a place to start and to cancel
// I/O at; with this it is known as one, and a task there starts its operations at once instead of
// posting them to its own thread.
//
// Guarantee      of the caller: while this lives, no other thread runs the context.
// Thread safety  belongs to its thread; nests, the innermost counts.
#pragma once

#include <boost/asio/execution_context.hpp>

namespace rondo::asio {

class [[nodiscard("it acts until the end of its scope")]] context_owner {
  public:
    explicit context_owner(boost::asio::execution_context& owned) noexcept;
    ~context_owner();
    context_owner(context_owner const&) = delete;
    context_owner& operator=(context_owner const&) = delete;

    // The context that the calling thread owns, or null. Never inlined: a coroutine may have
    // changed threads.
    [[gnu::noinline]] static boost::asio::execution_context* current() noexcept;

  private:
    boost::asio::execution_context* outer_;
};

}  // namespace rondo::asio
