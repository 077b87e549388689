// The life of a member
//
//      place     -> place     by             on thread    then
//  J1  outside   -> running   add()          spawner's    it is posted
//  J2  running   -> asked     stop_before()  any          it is asked to stop, without the lock
//      outside   -> asked     add()          spawner's    the same in a shutdown; then it is posted
//  J3  running,  -> ended     ended()        its own      the first in line is granted it
//      asked
//  J4  ended     -> granted   grant          any          it is the joiner's, if that may take it
//  J5  granted   -> ended     put_back()     joiner's     the joiner may not: it is the first again
//  J6  granted   -> outside   join()         joiner's     the result is taken; if it was the last,
//                                                         all who wait hear that none is left
//  J7  ended     -> outside   try_join()     joiner's     J4 and J6 at once, when nobody waits
//  J8  any       -> outside   detach_all()   any          it runs on; its result goes with it, but
//                                                         whoever was granted it may still take it
//  J9  ended     -> outside   drop_ended()   any          its result is destroyed
//
// Invariants
//   I1  a member is in the list of its place, and places change only under the lock.
//   I2  size_ counts those that are not outside: one that is granted is not joined yet, and may
//       come back. Until it is known, nobody hears that the set is empty.
//   I3  who is in a list is owned by the set: the share of whoever takes it out. But for who is
//       granted: that share is the joiner's.
//   I4  no result is destroyed, and no stop asked for, under the lock.
//   I5  a member that was taken out does not come back: ended() and put_back() find it outside.
//   I6  running_ is in the order of the members' numbers, which is that in which they were added.
#include "rondo/core/detail/join_group.hpp"

#include <cstdint>
#include <limits>
#include <mutex>

namespace rondo::detail {

void join_member::end() noexcept {
    leave_executor();
    join_group& group = group_;
    group.ended(*this);  // a joiner may have taken it, but the task's own share keeps it
    group.let_go();
}

join_group::member_list& join_group::list_at(place p) noexcept {
    if (p == place::running) return running_;
    if (p == place::asked) return asked_;
    return p == place::ended ? ended_ : granted_;
}

// Out of the list of its place and into another one.
void join_group::move(join_member& m, place to) noexcept {
    if (m.place_ != place::outside) member_list::remove(m);
    if (to != place::outside) list_at(to).push_back(m);
    m.place_ = to;  // I1
}

void join_group::take_out(join_member& m) noexcept {
    move(m, place::outside);
    size_ = size_ - 1;  // I2
}

void join_group::let_go() noexcept {
    // acq_rel: the last owner sees what the others did
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

std::size_t join_group::size() noexcept {
    std::lock_guard const guard{lock()};
    return size_;
}

bool join_group::awaited() noexcept {
    std::lock_guard const guard{lock()};
    return has_waiters() || !granted_.empty();
}

void join_group::add(join_member& m) noexcept {
    hold();
    bool asked = false;
    {
        std::lock_guard const guard{lock()};
        std::uint64_t const number = next_number_;
        m.number_ = number;
        next_number_ = number + 1;
        asked = shutdowns_ != 0;
        move(m, asked ? place::asked : place::running);  // J1, J2, I6
        size_ = size_ + 1;
    }
    if (asked) m.request_stop();  // I4; it has not begun, so its own share keeps it
}

void join_group::ended(join_member& m) noexcept {
    serve([this, &m] {
        if (m.place_ != place::outside) move(m, place::ended);  // J3, I5
    });
}

bool join_group::grant(waiter& first) noexcept {
    auto& op = static_cast<group_op&>(first);
    return op.wish_ == group_op::wish::silence ? none_runs() : grant_next(op);
}

bool join_group::grant_next(group_op& op) noexcept {
    if (join_member* const m = ended_.front()) {
        move(*m, place::granted);  // J4
        op.member_ = m;
        return true;
    }
    return size_ == 0;  // I2
}

bool join_group::try_grant(group_op& op) noexcept {
    std::lock_guard const guard{lock()};
    return !has_waiters() && grant(op);
}

bool join_group::try_join(group_op& op) noexcept {
    std::lock_guard const guard{lock()};
    if (has_waiters() || !grant(op)) return false;
    if (op.member_ != nullptr) take_out(*op.member_);  // J7
    op.joined_ = true;
    return true;
}

void join_group::join(group_op& op) noexcept {
    if (op.joined_) return;
    join_member& m = *op.member_;
    serve([this, &m] {
        if (m.place_ != place::outside) take_out(m);  // J6
    });
}

void join_group::put_back(join_member& m) noexcept {
    bool detached = false;
    serve([this, &m, &detached] {
        detached = m.place_ == place::outside;  // I5
        if (detached) return;
        member_list::remove(m);
        ended_.push_front(m);  // J5
        m.place_ = place::ended;
    });
    if (detached) m.let_go();  // I4
}

// Takes one out; its share is the caller's then.
join_member* join_group::take(place from) noexcept {
    std::lock_guard const guard{lock()};
    join_member* const m = list_at(from).front();
    if (m == nullptr) return nullptr;
    take_out(*m);  // J8, J9
    return m;
}

void join_group::drop_all(place from) noexcept {
    while (join_member* const m = take(from)) m->let_go();  // I4
}

void join_group::drop_ended() noexcept { drop_all(place::ended); }

void join_group::detach_all() noexcept {
    // Members only move down this list, so that none is passed by.
    for (place from : {place::running, place::asked, place::ended}) drop_all(from);
    while (!detach_granted()) drop_all(place::ended);
}

// Those that are granted, unless one of them was put back meanwhile.
bool join_group::detach_granted() noexcept {
    bool none_is_back = false;
    serve([this, &none_is_back] {  // who waits for the next hears that there is none
        none_is_back = ended_.empty();
        if (!none_is_back) return;
        while (join_member* const m = granted_.front()) take_out(*m);  // J8, I3
    });
    return none_is_back;
}

std::uint64_t join_group::next_number() noexcept {
    std::lock_guard const guard{lock()};
    return next_number_;
}

void join_group::stop_all() noexcept { stop_before(next_number()); }

void join_group::stop_for_good() noexcept {
    stop_before(std::numeric_limits<std::uint64_t>::max());
}

void join_group::begin_shutdown() noexcept {
    hold();
    {
        std::lock_guard const guard{lock()};
        shutdowns_ = shutdowns_ + 1;
    }
    stop_all();  // who is added later is asked by add()
}

void join_group::end_shutdown() noexcept {
    {
        std::lock_guard const guard{lock()};
        shutdowns_ = shutdowns_ - 1;
    }
    let_go();
}

void join_group::stop_before(std::uint64_t number) noexcept {
    for (;;) {
        join_member* m = nullptr;
        {
            std::lock_guard const guard{lock()};
            m = running_.front();
            if (m == nullptr || m->number_ >= number) return;  // I6
            move(*m, place::asked);                            // J2
            m->hold();
        }
        m->request_stop();  // I4
        m->let_go();
    }
}

}  // namespace rondo::detail
