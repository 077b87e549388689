// The way of a job
//
//              of any worker                           of one worker (pinned)
//   outside    the intake                              the worker's inbox, and unpark()
//   in a turn  posted: the worker's own queue          on that worker: its local list
//              woken: next on that worker
//              gives way, or was joining a handle:
//              the back of its own queue
//   taken by   its worker; a thief, half of the own    its worker
//              queue at a time; from the intake any
//              worker, with a share of the others
//
// Invariants
//   I1  a sleeper, and a job that any worker may run, imply a searcher; or that the job is next_
//       of a worker, woken since that one's last turn began, or has given way in that turn and is
//       the only one in the own queue. Whoever posts one looks for sleepers (intake.cpp, I1 and
//       I2), and so does a worker that begins a turn with others waiting in its queue: next_ and
//       the first that gives way need not. What is next_ when the turn of another one begins joins
//       the queue.
//   I2  a letter in the inbox implies that its worker is up, or that its driver was un-parked
//       since.
//   I3  a timer and a sleeper imply a keeper, a searcher, or a worker that is up and between two
//       turns: a turn may last. Whoever was the keeper, and the last to search, wakes another one
//       before it runs a job; so does who adds a timer while there is no keeper. A timer that is
//       due earlier than the keeper knows un-parks it.
//   I4  who runs a job does not search: a searcher that gets one says so before it runs it.
//
// The exception is a handler of Asio that is not a task's: it runs inside the sleep of its worker,
// which counts as a sleeper meanwhile, and as the keeper if it was that (I1, I3).
//
// Races considered
//   - a timer is added while a worker becomes the keeper: it says that it is the keeper, and then
//     asks for the next deadline, under the lock under which timers are added. Either it sees the
//     timer or whoever adds it sees the keeper.
//   - a timer is added while the last to search, who was the keeper, finds a job: it says that
//     nobody searches, and then looks for timers, under the same lock. Either it sees the timer or
//     whoever adds it sees that nobody searches.
//   - a worker is chosen by the intake while it wakes up for another reason. It searches then as
//     every worker that was chosen; the call of unpark() that it is owed comes late, maybe so late
//     that the worker has nothing to do any more and ends: it waits for that call.
//   - a job that is posted to an inbox may be the one after which the team is destroyed: the worker
//     is un-parked under the lock that it needs to get the job.
//   - the last task ends while somebody begins to wait for that: task lists have locks, through
//     which one of the two sees the other.
//   - the last task ends in a thread that is not a worker's, which nobody joins: it is a visitor
//     from before it leaves the list until it has told everyone, and close() waits for it.
//   - something foreign resumes a task in a pause, in a thread that does not pause: it takes the
//     lock that the pause holds, and marks the task. So in a pause the frames of a task that is not
//     marked stay as they are; those of one that is marked are not read.
#include "rondo/exec/detail/team.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/waker.hpp"

