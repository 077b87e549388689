// mutex.hpp: a mutex that the checker schedules, for code that takes its locks as given.
//
// Guarantee      what happens before unlock() happens before the return of the lock() that follows.
//                A thread whose lock() has to wait is not scheduled, and switching away from it
//                does not count as a preemption.
// Errors         lock() by the owner, unlock() by another thread, destruction while held.
// Fairness       none: any of the waiting threads may be next, each of them in some execution.
// try_lock()     fails only if the mutex is held; that of std::mutex may also fail spuriously.

#pragma once

#include "rondo/check/detail/engine.hpp"

namespace rondo::check {

class mutex {
    using where = std::source_location;

  public:
    mutex(where at = where::current()) noexcept {
        detail::object_created(tracked_, detail::object_kind::mutex, at);
    }
    mutex(mutex const&) = delete;
    mutex& operator=(mutex const&) = delete;
    ~mutex() { detail::object_destroyed(tracked_, detail::object_kind::mutex); }

    void lock(where at = where::current()) noexcept { detail::mutex_lock(tracked_, at); }
    [[nodiscard]] bool try_lock(where at = where::current()) noexcept {
        return detail::mutex_try_lock(tracked_, at);
    }
    void unlock(where at = where::current()) noexcept { detail::mutex_unlock(tracked_, at); }

    detail::tracked const& record() const noexcept { return tracked_; }

  private:
    detail::tracked tracked_;
};

inline void label(mutex const& object, char const* text) noexcept {
    detail::object_labelled(object.record(), text);
}

}  // namespace rondo::check
