// thread.hpp: threads of an execution, and storage that belongs to one of them.
//
// Guarantee      the constructor's call happens before the start of the callable, and the end of
//                the callable happens before the return of join().
// Limits         max_threads in one execution, including the scenario; ids are not reused.
// Errors         destruction of a thread that was not joined, a second join, an exception that
//                leaves the callable.
// Implementation threads are fibers of one OS thread, so they share thread_local variables. Checked
//                code uses thread_storage<T>() instead.

#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "rondo/check/detail/engine.hpp"

namespace rondo::check {

class thread {
    using where = std::source_location;

  public:
    thread() noexcept = default;

    template <class F>
    requires(std::invocable<std::decay_t<F>&> && !std::same_as<std::remove_cvref_t<F>, thread>)
    explicit thread(F&& body, where at = where::current()) {
        using closure = std::decay_t<F>;
        auto owned = std::make_unique<closure>(std::forward<F>(body));
        id_ = detail::spawn(
            [](void* raw) {
                std::unique_ptr<closure> const body_owner(static_cast<closure*>(raw));
                (*body_owner)();
            },
            owned.get(), at);
        static_cast<void>(owned.release());
    }

    thread(thread&& other) noexcept : id_(std::exchange(other.id_, none)) {}
    thread& operator=(thread&& other) noexcept {
        if (this != &other) {
            must_not_own();
            id_ = std::exchange(other.id_, none);
        }
        return *this;
    }
    ~thread() { must_not_own(); }

    [[nodiscard]] bool joinable() const noexcept { return id_ != none; }

    void join(where at = where::current()) {
        if (!joinable()) {
            detail::misuse("join() of a thread that was already joined");
        }
        detail::join(std::exchange(id_, none), at);
    }

  private:
    static constexpr unsigned none = ~0U;

    void must_not_own() const noexcept {
        if (joinable()) {
            detail::misuse("a thread was dropped without join()");
        }
    }

    unsigned id_ = none;
};

// 0 is the scenario; threads follow in order of creation. 0 outside an execution.
inline unsigned thread_id() noexcept { return detail::this_thread(); }

// The calling thread's own T, value-initialised on first use in this execution and destroyed when
// the thread ends. Outside an execution it is a thread_local.
template <class T>
T& thread_storage() {
    if (!detail::running()) {
        thread_local T outside{};
        return outside;
    }
    static char key = 0;  // not const: linkers may fold equal constants, and keys must differ
    void* const slot = detail::thread_slot(
        &key, []() -> void* { return new T{}; }, [](void* raw) { delete static_cast<T*>(raw); });
    return *static_cast<T*>(slot);
}

}  // namespace rondo::check
