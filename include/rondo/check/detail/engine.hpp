// engine.hpp: the untyped seam between the checked types and the checker.
//
// The templates (atomic<T>, cell<T>, ...) translate values to 64-bit words and call these
// functions; everything else lives in src/check. Outside an execution the functions behave like
// plain single-threaded code, so that a checked object can also be built where nothing is checked.
//
// Thread safety  one execution runs on one OS thread; other OS threads see "not running".

#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>

namespace rondo::check::detail {

// Threads of one execution, the scenario's own included. Vector clocks have this many entries.
inline constexpr unsigned max_threads = 8;

inline constexpr std::uint32_t unregistered = 0xffff'ffff;

// What every watched object carries: the index of its record. The index alone is not trusted (the
// object may be gone and its memory reused): the record must also name this object's address.
struct tracked {
    std::uint32_t id = unregistered;
};

// An atomic keeps its value in the object only outside an execution; inside, the record's store
// history has it.
struct atomic_word : tracked {
    std::uint64_t idle_value = 0;
};

enum class object_kind : std::uint8_t { atomic, cell, mutex };
enum class rmw : std::uint8_t { exchange, add, sub, bit_and, bit_or, bit_xor };

using where = std::source_location;

bool running() noexcept;

void atomic_created(atomic_word& object, std::uint64_t value, where at) noexcept;
void object_created(tracked& object, object_kind kind, where at) noexcept;
void object_destroyed(tracked& object, object_kind kind) noexcept;
void object_labelled(tracked const& object, char const* label) noexcept;

std::uint64_t atomic_load(atomic_word const& object, std::memory_order order, where at) noexcept;
void atomic_store(atomic_word& object, std::uint64_t value, std::memory_order order,
                  where at) noexcept;
// `mask` keeps the result within the width of the value's type.
std::uint64_t atomic_rmw(atomic_word& object, rmw operation, std::uint64_t operand,
                         std::uint64_t mask, std::memory_order order, where at) noexcept;
bool atomic_compare_exchange(atomic_word& object, std::uint64_t& expected, std::uint64_t desired,
                             bool weak, std::memory_order success, std::memory_order failure,
                             where at) noexcept;

void cell_read(tracked const& object, where at) noexcept;
void cell_written(tracked& object, where at) noexcept;

void mutex_lock(tracked& object, where at) noexcept;
bool mutex_try_lock(tracked& object, where at) noexcept;
void mutex_unlock(tracked& object, where at) noexcept;

// `timed` waits may return at any moment; the result is false if it did so by timing out.
bool futex_wait(atomic_word const& object, std::uint32_t expected, bool timed, where at) noexcept;
void futex_wake(void const* address, int count, where at) noexcept;

void pause(where at) noexcept;

unsigned spawn(void (*run)(void*), void* closure, where at);
void join(unsigned thread, where at);
unsigned this_thread() noexcept;

// The current thread's object under `key`, made on first use and destroyed when the thread ends.
void* thread_slot(void const* key, void* (*make)(), void (*destroy)(void*));

[[noreturn]] void misuse(char const* what) noexcept;

}  // namespace rondo::check::detail
