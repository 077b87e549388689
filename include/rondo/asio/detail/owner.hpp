// owner.hpp: the place where an operation of Asio belongs: its I/O object's executor.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <type_traits>
#include <utility>

#include "rondo/asio/context_owner.hpp"

namespace rondo::asio::detail {

// An initiation that names no executor has Asio's default, which is no place to cancel at.
template <class Executor>
inline constexpr bool is_a_place = !std::is_same_v<Executor, boost::asio::system_executor>;

// Calls f with what is inside an any_io_executor, where it is one of the usual ones: they know
// whether they run here, and take the memory of a function from its allocator. The wrapper does
// neither.
template <class Executor, class Function>
void unwrapped(Executor const& e, Function f) {
    if constexpr (std::is_same_v<Executor, boost::asio::any_io_executor>) {
        using context = boost::asio::io_context::executor_type;
        using strand = boost::asio::strand<context>;
        using wrapped_strand = boost::asio::strand<boost::asio::any_io_executor>;
        if (auto const* c = e.template target<context>()) return f(*c);
        if (auto const* s = e.template target<strand>()) return f(*s);
        if (auto const* s = e.template target<wrapped_strand>()) return f(*s);
    }
    f(e);
}

// Whether this thread may touch what belongs to that executor.
template <class Executor>
bool is_here(Executor const& e) noexcept {
    if constexpr (std::is_same_v<Executor, boost::asio::io_context::executor_type>) {
        if (&e.context() == context_owner::current()) return true;
    }
    if constexpr (requires { e.running_in_this_thread(); }) {
        return e.running_in_this_thread();
    } else {
        return false;
    }
}

// Calls the function, here if this is the place, else there.
template <class Executor, class Function>
void go_there(Executor const& e, Function function) {
    unwrapped(e, [&function](auto const& there) {
        if (is_here(there)) return function();
        boost::asio::dispatch(there, std::move(function));
    });
}

// Calls the function there, later.
template <class Executor, class Function>
void post_there(Executor const& e, Function function) {
    unwrapped(e, [&function](auto const& there) { boost::asio::post(there, std::move(function)); });
}

}  // namespace rondo::asio::detail
