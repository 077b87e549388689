// Algorithm
//   A ring of pointers, so that a share of it is moved without touching the jobs, which lie in
//   another core's cache; what does not fit is chained behind it. A worker is one of
//
//       running     has a job, or looks here for one
//       searching   looks at the other workers' queues, and here, for a little while
//       asleep      parked, or about to be
//
//   and a worker that is woken wakes up searching: until it has found something or lies down
//   again, nobody else is woken. But the system may leave it without a processor for as long as
//   it likes, tens of milliseconds on a busy machine, and it need not be the only processor. So
//   when jobs pile up although somebody searches one more is woken, and again each time that
//   twice as many wait.
//
// Invariants, while the lock is free
//   I1  a job here and a sleeper imply a searcher. A push that finds sleepers and no searcher makes
//       one. The last searcher that leaves takes the job, and then looks whether there are more.
//   I2  the same for jobs in the workers' own queues, which are pushed without the lock: the push
//       is followed by a look at idle_, and whoever sets idle_ looks at the queues after it. Both
//       are sequentially consistent, so one of the two sees the other.
//   I3  a waiter for room implies size_ > capacity / 2, or letting_in_.
//   I4  who ends together does so when the last lies down: then nobody runs a job that could push
//       another one, and nothing is left, as each has emptied its own queue before it lay down.
//
// Races considered
//   - post() of the job that ends the pool: after the unlock it touches only the seat of the worker
//     that it wakes, and that one cannot end before.
//   - a push to a worker that ends: it is refused under the lock, once the last worker has left.
//   - a second worker lies down and finds idle_ set, so it does not set it: who had looked at idle_
//     before it was set had pushed before that too, and the second one looks at the queues after.
#include "rondo/exec/detail/intake.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <mutex>

#include "rondo/core/assert.hpp"

