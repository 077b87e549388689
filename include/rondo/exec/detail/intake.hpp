// intake.hpp: where jobs wait for workers, and workers for jobs.
//
// A bounded queue together with those of its workers who sleep or search. Both sides are under
// the one lock that a push needs anyway, so that who has to be woken is not guessed at.
//
// Guarantee      jobs come out in the order they went in. No job lies here while a worker sleeps
//                and none searches. A push wakes one worker at most, and none if one searches,
//                unless jobs pile up all the same: see patience in intake.cpp.
// Bound          `capacity` jobs. Who finds it full is refused (try_push) or waits its turn
//                (push_op); those who wait are let in again once it has drained to one half, many
//                at a time, since waking a thread costs as much as running hundreds of jobs.
//                post() is never refused: an executor cannot.
// Thread safety  every member from any thread; a seat's by its worker.
// Memory order   what happens before a push is visible to whoever takes the job.
// Allocation     the ring, once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "rondo/core/executor.hpp"
#include "rondo/core/parker.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/core/waiter.hpp"
#include "rondo/exec/detail/steal_queue.hpp"

namespace rondo::detail {

// A worker's place at an intake. How the worker sleeps is its own business.
class seat {
  public:
    // Its worker was chosen: ends its sleep, or the next one. Called with no lock held, so it may
    // come late.
    virtual void unpark() noexcept = 0;

  protected:
    ~seat() = default;

    // How many calls of unpark() there were or will be; for a worker that has ended, and may have
    // been up for another reason when it was chosen.
    std::uint32_t times_chosen() const noexcept { return times_chosen_; }

  private:
    friend class intake;

    // Under the lock of the intake.
    cell<seat*> next_asleep_{nullptr};
    cell<bool> asleep_{false};
    cell<bool> searching_{false};
    cell<std::uint32_t> times_chosen_{0U};
};

// The place of a worker that does nothing else in its sleep.
class thread_seat final : public seat {
  public:
    void park() noexcept { parker_.sleep(); }
    void unpark() noexcept override { parker_.unpark(); }

  private:
    parker parker_;
};

class alignas(64) intake final : wait_queue {
  public:
    enum class outcome : std::uint8_t { accepted, full, closed };
    class push_op;

    // Of jobs that a worker takes at a time, beside the one that it runs.
    static constexpr std::size_t largest_share = checked_build ? 2 : 32;

    // `searchers`: how many workers may look for jobs at a time, one at least.
    intake(std::size_t capacity, std::size_t workers, std::size_t searchers);
    ~intake();

    // --- for those who bring jobs ---

    outcome try_push(job& j) noexcept;
    // Past the bound. False when every worker has ended. The job may be the one after which the
    // intake is destroyed, while this is still returning.
    [[nodiscard("a job that nobody will run")]] bool post(job& j) noexcept;
    // The same for several, in their order, at once.
    [[nodiscard("jobs that nobody will run")]] bool post_all(job_queue& jobs) noexcept;

    // Somebody sleeps and nobody searches. Whoever pushed a job into a worker's own queue asks
    // this, and then calls wake_one().
    bool idle() const noexcept { return idle_.load(std::memory_order_seq_cst); }
    void wake_one() noexcept;

    // --- for workers ---

    // How it goes on for a worker that has nothing to do.
    enum class rest : std::uint8_t {
        stay_up,     // a job is here
        park,        // until it is woken; it searches then
        look_again,  // the same, but nobody searches: jobs that were pushed into others' queues
                     // meanwhile woke nobody. If there are any, get_up().
        ended,       // closed, and nothing is left
    };

    // The first job, or null; into `own`, if there is one, goes this worker's share of the others.
    // `left_search` is set when it was the last to search: if more jobs are to be had somewhere,
    // it has to wake_one().
    job* take(seat& me, steal_queue* own, bool& left_search) noexcept;
    // True: it searches now. False: enough others do.
    bool begin_search(seat& me) noexcept;
    // It found a job elsewhere. True when it was the last to search, as above.
    bool end_search(seat& me) noexcept;
    rest lie_down(seat& me) noexcept;
    // False: it has been woken already, and park() returns at once.
    bool get_up(seat& me) noexcept;

    // --- the end ---

    // Refuses from now on; those who wait for room are told.
    void refuse() noexcept;
    // Workers end when nothing is left,
    void close() noexcept;
    // and none before all of them have nothing to do: a job may wait for one that it pushes.
    void close_together() noexcept;

    std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

  private:
    bool grant(waiter& first) noexcept override;

    bool closed() const noexcept { return refusing_ || workers_here_ == 0; }
    void add(job& j) noexcept;
    job* remove() noexcept;
    bool behind(std::size_t added) const noexcept;
    seat& choose_first() noexcept;
    seat* choose_one_to_wake(std::size_t added) noexcept;
    bool stop_searching(seat& me) noexcept;
    void publish_idle() noexcept;
    void wake_all() noexcept;
    cell<job*>& slot(std::uint32_t position) noexcept { return ring_[position & mask_]; }

    // Under the lock, and in one cache line with it: what a push and a take need. size_ is also
    // read without it.
    cell<std::uint32_t> head_{0U};
    cell<std::uint32_t> tail_{0U};
    atomic<std::size_t> size_{0};
    cell<seat*> asleep_{nullptr};  // last in, first out: the warmest
    std::uint16_t searching_ = 0;
    std::uint16_t sleepers_ = 0;
    std::uint16_t workers_here_;
    bool letting_in_ = true;  // those who wait for room
    bool refusing_ = false;
    bool closing_ = false;
    bool together_ = false;  // they end when the last of them has nothing to do

    // Never changed.
    alignas(64) std::size_t const capacity_;
    std::size_t const workers_;
    std::size_t const searchers_;
    std::uint32_t const mask_;
    std::unique_ptr<cell<job*>[]> const ring_;

    alignas(64) atomic<bool> idle_{false};  // changed under the lock, read without it
    job_queue overflow_;                    // under the lock: behind a full ring
};

// A push that waits for room. What the job is, and what becomes of it when it was not accepted, is
// the business of the class derived from this.
class intake::push_op : public waiter {
  public:
    push_op(intake& into, job& j) noexcept : waiter(into), into_(&into), job_(&j) {}

    bool ready() noexcept {
        outcome_ = into_->try_push(*job_);
        return outcome_ != outcome::full;
    }

  protected:
    // After the grant: accepted or closed.
    outcome decided() noexcept {
        // A grant woke nobody; try_push() did, and whoever that was may be asleep again by now.
        if (state() == wait_state::granted && into_->idle()) into_->wake_one();
        return outcome_;
    }
    // Whether the job belongs to the intake now; also for an operation that is given up.
    bool accepted() const noexcept { return outcome_ == outcome::accepted; }

  private:
    friend intake;

    intake* into_;
    job* job_;
    outcome outcome_ = outcome::full;
};

}  // namespace rondo::detail
