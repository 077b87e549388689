// execution.hpp: one run of a scenario: its threads, its objects, its memory.
//
// The parts: scheduler.cpp (which thread runs), memory_model.cpp (what a load may read),
// objects.cpp (lives of objects, cells, mutexes, futexes), explore.cpp (running executions one
// after another).
//
// Invariants     I1 exactly one thread runs: self_. Everything else is suspended in switch_to().
//                I2 a thread is in enabled_ iff its next operation can be performed now; in timed_
//                   iff it waits and may time out. The sets are disjoint.
//                I3 a suspended thread performs the operation it stopped before without asking
//                   again: the scheduler's choice of a thread is the choice of its next operation.
//                I4 store ids grow with time, and so along the modification order of each atomic.
//                I5 nothing in here allocates with operator new between begin and end of a run.

#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>

#include "arena.hpp"
#include "chooser.hpp"
#include "clock.hpp"
#include "fairness.hpp"
#include "fiber.hpp"
#include "pool.hpp"
#include "rondo/check/explore.hpp"
#include "trace.hpp"

namespace rondo::check::detail {

// One value in the life of an atomic.
struct store_record {
    std::uint64_t value;
    clock published;         // what an acquire load of this store learns
    clock seen;              // when each thread wrote or first read it, or `never`
    std::uint32_t previous;  // in modification order; no_store for the first
};
inline constexpr std::uint32_t no_store = 0xffff'ffff;

// Everything about one watched object.
struct location {
    void const* address;
    char const* label;
    clock touched;             // each thread's last access; for cells its last read
    clock published;           // mutex: what the next owner learns
    std::uint32_t newest;      // atomic: the last store
    std::uint32_t sc_floor;    // atomic: seq_cst loads read this store or a newer one
    std::uint32_t written_at;  // the last plain write: construction, or a cell's
    std::uint8_t written_by;
    std::uint8_t owner;  // mutex
    object_kind kind;
    bool alive;
    std::uint8_t destroyed_by;
};
inline constexpr std::uint8_t nobody = 0xff;

struct thread_slot_record {
    void const* key;
    void* object;
    void (*destroy)(void*);
};

struct model_thread {
    enum class doing : std::uint8_t { nothing, running, locking, waiting, joining, finished };

    clock now;
    void (*run)(void*);
    void* closure;
    arena* memory;               // current_arena while it was suspended
    void const* waits_for;       // futex word
    std::uint32_t object;        // what it locks, waits on or joins
    std::uint32_t visible_from;  // it read or paused past everything overwritten before this store
    doing state;
    bool resumed;  // I3: its next scheduling point has already been decided
    bool timed_out;
    bool joined;
    std::uint8_t slots;
    std::array<thread_slot_record, 16> storage;
};

// The value that a read-modify-write writes, before it is cut to the type's width.
std::uint64_t apply(rmw operation, std::uint64_t old, std::uint64_t operand) noexcept;

class execution {
  public:
    execution() = default;
    execution(execution const&) = delete;
    execution& operator=(execution const&) = delete;

    // The execution that the caller runs in, or null.
    static execution* current() noexcept;

    // Host side (explore.cpp).
    void begin_session();
    void end_session() noexcept;
    void run(chooser& decisions, schedule_settings const& settings, int preemptions, bool traced,
             std::function<void()> const& scenario);
    [[nodiscard]] failure outcome() const noexcept { return outcome_; }
    [[nodiscard]] char const* message() const noexcept { return message_.data(); }
    [[nodiscard]] bool histories_cut() const noexcept { return histories_cut_; }

    // For the trace.
    [[nodiscard]] pool<event> const& events() const noexcept { return events_; }
    [[nodiscard]] pool<location> const& locations() const noexcept { return locations_; }
    [[nodiscard]] arena const& memory() const noexcept { return arena_; }

    // scheduler.cpp
    void point();
    void pause(where at);
    unsigned spawn(void (*body)(void*), void* closure, where at);
    void join(unsigned thread, where at);
    [[nodiscard]] unsigned self() const noexcept { return self_; }
    void* slot(void const* key, void* (*make)(), void (*unmake)(void*));
    [[noreturn]] void fail(failure kind, char const* format, ...) noexcept
        __attribute__((format(printf, 3, 4)));
    [[noreturn]] void fail_terminated() noexcept;

