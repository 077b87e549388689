// assert.hpp: RONDO_ASSERT, the check for programmer errors.
//
// Guarantee      RONDO_ASSERT(condition, "what was promised") is on in every build. When the
//                condition is false it prints the message, the expression and the place, and
//                aborts. In a checked build (see policy.hpp) it ends the explored execution with
//                a report and a schedule instead.
// Use            for broken preconditions and invariants of this library. Never for bytes from a
//                peer, nor for outcomes a caller must expect: those are values.
#pragma once

namespace rondo::detail {

[[noreturn]] void assertion_failed(char const* what, char const* expression, char const* file,
                                   int line) noexcept;

}  // namespace rondo::detail

#define RONDO_ASSERT(condition, what) \
    (static_cast<bool>(condition)     \
         ? static_cast<void>(0)       \
         : ::rondo::detail::assertion_failed(what, #condition, __FILE__, __LINE__))
