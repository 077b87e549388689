// Algorithm
//   A turn is one job run or one timer fired. The next one is drawn among the jobs in ready_ and,
//   as one more candidate, the timers that are due. A job that was drawn swaps places with the
//   first and leaves at the front: O(1), and in fifo order the same queue serves undisturbed.
//
//   Timers that are due are one list of the wheel. It cannot be indexed, so the choice among them
//   is made by passing the first one over, to the back of the list, as long as a coin says so:
//   every order can come out, for two draws a timer on average, and cancelling stays O(1). Keeping
//   due timers in a vector of our own would give each the same chance, but make cancel() search it.
//
//   The wheel is used directly: one thread needs neither the lock of a timer_queue nor its way of
//   firing all that is due in one go, which would leave out the races between a timer and what
//   another timer of the same instant has woken.
//
// Invariants
//   I1  the clock moves only forward, and never past a pending timer while something can run: it
//       jumps when nothing is ready or due, and no further than the next timer. (advance() and
//       turn_time pass timers on purpose; those are due then.)
//   I2  the list of due timers in the wheel holds timers of one instant: the wheel does not move on
//       while there are any. Hence passing over reorders timers of one instant only.
//   I3  what enters trace_ and schedule_ are counts, indices and times; never an address.
#include "rondo/sim/world.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/detail/thread_state.hpp"
#include "rondo/core/waker.hpp"
#include "rondo/sim/node.hpp"

