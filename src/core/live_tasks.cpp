// Two lists: tasks move from one to the other as they are asked. So the walk of stop_all() needs no
// position that a task which ends meanwhile could take away. All in asked_ are newer than all in
// unasked_, as the newest are asked first.
#include "rondo/core/live_tasks.hpp"

#include "rondo/core/assert.hpp"

namespace rondo {

void live_task::abandon() noexcept {
    RONDO_ASSERT(false, "only a task that was spawned can be abandoned");
}

std::size_t live_tasks::size() const noexcept {
    std::lock_guard const guard{lock_};
    return size_;
}

live_tasks::history live_tasks::so_far() const noexcept {
    std::lock_guard const guard{lock_};
    return {added_, added_ - size_};
}

void live_tasks::add(live_task& t) noexcept {
    {
        std::lock_guard const guard{lock_};
        t.list_ = this;
        (stopping_ ? asked_ : unasked_).push_front(t);
        ++size_;
        ++added_;
        if (!stopping_) return;
    }
    t.request_stop();
}

void live_tasks::remove(live_task& t) noexcept {
    live_tasks& list = *t.list_;
    std::lock_guard const guard{list.lock_};
    task_list::remove(t);
    --list.size_;
}

live_task* live_tasks::next_to_ask() noexcept {
    std::lock_guard const guard{lock_};
    stopping_ = true;
    live_task* const t = unasked_.pop_front();
    if (t == nullptr) return nullptr;
    asked_.push_back(*t);
    t->hold();
    return t;
}

std::vector<task_trace> live_tasks::traces() const {
    std::vector<task_trace> all;
    for_each([&all](live_task const& t) { all.push_back(t.trace()); });
    return all;
}

live_task* live_tasks::newest() noexcept {
    std::lock_guard const guard{lock_};
    live_task* const t = asked_.empty() ? unasked_.front() : asked_.front();
    if (t != nullptr) t->hold();
    return t;
}

void live_tasks::abandon_all() noexcept {
    while (live_task* const t = newest()) {
        t->abandon();
        t->let_go();
    }
}

void live_tasks::stop_all() noexcept {
    while (live_task* const t = next_to_ask()) {
        t->request_stop();
        t->let_go();
    }
}

}  // namespace rondo
