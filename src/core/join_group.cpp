// The life of a member
//
//      place     -> place     by             on thread    then
//  J1  outside   -> running   add()          spawner's    it is posted
//  J2  running   -> asked     stop_all()     any          it is asked to stop, without the lock
//  J3  running,  -> ended     ended()        its own      the first in line is granted it
//      asked
//  J4  ended     -> outside   grant          any          the joiner owns it and takes the result
//  J5  outside   -> ended     put_back()     any          the joiner could not take it
//  J6  any       -> outside   detach_all()   any          it runs on; its result goes with it
//  J7  ended     -> outside   drop_ended()   any          its result is destroyed
//
// Invariants
//   I1  a member is in the list of its place, and places change only under the lock.
//   I2  size_ counts those that are not outside.
//   I3  who is in a list is owned by the set: the share of whoever takes it out.
//   I4  no result is destroyed, and no stop asked for, under the lock.
//   I5  a member that was taken out before it ended does not come back: ended() finds it outside.
#include "rondo/core/detail/join_group.hpp"

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
    return p == place::asked ? asked_ : ended_;
}

// Out of the list of its place and into another one.
void join_group::move(join_member& m, place to) noexcept {
    if (m.place_ != place::outside) member_list::remove(m);
    if (to != place::outside) list_at(to).push_back(m);
    m.place_ = to;  // I1
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
    return has_waiters();
}

void join_group::add(join_member& m) noexcept {
    hold();
    std::lock_guard const guard{lock()};
    move(m, place::running);  // J1
    size_ = size_ + 1;
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
        move(*m, place::outside);  // J4
        size_ = size_ - 1;
        op.member_ = m;
        return true;
    }
    return size_ == 0;
}

bool join_group::try_grant(group_op& op) noexcept {
    std::lock_guard const guard{lock()};
    return !has_waiters() && grant(op);
}

void join_group::put_back(join_member& m) noexcept {
    serve([this, &m] {
        ended_.push_front(m);  // J5
        m.place_ = place::ended;
        size_ = size_ + 1;
    });
}

// Takes one out; its share is the caller's then.
join_member* join_group::take(place from) noexcept {
    std::lock_guard const guard{lock()};
    join_member* const m = list_at(from).front();
    if (m == nullptr) return nullptr;
    move(*m, place::outside);  // J6, J7
    size_ = size_ - 1;
    return m;
}

void join_group::drop_all(place from) noexcept {
    while (join_member* const m = take(from)) m->let_go();  // I4
}

void join_group::drop_ended() noexcept { drop_all(place::ended); }

void join_group::detach_all() noexcept {
    // Members only move down this list, so that none is passed by.
    for (place from : {place::running, place::asked, place::ended}) drop_all(from);
    serve([] {});  // who waits for the next hears that there is none
}

void join_group::stop_all() noexcept {
    for (;;) {
        join_member* m = nullptr;
        {
            std::lock_guard const guard{lock()};
            m = running_.front();
            if (m == nullptr) return;
            move(*m, place::asked);  // J2
            m->hold();
        }
        m->request_stop();  // I4
        m->let_go();
    }
}

}  // namespace rondo::detail
