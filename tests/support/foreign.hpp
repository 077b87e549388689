// foreign.hpp: a coroutine type that knows nothing of rondo: starts at once, belongs nowhere.
#pragma once

#include <coroutine>
#include <exception>

namespace rondo::test {

struct foreign {
    struct promise_type {
        foreign get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };
};

}  // namespace rondo::test