    // memory_model.cpp
    void create_atomic(atomic_word& object, std::uint64_t value, where at);
    std::uint64_t load(atomic_word const& object, std::memory_order order, where at);
    void store(atomic_word& object, std::uint64_t value, std::memory_order order, where at);
    std::uint64_t modify(atomic_word& object, rmw operation, std::uint64_t operand,
                         std::uint64_t width, std::memory_order order, where at);
    bool compare_exchange(atomic_word& object, std::uint64_t& expected, std::uint64_t desired,
                          bool weak, std::memory_order success, std::memory_order failure_order,
                          where at);

    // objects.cpp
    void create(tracked& object, object_kind kind, where at);
    void destroy(tracked& object, object_kind kind);
    void label(tracked const& object, char const* text);
    void read_cell(tracked const& object, where at);
    void write_cell(tracked& object, where at);
    void lock(tracked& object, where at);
    bool try_lock(tracked& object, where at);
    void unlock(tracked& object, where at);
    bool wait(atomic_word const& object, std::uint32_t expected, bool timed, where at);
    void wake(void const* address, int count, where at);
    void release_memory(void* block);

  private:
    using mask = thread_mask;

    struct readable {
        std::array<std::uint32_t, chooser::max_alternatives> stores;
        unsigned count = 0;
    };

    model_thread& me() noexcept { return threads_[self_]; }
    std::uint32_t time() noexcept { return me().now.at[self_]; }
    void tick() noexcept { ++me().now.at[self_]; }

    // explore.cpp
    void reset(chooser& decisions, schedule_settings const& settings, int preemptions, bool traced);
    static void fiber_loop(void* self);
    void thread_main();
    void finish_scenario();
    void abandon_fibers();

    // scheduler.cpp
    void count_step();
    unsigned choose(branch what, unsigned alternatives);
    enum class leaving : std::uint8_t { preempted, freely };
    unsigned next_thread(leaving how);
    unsigned candidates(mask from, std::array<std::uint8_t, max_threads>& list) const;
    void switch_to(unsigned next);
    void block();
    void yield();
    void set_enabled(unsigned thread, bool enabled) noexcept;
    void finish_thread();
    void destroy_storage();
    [[noreturn]] void fail_deadlocked();

    // memory_model.cpp
    location& atomic_at(atomic_word const& object, char const* what);
    readable readable_stores(location const& place, std::memory_order order);
    std::uint64_t read_store(location& place, std::uint32_t from, std::memory_order order);
    void append_store(location& place, std::uint64_t value, std::memory_order order,
                      bool continues);
    unsigned newer_than(location const& place, std::uint32_t from) const;
    void mark_seen(location const& place, unsigned thread);

    // objects.cpp
    location& find(tracked const& object, object_kind kind, char const* what);
    std::uint32_t id_of(location const& place) const noexcept {
        return static_cast<std::uint32_t>(&place - locations_.begin());
    }
    void must_see_construction(location const& place, char const* what);
    void check_cell_write(location& place, char const* what);
    [[noreturn]] void fail_gone(tracked const& object, object_kind kind, char const* what);
    void set_lockers(std::uint32_t mutex, bool enabled) noexcept;
    struct name {
        char text[48];
    };
    [[nodiscard]] name name_of(location const& place) const;

    void note(action what, where at, std::uint32_t object, std::uint64_t value = 0,
              std::memory_order order = std::memory_order::relaxed, std::uint64_t written = 0,
              std::uint32_t newer = 0) {
        if (traced_) [[unlikely]] {
            events_.push(
                {what, static_cast<std::uint8_t>(self_), order, object, value, written, newer, at});
        }
    }

    unsigned self_ = 0;
    unsigned thread_count_ = 0;
    mask enabled_ = 0;
    mask timed_ = 0;
    mask paused_ = 0;
    fairness turns_;
    unsigned steps_ = 0;
    int preemptions_left_ = 0;
    bool bounded_ = true;
    bool spurious_wakeup_left_ = false;
    unsigned spurious_failures_left_ = 0;
    bool traced_ = false;
    bool histories_cut_ = false;
    failure outcome_ = failure::none;

    chooser* decisions_ = nullptr;
    schedule_settings settings_;
    std::function<void()> const* scenario_ = nullptr;

    std::array<model_thread, max_threads> threads_{};
    pool<location> locations_;
    pool<store_record> stores_;
    pool<event> events_;
    pool<std::exception_ptr*> lost_exceptions_;
    arena arena_;

    fiber host_;
    std::array<fiber, max_threads> fibers_;
    mask idle_fibers_ = 0;  // started, and waiting in fiber_loop for the next execution
    std::array<char, 1024> message_{};
};

}  // namespace rondo::check::detail
