#include "rondo/asio/context_owner.hpp"

#include <utility>

namespace rondo::asio {

namespace {

[[gnu::noinline]] boost::asio::execution_context*& owned_here() noexcept {
    constinit thread_local boost::asio::execution_context* owned = nullptr;
    asm volatile("" ::: "memory");
    return owned;
}

}  // namespace

context_owner::context_owner(boost::asio::execution_context& owned) noexcept
    : outer_(std::exchange(owned_here(), &owned)) {}

context_owner::~context_owner() { owned_here() = outer_; }

boost::asio::execution_context* context_owner::current() noexcept { return owned_here(); }

}  // namespace rondo::asio
