// objects.cpp: lives of objects, and the ones that are not atomics: cells, mutexes, futexes.
//
// Algorithm      Cells: a write must happen after the last write and after each thread's last read,
//                a read after the last write (as FastTrack does, with a whole clock for reads).
//                Construction is a write, destruction too; for an atomic or a mutex, destruction
//                must happen after each thread's last access. So a life that ends too early is
//                found in every interleaving, not only in the one where somebody comes too late.
//
//                Mutexes: a thread that has come to lock() is enabled exactly while the mutex is
//                free, so it never wakes up only to find it taken again.
//
//                Futexes: a spurious return is decided when the wait begins; the thread then yields
//                for free, which gives the same executions as returning at any later moment.
//
// Invariants     I1 an object's id is believed only if the record names the object's address.

#include <cstdio>

#include "execution.hpp"
#include "sanitizers.hpp"

namespace rondo::check::detail {
namespace {

// The object may be gone and its memory poisoned: finding that out is what we are here for.
RONDO_CHECK_NO_ASAN std::uint32_t id_in(tracked const& object) noexcept {
    return *static_cast<std::uint32_t const volatile*>(&object.id);
}

char const* kind_name(object_kind kind) noexcept {
    switch (kind) {
        case object_kind::atomic:
            return "atomic";
        case object_kind::cell:
            return "cell";
        case object_kind::mutex:
            return "mutex";
    }
    return "?";
}

}  // namespace

execution::name execution::name_of(location const& place) const {
    name result{};
    if (place.label != nullptr) {
        std::snprintf(result.text, sizeof result.text, "%s", place.label);
    } else {
        std::snprintf(result.text, sizeof result.text, "%s#%u", kind_name(place.kind),
                      static_cast<unsigned>(id_of(place)));
    }
    return result;
}

location& execution::find(tracked const& object, object_kind kind, char const* what) {
    std::uint32_t const id = id_in(object);
    if (id < locations_.size()) {
        location& place = locations_[id];
        if (place.address == &object && place.alive && place.kind == kind) [[likely]] {
            return place;  // I1
        }
    }
    fail_gone(object, kind, what);
}

void execution::fail_gone(tracked const& object, object_kind kind, char const* what) {
    for (std::size_t i = locations_.size(); i-- != 0;) {
        location const& place = locations_[i];
        if (place.address == &object && !place.alive) {
            fail(failure::use_after_destroy, "T%u: %s on %s, which T%u destroyed", self_, what,
                 name_of(place).text, unsigned{place.destroyed_by});
        }
    }
    fail(failure::misuse, "T%u: %s on %s %s that was not constructed in this execution", self_,
         what, kind == object_kind::atomic ? "an" : "a", kind_name(kind));
}

void execution::must_see_construction(location const& place, char const* what) {
    if (!me().now.covers(place.written_by, place.written_at)) {
        fail(failure::race, "T%u: %s on %s, whose construction by T%u does not happen before",
             self_, what, name_of(place).text, unsigned{place.written_by});
    }
}

void execution::create(tracked& object, object_kind kind, where at) {
    object.id = static_cast<std::uint32_t>(locations_.size());
    location& place = locations_.push();
    place.address = &object;
    place.label = nullptr;
    place.touched = clock{};
    place.published = clock{};
    place.written_at = time();
    place.written_by = static_cast<std::uint8_t>(self_);
    place.owner = nobody;
    place.kind = kind;
    place.alive = true;
    place.destroyed_by = nobody;
    note(action::created, at, object.id);
}

void execution::destroy(tracked& object, object_kind kind) {
    location& place = find(object, kind, "destruction");
    check_cell_write(place, "destruction");
    if (place.owner != nobody) {
        fail(failure::misuse, "T%u: destruction of %s, which T%u holds", self_, name_of(place).text,
             unsigned{place.owner});
    }
    place.alive = false;
    place.destroyed_by = static_cast<std::uint8_t>(self_);
    note(action::destroyed, where{}, id_of(place));
}

void execution::label(tracked const& object, char const* text) {
    std::uint32_t const id = id_in(object);
    if (id < locations_.size() && locations_[id].address == &object) {
        locations_[id].label = text;
    }
}

void execution::check_cell_write(location& place, char const* what) {
    clock const& now = me().now;
    if (!now.covers(place.written_by, place.written_at)) {
        fail(failure::race, "T%u: %s of %s races with a write by T%u", self_, what,
             name_of(place).text, unsigned{place.written_by});
    }
    for (unsigned i = 0; i < thread_count_; ++i) {
        if (!now.covers(i, place.touched.at[i])) {
            fail(failure::race, "T%u: %s of %s races with %s by T%u", self_, what,
                 name_of(place).text, place.kind == object_kind::cell ? "a read" : "an access", i);
        }
    }
}

void execution::read_cell(tracked const& object, where at) {
    location& place = find(object, object_kind::cell, "read");
    note(action::cell_read, at, id_of(place));
    if (!me().now.covers(place.written_by, place.written_at)) {
        fail(failure::race, "T%u: read of %s races with a write by T%u", self_, name_of(place).text,
             unsigned{place.written_by});
    }
    place.touched.at[self_] = time();
}

void execution::write_cell(tracked& object, where at) {
    location& place = find(object, object_kind::cell, "write");
    note(action::cell_write, at, id_of(place));
    check_cell_write(place, "write");
    place.written_by = static_cast<std::uint8_t>(self_);
    place.written_at = time();
}

void execution::lock(tracked& object, where at) {
    location& place = find(object, object_kind::mutex, "lock");
    std::uint32_t const id = id_of(place);
    if (place.owner == self_) {
        fail(failure::misuse, "T%u locks %s, which it holds", self_, name_of(place).text);
    }
    me().state = model_thread::doing::locking;
    me().object = id;
    if (place.owner == nobody) {
        point();
    } else {
        note(action::lock_blocked, at, id, place.owner);
        count_step();
        set_enabled(self_, false);
        block();
        me().resumed = false;
    }
    me().state = model_thread::doing::running;

    location& taken = find(object, object_kind::mutex, "lock");
    must_see_construction(taken, "lock");
    taken.owner = static_cast<std::uint8_t>(self_);
    taken.touched.at[self_] = time();
    me().now.join(taken.published);
    set_lockers(id, false);
    note(action::lock, at, id);
    tick();
}

bool execution::try_lock(tracked& object, where at) {
    point();
    location& place = find(object, object_kind::mutex, "try_lock");
    must_see_construction(place, "try_lock");
    place.touched.at[self_] = time();
    if (place.owner != nobody) {
        note(action::try_lock_failed, at, id_of(place), place.owner);
        tick();
        return false;
    }
    place.owner = static_cast<std::uint8_t>(self_);
    me().now.join(place.published);
    set_lockers(id_of(place), false);
    note(action::lock, at, id_of(place));
    tick();
    return true;
}

void execution::unlock(tracked& object, where at) {
    point();
    location& place = find(object, object_kind::mutex, "unlock");
    if (place.owner != self_) {
        fail(failure::misuse, "T%u unlocks %s, which it does not hold", self_, name_of(place).text);
    }
    place.owner = nobody;
    place.touched.at[self_] = time();
    place.published = me().now;
    set_lockers(id_of(place), true);
    note(action::unlock, at, id_of(place));
    tick();
}

void execution::set_lockers(std::uint32_t mutex, bool enabled) noexcept {
    for (unsigned i = 0; i < thread_count_; ++i) {
        if (threads_[i].state == model_thread::doing::locking && threads_[i].object == mutex) {
            set_enabled(i, enabled);
        }
    }
}

bool execution::wait(atomic_word const& object, std::uint32_t expected, bool timed, where at) {
    point();
    location& place = atomic_at(object, "futex_wait");
    std::uint32_t const id = id_of(place);
    std::uint64_t const value = stores_[place.newest].value;
    model_thread& waiter = me();
    if (value != expected) {
        mark_seen(place, self_);
        note(action::futex_differs, at, id, value);
        tick();
        return true;
    }
    if (!timed && spurious_wakeup_left_ && choose(branch::spurious, 2) == 1) {
        spurious_wakeup_left_ = false;
        mark_seen(place, self_);
        note(action::futex_spurious, at, id, value);
        tick();
        yield();
        return true;
    }
    note(action::futex_block, at, id, value);
    tick();
    waiter.state = model_thread::doing::waiting;
    waiter.object = id;
    waiter.waits_for = &object;
    waiter.timed_out = false;
    set_enabled(self_, false);
    if (timed) {
        timed_ |= bit(self_);
        turns_.pause(self_, enabled_);
        decisions_->defer(self_, 75);
    }
    block();
    waiter.state = model_thread::doing::running;
    if (!waiter.timed_out) {
        note(action::futex_woken, at, id);
        return true;
    }
    // Time has passed: what others stored before is visible, or a loop of timed waits could read
    // the same old values for ever.
    waiter.visible_from = static_cast<std::uint32_t>(stores_.size());
    note(action::futex_timeout, at, id);
    return false;
}

void execution::wake(void const* address, int count, where at) {
    point();
    std::array<std::uint8_t, max_threads> waiting;
    unsigned waiters = 0;
    for (unsigned i = 0; i < thread_count_; ++i) {
        model_thread const& each = threads_[i];
        bool const timed_out = (enabled_ & bit(i)) != 0;
        if (each.state == model_thread::doing::waiting && each.waits_for == address && !timed_out) {
            waiting[waiters++] = static_cast<std::uint8_t>(i);
        }
    }
    std::uint64_t woken = 0;
    for (int left = count; left > 0 && waiters != 0; --left) {
        // The kernel does not promise an order; if all are woken there is nothing to choose.
        unsigned const pick =
            static_cast<unsigned>(left) >= waiters ? waiters - 1 : choose(branch::waiter, waiters);
        unsigned const thread = waiting[pick];
        waiting[pick] = waiting[--waiters];
        if (location const& word = locations_[threads_[thread].object]; word.alive) {
            mark_seen(word, thread);
        }
        set_enabled(thread, true);
        ++woken;
    }
    note(action::futex_wake, at, unregistered, woken, std::memory_order::relaxed,
         static_cast<std::uint64_t>(count));
    tick();
}

void execution::release_memory(void* block) {
    switch (arena_.free(block)) {
        case arena::freed::done:
            return;
        case arena::freed::twice:
            fail(failure::double_free, "T%u frees memory at arena+0x%zx a second time", self_,
                 arena_.offset(block));
        case arena::freed::unknown:
            fail(failure::misuse, "T%u frees arena+0x%zx, which operator new never returned", self_,
                 arena_.offset(block));
    }
}

}  // namespace rondo::check::detail
