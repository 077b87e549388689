// The way of a job
//
//               per_worker              shared            stealing
//   outside     the next one's intake   the intake        the intake
//   in a job    the next one's intake   the intake        the worker's own queue, the intake if
//                                                         that is full; what was posted may
//                                                         go there later (take_in_between)
//   taken by    its worker              any worker        any worker, with a share of the others
//                                                         into its own queue, or by a thief
//
// Races considered
//   - a job pushes to a worker that has ended (per_worker, while the pool is destroyed): refused
//     there, it goes to the queue of the worker that runs it, which has not ended.
//   - a job is pushed behind the back of a worker that lies down: see intake.cpp, I1 and I2.
//   - jobs on their way from a worker's own queue to the intake are in neither: their worker is up,
//     so nobody ends; and they are posted ones, which nobody drops.
//   - jobs are dropped while workers run: a job is run or dropped by whoever got it; all are
//     counted once.
#include "rondo/exec/detail/crew.hpp"

#include <algorithm>
#include <utility>

#include "rondo/core/assert.hpp"

namespace rondo::detail {

namespace {

// A worker whose own queue does not run dry looks at the intake after so many turns: nobody there
// starves. More than it takes from there at a time, or it would overtake what it has taken.
constexpr std::uint32_t turns_before_the_intake = checked_build ? 3 : 61;

// What a worker keeps of what its jobs submit; the rest counts against the pool's capacity.
constexpr std::size_t most_of_its_own = std::min<std::size_t>(steal_queue::capacity, 256);

#ifdef RONDO_CHECKED
worker*& this_worker() noexcept { return check::thread_storage<worker*>(); }
#else
[[gnu::noinline]] worker*& this_worker() noexcept {
    constinit thread_local worker* current = nullptr;
    asm volatile("" ::: "memory");
    return current;
}
#endif

[[noreturn]] void stay_for_ever() noexcept {
    for (atomic<std::uint32_t> const never{0};;) futex_wait(never, 0);
}

}  // namespace

void pool_job::never_called(job&) noexcept {
    RONDO_ASSERT(false, "a closure runs in a pool's worker");
}

// --- worker ---

worker* worker::current() noexcept { return this_worker(); }

std::size_t worker::depth() const noexcept {
    return own_.size() + (crew_.how_ == dispatch::per_worker ? intake_.size() : 0);
}

void worker::run() noexcept {
    this_worker() = this;
    while (job* const j = next()) run_job(*j);
    this_worker() = nullptr;
}

void worker::run_job(job& j) noexcept {
    if (crew_.abandoned()) stay_for_ever();
    if (pool_job* const p = pool_job::from(j)) {
        if (crew_.dropping()) {
            crew_.drop(*p);
            return;
        }
        jobs_run.add_one();
        p->start(*crew_.failures_);  // as a plain thread: a closure may block
    } else {
        jobs_run.add_one();
        executor::scope const scope{crew_.place_};
        j.run(j);
    }
}

job* worker::next() noexcept {
    steal_queue* const own = crew_.stealing() ? &own_ : nullptr;
    if (own != nullptr) {
        if (++turn_ == turns_before_the_intake) {
            turn_ = 0;
            if (job* const j = take_in_between()) return j;
        }
        if (job* const j = own->pop()) return j;
    }
    pace_.wait();
    for (bool left_search = false;;) {
        turn_ = 0;
        if (job* const j = intake_.take(seat_, own, left_search)) {
            if (left_search) search_ended();
            pace_.found(1 + (own != nullptr ? own->size() : 0), intake_.size());
            return j;
        }
        pace_.found_nothing();
        if (intake_.begin_search(seat_)) {
            if (job* const j = search()) {
                if (intake_.end_search(seat_)) search_ended();
                return j;
            }
            if (intake_.size() != 0) continue;
        }
        switch (intake_.lie_down(seat_)) {
            case intake::rest::stay_up:
                continue;
            case intake::rest::ended:
                return nullptr;
            case intake::rest::look_again:
                if (crew_.can_be_stolen() && intake_.get_up(seat_)) continue;
                break;
            case intake::rest::park:
                break;
        }
        seat_.park();
    }
}

// A job of the intake for a worker that has others. If its queue is full, a share of what is posted
// there changes places with one from outside: or the same tasks would go round and round in here,
// and those outside get in one by one. Closures stay: the intake has a bound for them.
job* worker::take_in_between() noexcept {
    job_queue leaving;
    std::size_t count = 0;
    bool const full = own_.size() >= crew_.own_limit_ && intake_.size() != 0;
    job* first = nullptr;
    while (full && count != intake::largest_share && (first = own_.pop()) != nullptr) {
        if (pool_job::from(*first) != nullptr) break;
        leaving.push(*std::exchange(first, nullptr));
        ++count;
    }
    if (count != 0) RONDO_ASSERT(intake_.post_all(leaving), "its worker has not ended");
    if (first != nullptr) return first;
    bool left_search = false;  // it does not search
    return intake_.take(seat_, count == intake::largest_share ? &own_ : nullptr, left_search);
}

// A job from another worker's queue; null when there is one in the intake, or none anywhere.
job* worker::search() noexcept {
    std::size_t const others = crew_.stealing() ? crew_.workers_.size() : 0;
    int const looks = eagerness_.looks();
    for (int look = 0; look < looks; ++look) {
        for (std::size_t i = 1; i < others; ++i) {
            worker& victim = *crew_.workers_[(index_ + i) % others];
            if (job* const j = victim.own_.steal_into(own_)) {
                jobs_stolen.add_one();
                eagerness_.found();
                return j;
            }
        }
        if (intake_.size() != 0) {
            eagerness_.found();
            return nullptr;
        }
        eagerness_.pause_after(look);
    }
    return nullptr;
}

// The last who searched has found something: if there is more, somebody else should search.
void worker::search_ended() noexcept {
    if (intake_.size() != 0 || crew_.can_be_stolen()) intake_.wake_one();
}

bool worker::push_here(job& j) noexcept {
    if (!crew_.stealing() || own_.size() >= crew_.own_limit_ || !own_.push(j)) return false;
    if (intake_.idle()) intake_.wake_one();
    return true;
}

// --- failures ---

void failures::failed(std::exception_ptr exception) noexcept {
    // The crew may be gone, but not if this is one of its workers.
    worker* const w = worker::current();
    if (w != nullptr && w->crew_.failures_.get() == this) {
        w->jobs_failed.add_one();
    } else {
        elsewhere_.fetch_add(1, std::memory_order_relaxed);
    }
    try {
        tell_(std::move(exception));
    } catch (...) {  // a hook that fails must not cost a worker either
    }
}

// --- crew ---

crew::crew(setup s)
    : how_(s.how),
      own_limit_(std::min(s.capacity, most_of_its_own)),
      place_(s.place),
      failures_(new failures{std::move(s.on_failure)}),
      turns_(s.how == dispatch::per_worker ? s.workers : 1, s.turns_taken) {
    bool const each = how_ == dispatch::per_worker;
    std::size_t const intakes = each ? s.workers : 1;
    std::size_t const capacity = std::max<std::size_t>(s.capacity / intakes, 1);
    for (std::size_t i = 0; i < intakes; ++i) {
        intakes_.push_back(
            std::make_unique<intake>(capacity, s.workers / intakes, each ? 1 : s.searchers));
    }
    for (std::size_t i = 0; i < s.workers; ++i) {
        workers_.push_back(std::make_unique<worker>(*this, *intakes_[each ? i : 0], i));
    }
}

crew::~crew() = default;

worker* crew::here() const noexcept {
    worker* const w = worker::current();
    return w != nullptr && &w->crew_ == this ? w : nullptr;
}

intake& crew::next_intake() noexcept { return *intakes_[turns_.next()]; }

intake::outcome crew::try_push(job& j) noexcept {
    worker* const w = here();
    if (w != nullptr && !dropping() && w->push_here(j)) return intake::outcome::accepted;
    intake::outcome const o = next_intake().try_push(j);
    if (o == intake::outcome::closed && w != nullptr) return w->intake_.try_push(j);
    return o;
}

void crew::post(job& j) noexcept {
    worker* const w = here();
    if (w != nullptr && w->push_here(j)) return;
    if (next_intake().post(j)) return;
    bool const accepted = w != nullptr && w->intake_.post(j);
    RONDO_ASSERT(accepted, "an executor outlives what is posted to it");
}

// Whether there is something in a worker's own queue.
bool crew::can_be_stolen() const noexcept {
    return stealing() &&
           std::ranges::any_of(workers_, [](auto const& w) { return w->own_.size() != 0; });
}

void crew::close() noexcept {
    for (auto const& i : intakes_) i->close_together();
}

void crew::dismiss() noexcept {
    for (auto const& i : intakes_) i->close();
}

void crew::drop(pool_job& j) noexcept {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    j.drop();
}

void crew::sort_out(job& j, job_queue& posted) noexcept {
    if (pool_job* const p = pool_job::from(j)) {
        drop(*p);
    } else {
        posted.push(j);
    }
}

// Not left to the workers: one of them may be running a job that waits for one that is dropped.
void crew::drop_waiting() noexcept {
    dropping_.store(true, std::memory_order_relaxed);  // relaxed: what matters is under the locks
    for (auto const& i : intakes_) i->refuse();
    job_queue posted;
    thread_seat nobody;
    bool unused = false;
    for (auto const& i : intakes_) {
        while (job* const j = i->take(nobody, nullptr, unused)) sort_out(*j, posted);
    }
    steal_queue stolen;
    for (auto const& w : workers_) {
        while (job* const first = w->own_.steal_into(stolen)) {
            sort_out(*first, posted);
            while (job* const j = stolen.pop()) sort_out(*j, posted);
        }
    }
    while (job* const j = posted.pop()) post(*j);
}

void crew::abandon() noexcept {
    // relaxed: who takes a job from an intake that refuses has seen it, by the lock
    abandoned_.store(true, std::memory_order_relaxed);
    for (auto const& i : intakes_) i->refuse();
}

std::size_t crew::depth() const noexcept {
    std::size_t sum = 0;
    for (auto const& i : intakes_) sum += i->size();
    for (auto const& w : workers_) sum += w->own_.size();
    return sum;
}

}  // namespace rondo::detail