namespace rondo::detail {

namespace {

// A worker with enough to do looks at the intake, I/O and timers after so many turns.
constexpr std::uint32_t turns_before_a_look = checked_build ? 3 : 64;

// A job may wake another one, and that the first again, without end: after so many in a row the
// next one has to queue.
constexpr int longest_row = 3;

// Jobs that the intake holds in its ring, half a megabyte of them. More are chained: who takes one
// has to follow a pointer into cold memory then, with the lock in its hands.
constexpr std::size_t intake_ring = checked_build ? 2 : 65536;

// How many jobs a worker without others takes from the intake at a time.
constexpr int share_of_one = checked_build ? 2 : 32;

#ifdef RONDO_CHECKED
runner*& this_runner() noexcept { return check::thread_storage<runner*>(); }
#else
[[gnu::noinline]] runner*& this_runner() noexcept {
    constinit thread_local runner* current = nullptr;
    asm volatile("" ::: "memory");
    return current;
}
#endif

}  // namespace

// --- runner ---

runner::runner(team& t, driver& sleeps_in, std::size_t index) noexcept
    : team_(t), driver_(sleeps_in), index_(index) {}

runner* runner::current() noexcept { return this_runner(); }

std::size_t runner::depth() const noexcept {
    return own_.size() + local_.size() + letters_.load(std::memory_order_relaxed);
}

runner::on_duty::on_duty(runner& r) noexcept : outer_(std::exchange(this_runner(), &r)) {
    r.thread_ = &this_thread();
    outer_place_ = r.thread_->current;
    // sequentially consistent, both: pairs with pause(), which first asks and then looks who is on
    // duty. The load also orders a pause that was over before.
    bool const doubled = r.on_duty_.exchange(true, std::memory_order_seq_cst);
    RONDO_ASSERT(!doubled, "one thread at a time lends itself to a runtime without workers");
    if (team::pausing(r.team_.pauses_.load(std::memory_order_seq_cst))) r.team_.hold();
}

runner::on_duty::~on_duty() {
    runner& r = *this_runner();
    r.thread_->current = outer_place_;
    this_runner() = outer_;
    // release, both: pairs with pause_workers(), which counts anew
    r.on_duty_.store(false, std::memory_order_release);
    r.team_.paused_.fetch_add(team::one_left, std::memory_order_release);
    futex_wake(&r.team_.paused_, 1);
}

void runner::run() noexcept {
    run_until([] { return false; });
    // acquire: pairs with the release in unpark()
    while (delivered_.load(std::memory_order_acquire) != times_chosen()) spin_pause();
}

void runner::end_duty() noexcept {
    if (searching_) stop_searching();
    running_.store(nullptr, std::memory_order_relaxed);
}

void runner::unpark() noexcept {
    driver_.unpark();
    delivered_.fetch_add(1, std::memory_order_release);  // release: pairs with the load in run()
}

bool runner::turn() noexcept {
    // relaxed: hold() looks again and orders
    if (team::pausing(team_.pauses_.load(std::memory_order_relaxed))) pause();
    if (turn_ + 1 >= turns_before_a_look) look_around();  // two turns may follow
    bool ran = false;
    if (job* const j = local_.pop()) {
        run_job(*j, home());
        ran = true;
    }
    if (job* const j = next_shared()) {
        run_job(*j, team_);
        ran = true;
    }
    return ran;
}

void runner::pause() noexcept {
    running_.store(nullptr, std::memory_order_relaxed);
    team_.hold();
}

void runner::run_job(job& j, executor& as) noexcept {
    // I1: this turn may last, and has not woken it
    if (next_ != nullptr && !team_.alone()) push_last(*std::exchange(next_, nullptr));
    if (searching_) stop_searching();                                        // I4
    if (own_.size() != 0 && team_.intake_.idle()) team_.intake_.wake_one();  // I1
    thread_->current = &as;
    running_.store(&j, std::memory_order_relaxed);  // relaxed: an address to compare with
    turns.add_one();
    ++turn_;
    j.run(j);
}

job* runner::next_shared() noexcept {
    if (next_ != nullptr) {
        if (nexts_in_a_row_++ < longest_row) return std::exchange(next_, nullptr);
        push_last(*std::exchange(next_, nullptr));
    }
    nexts_in_a_row_ = 0;
    return team_.alone() ? nullptr : own_.pop();
}

// What is not looked at while there is enough to do.
void runner::look_around() noexcept {
    turn_ = 0;
    hear();
    if (job* const j = take_outside()) run_job(*j, team_);
}

// A job of the intake, with this worker's share of the others.
job* runner::take_outside() noexcept {
    bool left_search = false;
    job* const j = team_.intake_.take(*this, team_.alone() ? nullptr : &own_, left_search);
    if (j == nullptr) return nullptr;
    searching_ = false;
    if (left_search) team_.search_ended();
    for (int i = 1; team_.alone() && i < share_of_one; ++i) {
        job* const another = team_.intake_.take(*this, nullptr, left_search);
        if (another == nullptr) break;
        local_.push(*another);
    }
    return j;
}

// Everything that reaches this worker otherwise than through a queue.
void runner::hear() noexcept {
    running_.store(nullptr, std::memory_order_relaxed);
    thread_->current = &home();  // handlers of others run here too
    driver_.poll();
    empty_inbox();
    team_.fire_timers();
}

void runner::empty_inbox() noexcept {
    // relaxed: the lock orders. Who is not seen here un-parks this worker (I2).
    if (letters_.load(std::memory_order_relaxed) == 0) return;
    std::lock_guard const guard{inbox_lock_};
    local_.append(std::exchange(inbox_, {}), letters_.load(std::memory_order_relaxed));
    letters_.store(0, std::memory_order_relaxed);
}

bool runner::has_work() const noexcept {
    return next_ != nullptr || !local_.empty() || own_.size() != 0;
}

// There was nothing to run.
void runner::listen() noexcept {
    if (searching_) {
        empty_inbox();  // it has heard the rest as it woke up
    } else {
        hear();
    }
}

// There is nothing to run here.
void runner::rest() noexcept {
    if (job* const j = find()) return run_job(*j, team_);
    lie_down();
}

// A job of the intake, or of another worker.
job* runner::find() noexcept {
    if (job* const j = take_outside()) return j;
    searching_ = team_.intake_.begin_search(*this);
    return searching_ ? search() : nullptr;
}

job* runner::search() noexcept {
    std::size_t const all = team_.runners_.size();
    int const looks = eagerness_.looks();
    for (int look = 0; look < looks; ++look) {
        for (std::size_t i = 1; i < all; ++i) {
            if (job* const j = team_.runners_[(index_ + i) % all]->own_.steal_into(own_)) {
                steals.add_one();
                eagerness_.found();
                return j;
            }
        }
        if (team_.intake_.size() != 0 || letters_.load(std::memory_order_relaxed) != 0) {
            eagerness_.found();
            return nullptr;
        }
        eagerness_.pause_after(look);
    }
    return nullptr;
}

void runner::stop_searching() noexcept {
    searching_ = false;
    if (team_.intake_.end_search(*this)) team_.search_ended();
}

void runner::lie_down() noexcept {
    switch (team_.intake_.lie_down(*this)) {
        case intake::rest::stay_up:
            return;
        case intake::rest::ended:
            searching_ = false;
            ended_ = true;
            // A letter from before the end; nobody may write one later.
            empty_inbox();
            while (job* const j = local_.pop()) run_job(*j, home());
            return;
        case intake::rest::look_again:
            if (team_.can_be_stolen() && team_.intake_.get_up(*this)) {
                searching_ = true;
                return;
            }
            break;
        case intake::rest::park:
            break;
    }
    sleep();
}

void runner::sleep() noexcept {
    searching_ = false;
    parks.add_one();
    time_point until = time_point::max();
    runner* nobody = nullptr;
    // sequentially consistent, both: see I3 and team::add()
    bool const keeps = team_.keeper_.compare_exchange_strong(
        nobody, this, std::memory_order_seq_cst, std::memory_order_relaxed);
    if (keeps) until = team_.timers_.next().value_or(time_point::max());
    thread_->current = &home();
    driver_.park(until);
    if (keeps) team_.keeper_.store(nullptr, std::memory_order_seq_cst);
    // Chosen or up for another reason: it searches now.
    (void)team_.intake_.get_up(*this);
    searching_ = true;
    empty_inbox();
    if (keeps) team_.fire_timers();
}

// A worker keeps many ready tasks: they stay in its cache, and take their turns there. But where
// others wait outside as well all will have left the cache before it is their turn, and those that
// were spawned last have the best of it: then it keeps few.
bool runner::keeps_enough() const noexcept {
    constexpr std::uint32_t few = steal_queue::capacity / 4;
    return own_.size() >= few && team_.intake_.size() >= steal_queue::capacity;
}

// Behind everything that is here. When there is enough the first half of it goes outside, and the
// job with them: so what is there comes back in its turn, and nobody goes round and round in here
// while others wait outside.
void runner::push_last(job& j) noexcept {
    if (team_.alone()) return local_.push(j);
    if (!keeps_enough() && own_.push(j)) return;
    job_queue half;
    for (std::uint32_t left = own_.size() / 2; left != 0; --left) {
        job* const first = own_.pop();
        if (first == nullptr) break;
        half.push(*first);
    }
    half.push(j);
    RONDO_ASSERT(team_.intake_.post_all(half), "its worker has not ended");
}

void runner::push(job& j) noexcept {
    push_last(j);
    if (team_.intake_.idle()) team_.intake_.wake_one();
}

// Ahead of everything that is here.
void runner::push_next(job& j) noexcept {
    if (job* const before = std::exchange(next_, &j)) push(*before);
}

// --- runner, as the place of pinned tasks ---

executor& runner::home() noexcept { return team_.alone() ? static_cast<executor&>(team_) : *this; }

void runner::post(job& j) noexcept {
    if (runner::current() == this) return local_.push(j);
    std::lock_guard const guard{inbox_lock_};
    bool const first = inbox_.empty();
    inbox_.push(j);
    // relaxed: see empty_inbox()
    letters_.store(letters_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (first) driver_.unpark();  // I2, before the job can be had
}

timer_service& runner::timers() noexcept { return team_; }
void runner::unobserved(std::exception_ptr exception) noexcept {
    team_.unobserved(std::move(exception));
}
void runner::began(live_task& t) noexcept { tasks_.add(t); }
void runner::ended(live_task& t) noexcept { team_.ended(t); }
bool runner::begin_visit() noexcept { return team_.begin_visit(); }
void runner::end_visit() noexcept { team_.end_visit(); }
void runner::resumed_past_it(flow& f) noexcept { team_.resumed_past_it(f); }

// --- team ---

team::team(setup s)
    : on_unobserved_(std::move(s.on_unobserved)),
      intake_(intake_ring, s.drivers.size(), s.searchers),
      timers_(std::chrono::milliseconds{1}, clock::now()) {
    RONDO_ASSERT(!s.drivers.empty(), "a team has at least one worker");
    for (driver* const d : s.drivers) {
        runners_.push_back(std::make_unique<runner>(*this, *d, runners_.size()));
    }
}

team::~team() = default;

runner* team::here() const noexcept {
    runner* const r = runner::current();
    return r != nullptr && &r->team_ == this ? r : nullptr;
}

void team::post(job& j) noexcept {
    if (runner* const r = here()) return r->push(j);
    RONDO_ASSERT(intake_.post(j), "an executor outlives what is posted to it");
}

void team::wake(job& j) noexcept {
    if (runner* const r = here()) return r->push_next(j);
    post(j);
}

void team::give_way(job& j) noexcept {
    runner* const r = here();
    if (r == nullptr) return post(j);
    if (r->own_.size() != 0) return r->push(j);
    r->push_last(j);  // and wakes nobody: alone there it runs right after this turn
}

void team::search_ended() noexcept {
    if (intake_.size() != 0 || can_be_stolen() || time_is_not_kept()) intake_.wake_one();
}

// I3; sequentially consistent: as in add()
bool team::time_is_not_kept() noexcept {
    return keeper_.load(std::memory_order_seq_cst) == nullptr && !timers_.none();
}

bool team::can_be_stolen() const noexcept {
    return std::ranges::any_of(runners_, [](auto const& r) { return r->own_.size() != 0; });
}

void team::add(timer& t, time_point deadline) noexcept {
    // The timer may end the task, and that the team, before this has returned.
    bool const visits = here() == nullptr && begin_visit();
    bool const earlier = timers_.add(t, deadline);
    // I3; sequentially consistent: pairs with the exchange in runner::sleep()
    runner* const r = keeper_.load(std::memory_order_seq_cst);
    if (r == nullptr) {
        if (intake_.idle()) intake_.wake_one();
    } else if (earlier) {
        r->driver_.unpark();
    }
    if (visits) end_visit();
}

// One worker at a time; another one need not wait for it. Reading the clock costs as much as a
// turn: it is left alone while there is no timer.
void team::fire_timers() noexcept {
    if (timers_.empty()) return;
    // acquire, release: one who fires after the other
    if (firing_.exchange(true, std::memory_order_acquire)) return;
    timers_.fire_due(clock::now());
    firing_.store(false, std::memory_order_release);
}

void team::unobserved(std::exception_ptr exception) noexcept {
    if (!on_unobserved_) return executor::unobserved(std::move(exception));
    try {
        on_unobserved_(std::move(exception));
    } catch (...) {  // a hook that fails must not cost a worker
    }
}

void team::began(live_task& t) noexcept {
    runner* const r = here();
    (r != nullptr ? r->tasks_ : outside_).add(t);
}

void team::ended(live_task& t) noexcept {
    live_tasks::remove(t);
    // relaxed: the lists' locks order it, see above
    if (awaited_.load(std::memory_order_relaxed) && no_tasks()) all_ended_.unpark();
    // A task that went on in a foreign thread: the one that is lent may be waiting for this.
    if (alone() && here() == nullptr) runners_.front()->driver_.unpark();
}

std::size_t team::tasks() const noexcept {
    std::size_t sum = outside_.size();
    for (auto const& r : runners_) sum += r->tasks_.size();
    return sum;
}

// Tasks begin others in other lists while these are read one by one: as many had ended by the first
// reading as have begun by the second.
bool team::no_tasks() const noexcept {
    std::uint64_t ended = outside_.so_far().removed;
    for (auto const& r : runners_) ended += r->tasks_.so_far().removed;
    std::uint64_t began = outside_.so_far().added;
    for (auto const& r : runners_) began += r->tasks_.so_far().added;
    return began == ended;
}

void team::stop_tasks() noexcept {
    outside_.stop_all();
    for (auto const& r : runners_) r->tasks_.stop_all();
}

bool team::begin_visit() noexcept {
    visitors_.begin();
    return true;
}

void team::end_visit() noexcept { visitors_.end(); }

void team::close() noexcept {
    visitors_.await();
    intake_.close();
}

// --- pausing ---

// A worker of its own can be paused; whoever else resumes a task cannot, and says so first.
void team::resumed_past_it(flow& f) noexcept {
    if (here() != nullptr) return;
    std::lock_guard const guard{resumed_abroad_};
    f.go_abroad();
}

bool team::pause(time_point until) noexcept {
    bool const complete = pause_workers(until);
    resumed_abroad_.lock();
    return complete;
}

bool team::pause_workers(time_point until) noexcept {
    pauses_.fetch_add(1, std::memory_order_seq_cst);
    for (auto const& r : runners_) r->driver_.unpark();
    for (bool in_time = true;;) {
        // acquire: pairs with hold() and the end of a duty
        std::uint32_t const seen = paused_.load(std::memory_order_acquire);
        auto const on_duty = std::ranges::count_if(
            runners_, [](auto const& r) { return r->on_duty_.load(std::memory_order_seq_cst); });
        if (holding(seen) >= static_cast<std::uint32_t>(on_duty)) return true;
        if (!in_time) return false;
        if (until == time_point::max()) {
            futex_wait(paused_, seen);
        } else {
            in_time = futex_wait_until(paused_, seen, until);
        }
    }
}

void team::resume() noexcept {
    resumed_abroad_.unlock();
    // release: pairs with the load in hold()
    if (pauses_.fetch_add(1, std::memory_order_release) >= for_good) return;
    futex_wake(&pauses_, static_cast<int>(runners_.size()));
    // All have gone on: the next pause counts anew.
    for (std::uint32_t left; holding(left = paused_.load(std::memory_order_relaxed)) != 0;) {
        futex_wait(paused_, left);
    }
}

// Those who sleep are woken to see it: in their sleep they would run handlers.
void team::pause_for_good() noexcept {
    pauses_.fetch_or(for_good, std::memory_order_relaxed);  // relaxed: unpark() orders
    for (auto const& r : runners_) r->driver_.unpark();
}

// A worker that has come too late for one pause may be in time for the next: it goes on only when
// it has seen that there is none.
void team::hold() noexcept {
    for (;;) {
        std::uint32_t const asked = pauses_.load(std::memory_order_acquire);
        if (!pausing(asked)) return;
        // release: pairs with the acquire in pause(), which then reads what this worker's turns did
        paused_.fetch_add(1, std::memory_order_release);
        futex_wake(&paused_, 1);
        // acquire: pairs with the release in resume()
        while (pauses_.load(std::memory_order_acquire) == asked) futex_wait(pauses_, asked);
        paused_.fetch_sub(1, std::memory_order_relaxed);
        futex_wake(&paused_, 1);
    }
}

}  // namespace rondo::detail
