// engine.cpp: the functions behind the checked types. Inside an execution they go to it, outside
// they do what single-threaded code would.

#include "rondo/check/detail/engine.hpp"

#include <cstdio>
#include <cstdlib>

#include "execution.hpp"

namespace rondo::check {
namespace detail {
namespace {

[[noreturn]] void die(char const* what) noexcept {
    std::fprintf(stderr, "rondo::check, outside an execution: %s\n", what);
    std::abort();
}

// Without another thread a wait that does not return at once never returns.
[[noreturn]] void die_waiting() noexcept { die("a wait that nobody can end"); }

}  // namespace

bool running() noexcept { return execution::current() != nullptr; }

void atomic_created(atomic_word& object, std::uint64_t value, where at) noexcept {
    object.idle_value = value;
    if (auto* const run = execution::current()) {
        run->create_atomic(object, value, at);
    }
}

void object_created(tracked& object, object_kind kind, where at) noexcept {
    if (auto* const run = execution::current()) {
        run->create(object, kind, at);
    }
}

void object_destroyed(tracked& object, object_kind kind) noexcept {
    if (auto* const run = execution::current()) {
        run->destroy(object, kind);
    }
}

void object_labelled(tracked const& object, char const* label) noexcept {
    if (auto* const run = execution::current()) {
        run->label(object, label);
    }
}

std::uint64_t atomic_load(atomic_word const& object, std::memory_order order, where at) noexcept {
    auto* const run = execution::current();
    return run != nullptr ? run->load(object, order, at) : object.idle_value;
}

void atomic_store(atomic_word& object, std::uint64_t value, std::memory_order order,
                  where at) noexcept {
    if (auto* const run = execution::current()) {
        run->store(object, value, order, at);
    } else {
        object.idle_value = value;
    }
}

std::uint64_t atomic_rmw(atomic_word& object, rmw operation, std::uint64_t operand,
                         std::uint64_t mask, std::memory_order order, where at) noexcept {
    if (auto* const run = execution::current()) {
        return run->modify(object, operation, operand, mask, order, at);
    }
    std::uint64_t const old = object.idle_value;
    object.idle_value = apply(operation, old, operand) & mask;
    return old;
}

bool atomic_compare_exchange(atomic_word& object, std::uint64_t& expected, std::uint64_t desired,
                             bool weak, std::memory_order success, std::memory_order failure,
                             where at) noexcept {
    if (auto* const run = execution::current()) {
        return run->compare_exchange(object, expected, desired, weak, success, failure, at);
    }
    if (object.idle_value != expected) {
        expected = object.idle_value;
        return false;
    }
    object.idle_value = desired;
    return true;
}

void cell_read(tracked const& object, where at) noexcept {
    if (auto* const run = execution::current()) {
        run->read_cell(object, at);
    }
}

void cell_written(tracked& object, where at) noexcept {
    if (auto* const run = execution::current()) {
        run->write_cell(object, at);
    }
}

// Outside, nobody else can hold it: there is nothing to record.
void mutex_lock(tracked& object, where at) noexcept {
    if (auto* const run = execution::current()) {
        run->lock(object, at);
    }
}

bool mutex_try_lock(tracked& object, where at) noexcept {
    auto* const run = execution::current();
    return run == nullptr || run->try_lock(object, at);
}

void mutex_unlock(tracked& object, where at) noexcept {
    if (auto* const run = execution::current()) {
        run->unlock(object, at);
    }
}

bool futex_wait(atomic_word const& object, std::uint32_t expected, bool timed, where at) noexcept {
    if (auto* const run = execution::current()) {
        return run->wait(object, expected, timed, at);
    }
    if (object.idle_value == expected && !timed) {
        die_waiting();
    }
    return object.idle_value != expected;
}

void futex_wake(void const* address, int count, where at) noexcept {
    if (auto* const run = execution::current()) {
        run->wake(address, count, at);
    }
}

void pause(where at) noexcept {
    if (auto* const run = execution::current()) {
        run->pause(at);
    }
}

unsigned spawn(void (*run)(void*), void* closure, where at) {
    if (auto* const inside = execution::current()) {
        return inside->spawn(run, closure, at);
    }
    die("check::thread can only be started inside a scenario");
}

void join(unsigned thread, where at) {
    if (auto* const run = execution::current()) {
        run->join(thread, at);
    }
}

unsigned this_thread() noexcept {
    auto* const run = execution::current();
    return run != nullptr ? run->self() : 0;
}

void* thread_slot(void const* key, void* (*make)(), void (*destroy)(void*)) {
    return execution::current()->slot(key, make, destroy);
}

void misuse(char const* what) noexcept {
    if (auto* const run = execution::current()) {
        run->fail(failure::misuse, "T%u: %s", run->self(), what);
    }
    die(what);
}

}  // namespace detail

void fail(std::string const& message) noexcept {
    if (auto* const run = detail::execution::current()) {
        run->fail(failure::assertion, "T%u: %s", run->self(), message.c_str());
    }
    detail::die(message.c_str());
}

void expect(bool condition, char const* what, std::source_location at) noexcept {
    if (condition) {
        return;
    }
    if (auto* const run = detail::execution::current()) {
        run->fail(failure::assertion, "T%u: expected %s, at %s:%u", run->self(), what,
                  detail::file_name(at), static_cast<unsigned>(at.line()));
    }
    detail::die(what);
}

untracked_memory::untracked_memory() noexcept : arena_(detail::current_arena) {
    detail::current_arena = nullptr;
}

untracked_memory::~untracked_memory() {
    detail::current_arena = static_cast<detail::arena*>(arena_);
}

}  // namespace rondo::check
