// scheduler.cpp: which thread takes the next step.
//
// Algorithm      Every operation that another thread can notice begins with point(): the chooser
//                picks who goes on, the running thread or another enabled one. Leaving a thread
//                that could go on is a preemption and costs one of a budget (Musuvathi, Qadeer:
//                Iterative Context Bounding, PLDI 2007); leaving one that blocks, ends or pauses is
//                free.
//
//                No choice is made where it cannot matter: before starting a thread, before joining
//                one that has ended, and before the first operation after a thread was resumed
//                (its choice was the choice of that operation). Starting and joining commute with
//                every operation of other threads, so each order they could give is given by the
//                choice at the next operation, at the same price.
//
// Fairness       A thread that spins lets those go first whom it may wait for: fairness.hpp. A wait
//                that can time out counts as a pause, or it could time out for ever.

#include <algorithm>
#include <bit>
#include <cstdarg>
#include <cstdio>

#include "execution.hpp"

namespace rondo::check::detail {

void execution::count_step() {
    if (++steps_ > settings_.max_steps) {
        fail(failure::livelock, "no end after %u steps", settings_.max_steps);
    }
    paused_ = 0;
    turns_.step(self_, enabled_);
}

void execution::point() {
    count_step();
    if (me().resumed) {
        me().resumed = false;  // I3
        return;
    }
    if ((enabled_ | timed_) == bit(self_)) {
        return;
    }
    switch_to(next_thread(leaving::preempted));
    me().resumed = false;
}

unsigned execution::choose(branch what, unsigned alternatives) {
    unsigned const taken = decisions_->choose(what, alternatives, alternatives);
    if (taken == chooser::diverged) {
        fail(failure::nondeterminism,
             "the scenario does not repeat itself: it came to a different choice than before");
    }
    return taken;
}

// Lists threads in `from`, the running one first and those that would have to time out last.
unsigned execution::candidates(mask from, std::array<std::uint8_t, max_threads>& list) const {
    unsigned count = 0;
    auto const add = [&](mask set) {
        for (; set != 0; set &= static_cast<mask>(set - 1)) {
            list[count++] = static_cast<std::uint8_t>(std::countr_zero(set));
        }
    };
    mask const running = from & enabled_ & bit(self_);
    add(running);
    add(from & enabled_ & static_cast<mask>(~running));
    add(from & timed_);
    return count;
}

unsigned execution::next_thread(leaving how) {
    mask const able = enabled_ | timed_;
    if (able == 0) {
        fail_deadlocked();
    }
    mask from = able & static_cast<mask>(~(paused_ | turns_.held_back(thread_count_, enabled_)));
    if (from == 0) {
        from = able;
    }
    std::array<std::uint8_t, max_threads> list;
    unsigned const count = candidates(from, list);
    bool const costs = how == leaving::preempted && list[0] == self_;
    unsigned const allowed = costs && bounded_ && preemptions_left_ == 0 ? 1 : count;
    unsigned const taken = decisions_->choose_thread({list.data(), count}, allowed, self_, steps_);
    if (taken == chooser::diverged) {
        fail(failure::nondeterminism,
             "the scenario does not repeat itself: other threads could run than before");
    }
    if (costs && taken != 0) {
        --preemptions_left_;
    }
    return list[taken];
}

void execution::switch_to(unsigned next) {
    unsigned const previous = self_;
    if ((timed_ & bit(next)) != 0) {
        threads_[next].timed_out = true;
        set_enabled(next, true);
    }
    if (next == previous) {
        return;
    }
    threads_[previous].memory = current_arena;
    current_arena = threads_[next].memory;
    self_ = next;
    idle_fibers_ &= static_cast<mask>(~bit(next));
    fiber::jump(fibers_[previous], fibers_[next]);
}

// The caller has taken this thread out of enabled_; returns when it is scheduled again.
void execution::block() {
    switch_to(next_thread(leaving::freely));
    me().resumed = true;
}

// Lets any thread go on, this one included, at no cost.
void execution::yield() {
    switch_to(next_thread(leaving::freely));
    me().resumed = true;
}

void execution::set_enabled(unsigned thread, bool enabled) noexcept {
    timed_ &= static_cast<mask>(~bit(thread));
    if (enabled) {
        enabled_ |= bit(thread);
    } else {
        enabled_ &= static_cast<mask>(~bit(thread));
    }
}

void execution::pause(where at) {
    count_step();
    note(action::pause, at, 0);
    me().visible_from = static_cast<std::uint32_t>(stores_.size());
    me().resumed = false;
    tick();
    decisions_->defer(self_, 100);
    turns_.pause(self_, enabled_);
    paused_ |= bit(self_);
    yield();
}

unsigned execution::spawn(void (*body)(void*), void* closure, where at) {
    if (thread_count_ == max_threads) {
        fail(failure::limit, "more than %u threads in one execution", max_threads);
    }
    count_step();
    unsigned const id = thread_count_++;
    model_thread& child = threads_[id];
    child.now = me().now;
    child.now.at[id] = 1;
    child.run = body;
    child.closure = closure;
    child.memory = &arena_;
    child.visible_from = me().visible_from;
    child.state = model_thread::doing::running;
    child.resumed = true;
    child.timed_out = false;
    child.joined = false;
    child.slots = 0;
    set_enabled(id, true);
    me().resumed = false;  // when this thread was chosen, the child was not among the candidates
    tick();
    note(action::spawn, at, id);
    if (!fibers_[id].started()) {
        fibers_[id].start(&execution::fiber_loop, this);
    }
    return id;
}

void execution::join(unsigned thread, where at) {
    count_step();
    model_thread& target = threads_[thread];
    if (target.state != model_thread::doing::finished) {
        if (thread == self_) {
            fail(failure::misuse, "thread %u joins itself", self_);
        }
        me().state = model_thread::doing::joining;
        me().object = thread;
        set_enabled(self_, false);
        block();
        me().state = model_thread::doing::running;
    }
    target.joined = true;
    me().now.join(target.now);
    tick();
    note(action::join, at, thread);
}

void execution::finish_thread() {
    model_thread& ending = me();
    destroy_storage();
    note(action::thread_end, where{}, self_);
    ending.state = model_thread::doing::finished;
    set_enabled(self_, false);
    for (unsigned i = 0; i < thread_count_; ++i) {
        if (threads_[i].state == model_thread::doing::joining && threads_[i].object == self_) {
            set_enabled(i, true);
        }
    }
    unsigned const next = next_thread(leaving::freely);
    idle_fibers_ |= bit(self_);
    switch_to(next);
}

void* execution::slot(void const* key, void* (*make)(), void (*unmake)(void*)) {
    model_thread& owner = me();
    for (unsigned i = 0; i < owner.slots; ++i) {
        if (owner.storage[i].key == key) {
            return owner.storage[i].object;
        }
    }
    void* const object = make();
    if (owner.slots == owner.storage.size()) {
        fail(failure::limit, "more than %zu types of thread_storage", owner.storage.size());
    }
    owner.storage[owner.slots++] = {key, object, unmake};
    return object;
}

void execution::destroy_storage() {
    model_thread& owner = me();
    while (owner.slots != 0) {
        thread_slot_record const last = owner.storage[--owner.slots];
        last.destroy(last.object);
    }
}

void execution::fail_deadlocked() {
    std::array<char, 640> text{};
    std::size_t used = 0;
    auto const add = [&](char const* format, auto... values) {
        int const n = std::snprintf(text.data() + used, text.size() - used, format, values...);
        used = std::min(used + static_cast<std::size_t>(n), text.size() - 1);
    };
    for (unsigned i = 0; i < thread_count_; ++i) {
        model_thread const& each = threads_[i];
        switch (each.state) {
            case model_thread::doing::locking: {
                location const& held = locations_[each.object];
                add("; T%u locks %s held by T%u", i, name_of(held).text, unsigned{held.owner});
                break;
            }
            case model_thread::doing::waiting:
                add("; T%u waits on %s", i, name_of(locations_[each.object]).text);
                break;
            case model_thread::doing::joining:
                add("; T%u joins T%u", i, each.object);
                break;
            default:
                break;
        }
    }
    fail(failure::deadlock, "every thread waits%s", text.data());
}

void execution::fail(failure kind, char const* format, ...) noexcept {
    outcome_ = kind;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(message_.data(), message_.size(), format, arguments);
    va_end(arguments);
    fiber::jump(fibers_[self_], host_);
    __builtin_unreachable();
}

}  // namespace rondo::check::detail