namespace rondo::detail {

namespace {

constexpr std::size_t largest_ring = 65536;  // half a megabyte
// What a worker takes even if a fair share is less: others can steal half of it, and it comes here
// the less often.
constexpr std::size_t handful = checked_build ? 0 : 16;
constexpr std::size_t most_workers = std::numeric_limits<std::uint16_t>::max();

// So many jobs may wait for whoever searches. A searcher that has a processor looks here about
// once in a microsecond, and takes a share of what it finds.
constexpr std::size_t patience = checked_build ? 4 : 16;

}  // namespace

intake::intake(std::size_t capacity, std::size_t workers, std::size_t searchers)
    : workers_here_(static_cast<std::uint16_t>(workers)),
      capacity_(capacity),
      workers_(workers),
      searchers_(searchers),
      mask_(static_cast<std::uint32_t>(std::bit_ceil(std::min(capacity, largest_ring)) - 1)),
      ring_(new cell<job*>[mask_ + 1]) {
    RONDO_ASSERT(workers <= most_workers, "a pool has at most 65535 workers");
}

intake::~intake() {
    RONDO_ASSERT(size() == 0, "a pool's queue is destroyed after its jobs have run");
}

void intake::add(job& j) noexcept {
    if (tail_ - head_ <= mask_) {
        slot(tail_) = &j;
        tail_ = tail_ + 1;
    } else {
        overflow_.push(j);
    }
    std::size_t const now = size() + 1;
    size_.store(now, std::memory_order_relaxed);  // relaxed: a hint for who has no lock
    if (now >= capacity_) letting_in_ = false;
}

job* intake::remove() noexcept {
    job* const first = slot(head_);
    head_ = head_ + 1;
    if (job* const next = overflow_.pop()) {
        slot(tail_) = next;
        tail_ = tail_ + 1;
    }
    std::size_t const now = size() - 1;
    size_.store(now, std::memory_order_relaxed);   // relaxed: as in add()
    if (now <= capacity_ / 2) letting_in_ = true;  // I3
    return first;
}

void intake::publish_idle() noexcept {
    bool const now = asleep_ != nullptr && searching_ == 0;
    if (idle_.load(std::memory_order_relaxed) == now) return;  // relaxed: changed under the lock
    // sequentially consistent: pairs with idle(), after a push into a worker's own queue
    idle_.store(now, std::memory_order_seq_cst);  // I2
}

// Whether one more should be woken although somebody searches, now that so many were added: the
// number of those that wait has come to a power of two, or has passed one.
bool intake::behind(std::size_t added) const noexcept {
    return size() >= patience && std::bit_width(size()) > std::bit_width(size() - added);
}

// The first of the sleepers, to be woken; it counts as searching from now on.
seat& intake::choose_first() noexcept {
    seat& first = *asleep_.read();
    asleep_ = first.next_asleep_.read();
    first.asleep_ = false;
    --sleepers_;
    first.searching_ = true;
    first.times_chosen_ = first.times_chosen_ + 1;
    ++searching_;
    return first;
}

// One of the sleepers, if somebody has to be woken.
seat* intake::choose_one_to_wake(std::size_t added) noexcept {
    if (asleep_ == nullptr || (searching_ != 0 && !behind(added))) return nullptr;
    seat& first = choose_first();
    publish_idle();
    return &first;
}

bool intake::stop_searching(seat& me) noexcept {
    if (!me.searching_) return false;
    me.searching_ = false;
    --searching_;
    publish_idle();
    return searching_ == 0;
}

intake::outcome intake::try_push(job& j) noexcept {
    seat* woken = nullptr;
    {
        std::lock_guard const guard{lock()};
        if (closed()) return outcome::closed;
        if (has_waiters() || size() >= capacity_) return outcome::full;
        add(j);
        woken = choose_one_to_wake(1);  // I1
    }
    if (woken != nullptr) woken->unpark();
    return outcome::accepted;
}

bool intake::post(job& j) noexcept {
    seat* woken = nullptr;
    {
        std::lock_guard const guard{lock()};
        if (workers_here_ == 0) return false;
        add(j);
        woken = choose_one_to_wake(1);  // I1: past the bound too
    }
    if (woken != nullptr) woken->unpark();
    return true;
}

bool intake::post_all(job_queue& jobs) noexcept {
    seat* woken = nullptr;
    {
        std::lock_guard const guard{lock()};
        if (workers_here_ == 0) return false;
        std::size_t const before = size();
        while (job* const j = jobs.pop()) add(*j);
        woken = choose_one_to_wake(size() - before);  // I1
    }
    if (woken != nullptr) woken->unpark();
    return true;
}

bool intake::grant(waiter& first) noexcept {
    auto& op = static_cast<push_op&>(first);
    if (closed()) {
        op.outcome_ = outcome::closed;
        return true;
    }
    if (!letting_in_) return false;
    add(*op.job_);
    op.outcome_ = outcome::accepted;
    return true;
}

void intake::wake_one() noexcept {
    seat* woken = nullptr;
    {
        std::lock_guard const guard{lock()};
        woken = choose_one_to_wake(0);
    }
    if (woken != nullptr) woken->unpark();
}

job* intake::take(seat& me, steal_queue* own, bool& left_search) noexcept {
    job* first = nullptr;
    left_search = false;
    if (size() == 0) return nullptr;
    serve([&] {
        if (size() == 0) return;
        first = remove();
        if (own != nullptr) {
            std::size_t const share =
                std::clamp(size() / workers_, std::min(size(), handful), largest_share);
            own->push_some(static_cast<std::uint32_t>(share), [this] { return remove(); });
        }
        left_search = stop_searching(me);
    });
    return first;
}

bool intake::begin_search(seat& me) noexcept {
    std::lock_guard const guard{lock()};
    if (me.searching_) return true;
    if (searching_ >= searchers_) return false;
    me.searching_ = true;
    ++searching_;
    publish_idle();
    return true;
}

bool intake::end_search(seat& me) noexcept {
    std::lock_guard const guard{lock()};
    return stop_searching(me);
}

intake::rest intake::lie_down(seat& me) noexcept {
    std::lock_guard const guard{lock()};
    if (size() != 0) return rest::stay_up;
    if (together_ && sleepers_ + 1 == workers_here_) {  // I4
        together_ = false;
        wake_all();
    }
    if (closing_ && !together_) {
        stop_searching(me);
        --workers_here_;
        return rest::ended;
    }
    me.next_asleep_ = asleep_.read();
    me.asleep_ = true;
    asleep_ = &me;
    ++sleepers_;
    if (!stop_searching(me)) publish_idle();
    return searching_ == 0 ? rest::look_again : rest::park;  // I2
}

bool intake::get_up(seat& me) noexcept {
    std::lock_guard const guard{lock()};
    if (!me.asleep_) return false;
    cell<seat*>* link = &asleep_;
    while (*link != &me) link = &link->read()->next_asleep_;
    *link = me.next_asleep_.read();
    me.asleep_ = false;
    --sleepers_;
    me.searching_ = true;
    ++searching_;
    publish_idle();
    return true;
}

void intake::wake_all() noexcept {
    while (asleep_ != nullptr) choose_first().unpark();
    publish_idle();
}

void intake::refuse() noexcept {
    serve([this] { refusing_ = true; });
}

void intake::close() noexcept {
    std::lock_guard const guard{lock()};
    closing_ = true;
    wake_all();
}

void intake::close_together() noexcept {
    std::lock_guard const guard{lock()};
    if (closing_) return;
    closing_ = true;
    together_ = true;
    wake_all();
}

}  // namespace rondo::detail