namespace rondo::sim {

char const* describe(outcome how) noexcept {
    switch (how) {
        case outcome::finished:
            return "finished";
        case outcome::paused:
            return "paused: there is more to do later";
        case outcome::stuck:
            return "stuck: tasks wait, but nothing in the world can wake them";
        case outcome::out_of_turns:
            return "out of turns: a livelock, or timers without end";
    }
    return "unknown";
}

world::world(options chosen)
    : options_(std::move(chosen)),
      thread_(&rondo::detail::this_thread()),
      schedule_(options_.seed),
      random_(schedule_.split()),
      now_(options_.start),
      home_(*this, options_.start) {
    RONDO_ASSERT(options_.turn_time >= clock::duration::zero(), "a turn takes no negative time");
}

world::~world() {
    assert_own_thread();
    RONDO_ASSERT(places_.size() == 1, "the nodes of a sim::world go before it");
    options_.after_turn = nullptr;
    home_.tasks.stop_all();
    outcome const end = run();
    if (end != outcome::finished) {
        std::fprintf(stderr,
                     "rondo: sim::world with seed %" PRIu64 ", destroyed after %" PRIu64
                     " turns with %zu live tasks, is %s\n",
                     options_.seed, turns_, live_tasks(), describe(end));
        std::fputs(to_text(dump()).c_str(), stderr);
    }
    RONDO_ASSERT(end != outcome::stuck, "a task of a destroyed sim::world ends when it is stopped");
    RONDO_ASSERT(end == outcome::finished,
                 "what runs in a destroyed sim::world comes to an end once it is stopped");
    for (std::exception_ptr& exception : unobserved_) executor::unobserved(std::move(exception));
}

void world::assert_own_thread() const noexcept {
    RONDO_ASSERT(thread_ == &rondo::detail::this_thread(),
                 "a sim::world is used only by the thread that made it");
}

world::running::running(world& w) noexcept
    : world_(w), here_(&w), last_turn_(w.turns_ + w.options_.max_turns) {
    w.assert_own_thread();
    RONDO_ASSERT(!w.running_, "a sim::world is not run by what runs in it");
    w.running_ = true;
}

std::vector<task_trace> world::dump() const {
    assert_own_thread();
    std::vector<task_trace> all;
    for (detail::place const* p : places_) {
        for (task_trace& trace : p->tasks.traces()) all.push_back(std::move(trace));
    }
    return all;
}

std::size_t world::live_tasks() const noexcept {
    std::size_t alive = 0;
    for (detail::place const* p : places_) alive += p->tasks.size();
    return alive;
}

void world::post(job& j) noexcept { post_for(home_, j); }

void world::post_for(detail::place& p, job& j) noexcept {
    assert_own_thread();
    ready_.push_back({&j, &p});
}

std::vector<job*> world::withdraw_jobs(detail::place const& p) {
    std::vector<job*> withdrawn;
    std::erase_if(ready_, [&](ready_job const& r) {
        if (r.where == &p) withdrawn.push_back(r.what);
        return r.where == &p;
    });
    return withdrawn;
}

void world::add(timer& t, time_point deadline) noexcept {
    assert_own_thread();
    home_.wheel.insert(t, deadline);
}

bool world::cancel(timer& t) noexcept {
    assert_own_thread();
    return home_.wheel.cancel(t);
}

void world::unobserved(std::exception_ptr exception) noexcept {
    unobserved_.push_back(std::move(exception));
}

time_point world::later(clock::duration span) const noexcept {
    RONDO_ASSERT(span >= clock::duration::zero(), "virtual time does not run backwards");
    return rondo::later(now_, span);
}

void world::advance(clock::duration span) noexcept { now_ = later(span); }

outcome world::run() { return run_to({time_point::max(), time_point::max()}); }

outcome world::run_ready() { return run_to({time_point::max(), time_point::min()}); }

outcome world::run_until(time_point moment) {
    outcome const how = run_to({moment, moment});
    if (how != outcome::out_of_turns) now_ = std::max(now_, moment);
    return how;
}

outcome world::run_to(horizon limit) {
    running const here{*this};
    for (;;) {
        if (std::optional<outcome> const over = proceed(limit, here.last_turn())) return *over;
    }
}

std::optional<outcome> world::proceed(horizon limit, std::uint64_t last_turn) noexcept {
    std::optional<time_point> const next_timer = next_expiry();
    bool const timers_may_be_due = next_timer && *next_timer <= now_;
    if (!ready_.empty() || timers_may_be_due) {
        if (now_ > limit.turns) return outcome::paused;
        if (turns_ == last_turn) return outcome::out_of_turns;
        take_turn(timers_may_be_due);
        return std::nullopt;
    }
    if (!next_timer) return live_tasks() == 0 ? outcome::finished : outcome::stuck;
    if (*next_timer > limit.jumps) return outcome::paused;
    now_ = *next_timer;  // I1
    return std::nullopt;
}

// A wheel's next_expiry() may be early. Then nothing is due after all, and if nothing is ready
// either, no turn is taken; the wheel knows better afterwards.
void world::take_turn(bool timers_may_be_due) noexcept {
    detail::place* const due = timers_may_be_due && timers_go_first() ? earliest_due() : nullptr;
    if (due == nullptr && ready_.empty()) return;
    executor const& whose = due != nullptr ? fire_one_of(*due) : run_ready_job();
    if (options_.after_turn) options_.after_turn(whose);
}

bool world::timers_go_first() noexcept {
    if (options_.order == schedule::fifo || ready_.empty()) return true;
    return schedule_.below(ready_.size() + 1) == ready_.size();
}

std::optional<time_point> world::next_expiry() const noexcept {
    std::optional<time_point> first;
    for (detail::place const* p : places_) {
        if (p->halted) continue;
        std::optional<time_point> const next = p->wheel.next_expiry();
        if (next && (!first || *next < *first)) first = next;
    }
    return first;
}

// The place with the earliest of the due timers; of several with that deadline, one by chance.
detail::place* world::earliest_due() noexcept {
    detail::place* chosen = nullptr;
    time_point earliest = time_point::max();
    std::uint64_t equals = 0;
    for (detail::place* p : places_) {
        timer_node const* const due = p->halted ? nullptr : p->wheel.peek_expired(now_);
        if (due == nullptr || (chosen != nullptr && due->deadline > earliest)) continue;
        equals = chosen != nullptr && due->deadline == earliest ? equals + 1 : 1;
        earliest = due->deadline;
        bool const takes_over =
            equals == 1 || (options_.order == schedule::random && schedule_.below(equals) == 0);
        if (takes_over) chosen = p;
    }
    return chosen;
}

executor const& world::fire_one_of(detail::place& p) noexcept {
    timer_node* due = p.wheel.pop_expired(now_);
    while (options_.order == schedule::random && schedule_.chance(0.5)) {
        p.wheel.insert(*due, due->deadline);  // I2
        due = p.wheel.pop_expired(now_);
    }
    note(ready_.size());
    executor& whose = p.runs;  // p goes if it crashes
    executor::scope const here{&whose};
    in_turn_ = &p;
    {
        wake_scope const waking;
        timer& t = static_cast<timer&>(*due);
        t.fire(t);
    }
    end_turn();
    return whose;
}

executor const& world::run_ready_job() noexcept {
    std::size_t const chosen =
        options_.order == schedule::fifo ? 0 : schedule_.below(ready_.size());
    note(chosen);
    std::swap(ready_[chosen], ready_.front());
    ready_job const next = ready_.front();
    ready_.pop_front();
    executor& whose = next.where->runs;
    executor::scope const here{&whose};
    in_turn_ = next.where;
    next.what->run(*next.what);
    end_turn();
    now_ = later(options_.turn_time);
    return whose;
}

void world::end_turn() noexcept {
    in_turn_ = nullptr;
    if (node* const crashed = std::exchange(ending_, nullptr)) crashed->abandon();
}

void world::note(std::uint64_t chosen) noexcept {
    ++turns_;
    auto const time = static_cast<std::uint64_t>((now_ - options_.start).count());
    for (std::uint64_t const word : {chosen, std::uint64_t{ready_.size()}, time}) {  // I3
        trace_ = random_source::scramble(trace_ + 0x9e3779b97f4a7c15 + word);
    }
}

}  // namespace rondo::sim
