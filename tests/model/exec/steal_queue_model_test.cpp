// The stealing queue, explored: its owner against one thief and two, when it is full, and where
// its positions wrap around. Every job is run exactly once; that its data is seen is checked by
// the plain cell in it.
#include <array>
#include <cstdint>

#include "rondo/exec/detail/steal_queue.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using detail::steal_queue;

// Counts how often it is run; whoever runs it must have seen it being made.
struct counted final : job {
    counted() noexcept : job(&count) {}
    static void count(job& j) noexcept {
        auto& self = static_cast<counted&>(j);
        self.runs = self.runs + 1;
    }
    cell<int> runs{0};
};

void run(job* j) noexcept {
    if (j != nullptr) j->run(*j);
}

void pop_all(steal_queue& q) noexcept {
    while (job* const j = q.pop()) run(j);
}

// One attempt, and all that it brought.
void steal_once(steal_queue& from) noexcept {
    steal_queue mine;
    run(from.steal_into(mine));
    pop_all(mine);
}

template <std::size_t N>
void expect_each_ran_once(std::array<counted, N> const& jobs) {
    for (counted const& j : jobs) RONDO_CHECK_EXPECT(j.runs == 1);
}

TEST(StealQueueModel, OwnerAndThiefShareWhatIsThere) {
    EXPECT_HOLDS([] {
        std::array<counted, 3> jobs;
        steal_queue q;
        thread thief{[&] { steal_once(q); }};
        for (counted& j : jobs) RONDO_CHECK_EXPECT(q.push(j));
        pop_all(q);
        thief.join();
        expect_each_ran_once(jobs);
    });
}

TEST(StealQueueModel, TheLastJobGoesToOneOfThem) {
    EXPECT_HOLDS([] {
        std::array<counted, 1> jobs;
        steal_queue q;
        RONDO_CHECK_EXPECT(q.push(jobs[0]));
        thread one{[&] { steal_once(q); }}, two{[&] { steal_once(q); }};
        pop_all(q);
        one.join();
        two.join();
        expect_each_ran_once(jobs);
    });
}

TEST(StealQueueModel, TwoThievesAndTheOwnerShareWhatIsThere) {
    EXPECT_HOLDS(
        [] {
            std::array<counted, steal_queue::capacity + 1> jobs;
            steal_queue q;
            for (std::size_t i = 0; i < steal_queue::capacity; ++i) {
                RONDO_CHECK_EXPECT(q.push(jobs[i]));
            }
            thread one{[&] { steal_once(q); }}, two{[&] { steal_once(q); }};
            counted& last = jobs.back();
            if (!q.push(last)) run(&last);
            one.join();
            two.join();
            pop_all(q);
            expect_each_ran_once(jobs);
        },
        1);
}

// A slot is written again only when the thief has read it, and a job that finds no room stays
// with the caller.
TEST(StealQueueModel, ASlotIsNotOverwrittenWhileAThiefCopiesIt) {
    EXPECT_HOLDS([] {
        std::array<counted, steal_queue::capacity + 2> jobs;
        steal_queue q;
        for (std::size_t i = 0; i < steal_queue::capacity; ++i) {
            RONDO_CHECK_EXPECT(q.push(jobs[i]));
        }
        thread thief{[&] { steal_once(q); }};
        for (std::size_t i = steal_queue::capacity; i < jobs.size(); ++i) {
            if (!q.push(jobs[i])) run(&jobs[i]);
        }
        pop_all(q);
        thief.join();
        expect_each_ran_once(jobs);
    });
}

// The owner pops and pushes while the thief is at work: what it pops does not make room.
TEST(StealQueueModel, WhatIsPoppedBehindAThiefIsNotRoomYet) {
    EXPECT_HOLDS([] {
        std::array<counted, steal_queue::capacity + 1> jobs;
        steal_queue q;
        for (std::size_t i = 0; i < steal_queue::capacity; ++i) {
            RONDO_CHECK_EXPECT(q.push(jobs[i]));
        }
        thread thief{[&] { steal_once(q); }};
        run(q.pop());
        counted& last = jobs.back();
        if (!q.push(last)) run(&last);
        pop_all(q);
        thief.join();
        expect_each_ran_once(jobs);
    });
}

// What a thief has emptied itself is not room yet either, while another copies from it.
TEST(StealQueueModel, AThiefThatIsRobbedTakesWhatItHasRoomFor) {
    EXPECT_HOLDS(
        [] {
            std::array<counted, steal_queue::capacity> jobs, others;
            steal_queue q, full;
            for (counted& j : jobs) RONDO_CHECK_EXPECT(q.push(j));
            for (counted& j : others) RONDO_CHECK_EXPECT(full.push(j));
            thread thief{[&] { steal_once(q); }};
            pop_all(q);
            run(full.steal_into(q));
            pop_all(q);
            thief.join();
            pop_all(full);
            expect_each_ran_once(jobs);
            expect_each_ran_once(others);
        },
        1);
}

TEST(StealQueueModel, PositionsWrapAround) {
    EXPECT_HOLDS([] {
        std::array<counted, 5> jobs;
        steal_queue q{UINT32_MAX - 1};
        for (std::size_t i = 0; i < 3; ++i) RONDO_CHECK_EXPECT(q.push(jobs[i]));
        thread thief{[&] { steal_once(q); }};
        for (std::size_t i = 3; i < jobs.size(); ++i) {
            if (!q.push(jobs[i])) run(&jobs[i]);
        }
        pop_all(q);
        thief.join();
        expect_each_ran_once(jobs);
    });
}

// What lets a worker sleep: of the one who pushes and then looks for sleepers, and the one who
// says that it sleeps and then looks at the queue, at least one sees the other.
TEST(StealQueueModel, APushAndASleeperDoNotMissEachOther) {
    EXPECT_HOLDS([] {
        counted j;
        steal_queue q;
        atomic<bool> sleeps{false};
        bool seen_by_sleeper = false;
        thread sleeper{[&] {
            sleeps.store(true, std::memory_order_seq_cst);
            seen_by_sleeper = q.size() != 0;
        }};
        RONDO_CHECK_EXPECT(q.push(j));
        bool const seen_by_owner = sleeps.load(std::memory_order_seq_cst);
        sleeper.join();
        RONDO_CHECK_EXPECT(seen_by_sleeper || seen_by_owner);
        pop_all(q);
    });
}

// The same when the sleeper sees the head as it was long ago.
TEST(StealQueueModel, AnOldHeadIsNotTakenForAnEmptyQueue) {
    EXPECT_HOLDS([] {
        counted j, last;
        steal_queue q;
        atomic<bool> sleeps{false};
        bool seen_by_sleeper = false;
        thread sleeper{[&] {
            sleeps.store(true, std::memory_order_seq_cst);
            seen_by_sleeper = q.size() != 0;
        }};
        for (std::uint32_t i = 0; i < steal_queue::capacity; ++i) {
            RONDO_CHECK_EXPECT(q.push(j));
            RONDO_CHECK_EXPECT(q.pop() == &j);
        }
        RONDO_CHECK_EXPECT(q.push(last));
        bool const seen_by_owner = sleeps.load(std::memory_order_seq_cst);
        sleeper.join();
        RONDO_CHECK_EXPECT(seen_by_sleeper || seen_by_owner);
        pop_all(q);
    });
}

}  // namespace
}  // namespace rondo
