#include "rondo/core/executor.hpp"

#include <cstdio>
#include <utility>

#include "rondo/core/detail/thread_state.hpp"

namespace rondo {

executor* executor::current() noexcept { return detail::this_thread().current; }

executor::scope::scope(executor* e) noexcept
    : thread_(detail::this_thread()), outer_(std::exchange(thread_.current, e)) {}

executor::scope::~scope() { thread_.current = outer_; }

void executor::unobserved(std::exception_ptr exception) noexcept {
    try {
        std::rethrow_exception(std::move(exception));
    } catch (std::exception const& e) {
        std::fprintf(stderr, "rondo: a task that nobody joined ended with: %s\n", e.what());
    } catch (...) {
        std::fputs("rondo: a task that nobody joined ended with an unknown exception\n", stderr);
    }
}

}  // namespace rondo
