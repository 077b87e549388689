// A pool without its threads, explored: how jobs find workers and workers jobs, who is woken and
// who waits for room, and how it ends. A wake-up that is lost shows as a deadlock: nobody closes
// the crew before what it waits for has been run.
#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "rondo/core/parker.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/exec/detail/crew.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using detail::crew;
using detail::intake;
using outcome = detail::intake::outcome;

// Runs a function, once; whoever runs it must have seen it being made.
template <class F>
class doing final : public detail::pool_job {
  public:
    explicit doing(F f) : pool_job(&act), body_(std::move(f)) {}

    int runs() const noexcept { return runs_; }
    int drops() const noexcept { return drops_; }

  private:
    static void act(pool_job& j, detail::failure_sink* sink) noexcept {
        auto& self = static_cast<doing&>(j);
        if (sink == nullptr) {
            self.drops_ = self.drops_ + 1;
            return;
        }
        self.runs_ = self.runs_ + 1;
        self.body_();
    }

    F body_;
    cell<int> runs_{0};
    cell<int> drops_{0};
};

struct nothing {
    void operator()() const noexcept {}
};

class crowd {
  public:
    explicit crowd(crew& c) {
        for (auto const& w : c.workers()) threads_.emplace_back([&w] { w->run(); });
    }
    void join() {
        for (thread& t : threads_) t.join();
    }

  private:
    std::vector<thread> threads_;
};

crew::setup of(dispatch how, std::size_t workers, std::size_t capacity) {
    return {.how = how,
            .workers = workers,
            .capacity = capacity,
            .searchers = 1,
            .turns_taken = 0,
            .place = nullptr,
            .on_failure = {}};
}

// A push that waits for room.
class push final : public intake::push_op {
  public:
    push(crew& c, job& j) noexcept : push_op(c.next_intake(), j) {}
    outcome take() noexcept { return decided(); }
    void hand_on() noexcept {}
};

TEST(CrewModel, AJobWakesTheSleeperEachTime) {
    EXPECT_HOLDS(
        [] {
            parker done;
            doing first{[&] { done.unpark(); }};
            doing second{[&] { done.unpark(); }};
            crew c{of(dispatch::per_worker, 1, 4)};
            crowd threads{c};
            RONDO_CHECK_EXPECT(c.try_push(first) == outcome::accepted);
            done.park();
            RONDO_CHECK_EXPECT(c.try_push(second) == outcome::accepted);
            done.park();
            c.close();
            threads.join();
            RONDO_CHECK_EXPECT(first.runs() == 1 && second.runs() == 1);
        },
        1);
}

void a_job_wakes_one_of_two(dispatch how) {
    EXPECT_HOLDS(
        [how] {
            parker done;
            doing first{[&] { done.unpark(); }};
            crew c{of(how, 2, 4)};
            crowd threads{c};
            RONDO_CHECK_EXPECT(c.try_push(first) == outcome::accepted);
            done.park();
            c.close();
            threads.join();
            RONDO_CHECK_EXPECT(first.runs() == 1);
        },
        2);
}

TEST(CrewModel, AJobWakesOneOfTwoShared) { a_job_wakes_one_of_two(dispatch::shared); }
TEST(CrewModel, AJobWakesOneOfTwoStealing) { a_job_wakes_one_of_two(dispatch::stealing); }

// A job submits another and does not end before that one was run: by the other worker.
TEST(CrewModel, AJobBehindALongOneIsStolen) {
    EXPECT_HOLDS(
        [] {
            parker done, submitted_ran;
            doing inner{[&] { submitted_ran.unpark(); }};
            crew c{of(dispatch::stealing, 2, 4)};
            doing outer{[&] {
                RONDO_CHECK_EXPECT(c.try_push(inner) == outcome::accepted);
                submitted_ran.park();
                done.unpark();
            }};
            crowd threads{c};
            RONDO_CHECK_EXPECT(c.try_push(outer) == outcome::accepted);
            done.park();
            c.close();
            threads.join();
            RONDO_CHECK_EXPECT(inner.runs() == 1 && outer.runs() == 1);
        },
        2);
}

// Two jobs from outside, of which each waits for the other one: two workers have to be up.
void two_jobs_need_two_workers(dispatch how) {
    EXPECT_HOLDS(
        [how] {
            parker done, left, right;
            doing one{[&] {
                left.unpark();
                right.park();
            }};
            doing two{[&] {
                right.unpark();
                left.park();
                done.unpark();
            }};
            crew c{of(how, 2, 4)};
            crowd threads{c};
            RONDO_CHECK_EXPECT(c.try_push(one) == outcome::accepted);
            RONDO_CHECK_EXPECT(c.try_push(two) == outcome::accepted);
            done.park();
            c.close();
            threads.join();
        },
        2);
}

TEST(CrewModel, TwoJobsHaveTwoWorkersUpShared) { two_jobs_need_two_workers(dispatch::shared); }
TEST(CrewModel, TwoJobsHaveTwoWorkersUpStealing) { two_jobs_need_two_workers(dispatch::stealing); }

// Three jobs, none of which ends before all have begun: the push wakes one worker, which wakes the
// next, and so on.
void three_jobs_need_three_workers(dispatch how) {
    EXPECT_HOLDS_AT_RANDOM([how] {
        parker done;
        atomic<int> begun{0};
        parker one, two;
        auto const meet = [&] {
            switch (begun.fetch_add(1)) {
                case 0:
                    one.park();
                    break;
                case 1:
                    two.park();
                    break;
                default:
                    one.unpark();
                    two.unpark();
                    done.unpark();
            }
        };
        doing first{meet}, second{meet}, third{meet};
        crew c{of(how, 3, 4)};
        crowd threads{c};
        RONDO_CHECK_EXPECT(c.try_push(first) == outcome::accepted);
        RONDO_CHECK_EXPECT(c.try_push(second) == outcome::accepted);
        RONDO_CHECK_EXPECT(c.try_push(third) == outcome::accepted);
        done.park();
        c.close();
        threads.join();
    });
}

TEST(CrewModel, ThreeJobsHaveThreeWorkersUpShared) {
    three_jobs_need_three_workers(dispatch::shared);
}
TEST(CrewModel, ThreeJobsHaveThreeWorkersUpStealing) {
    three_jobs_need_three_workers(dispatch::stealing);
}

// More jobs than a worker takes at a time: what is beyond its own is not forgotten.
TEST(CrewModel, EveryJobRunsOnceBeforeTheEnd) {
    EXPECT_HOLDS(
        [] {
            std::vector<std::unique_ptr<doing<nothing>>> jobs;
            for (int i = 0; i < 4; ++i) jobs.push_back(std::make_unique<doing<nothing>>(nothing{}));
            crew c{of(dispatch::stealing, 2, 4)};
            for (auto const& j : jobs) RONDO_CHECK_EXPECT(c.try_push(*j) == outcome::accepted);
            crowd threads{c};
            c.close();
            threads.join();
            for (auto const& j : jobs) RONDO_CHECK_EXPECT(j->runs() == 1);
        },
        2);
}

// Posted again and again, more of them than a worker keeps: some change places with those outside,
// under the eyes of a thief. Kills lose_those_who_leave and lose_the_one_who_stays.
TEST(CrewModel, WhatChangesPlacesWithThoseOutsideIsNotLost) {
    struct again final : job {
        again(crew& c, int turns) noexcept
            : job([](job& j) noexcept {
                  auto& self = static_cast<again&>(j);
                  self.left = self.left - 1;
                  if (self.left != 0) self.where.post(j);
              }),
              where(c),
              left(turns) {}
        crew& where;
        cell<int> left;
    };
    auto const scenario = [] {
        crew c{of(dispatch::stealing, 2, 4)};
        detail::pool_job* itself = nullptr;
        int accepted = 1;  // plain: who runs it has seen it pushed
        doing closure{[&] {
            if (accepted == 4) return;
            ++accepted;
            if (c.try_push(*itself) != outcome::accepted) --accepted;
        }};
        itself = &closure;
        RONDO_CHECK_EXPECT(c.try_push(closure) == outcome::accepted);
        std::vector<std::unique_ptr<again>> jobs;
        for (int i = 0; i < 7; ++i) jobs.push_back(std::make_unique<again>(c, 4));
        for (auto const& j : jobs) c.post(*j);
        crowd threads{c};
        c.close();
        threads.join();
        for (auto const& j : jobs) RONDO_CHECK_EXPECT(j->left == 0);
        RONDO_CHECK_EXPECT(closure.runs() == accepted);
    };
    EXPECT_HOLDS(scenario, 3);
    EXPECT_HOLDS_AT_RANDOM(scenario);
}

// A job submits while the crew is closed, to a worker that may have ended.
TEST(CrewModel, AJobMaySubmitUntilTheEndPerWorker) {
    EXPECT_HOLDS(
        [] {
            doing inner{nothing{}};
            crew c{of(dispatch::per_worker, 2, 4)};
            doing outer{[&] { RONDO_CHECK_EXPECT(c.try_push(inner) == outcome::accepted); }};
            RONDO_CHECK_EXPECT(c.try_push(outer) == outcome::accepted);
            crowd threads{c};
            c.close();
            threads.join();
            RONDO_CHECK_EXPECT(inner.runs() == 1);
        },
        1);
}

TEST(CrewModel, WhoWaitsForRoomGetsIt) {
    EXPECT_HOLDS(
        [] {
            parker done;
            doing first{nothing{}};
            doing second{nothing{}};
            doing third{[&] { done.unpark(); }};
            crew c{of(dispatch::shared, 1, 1)};
            crowd threads{c};
            thread other{
                [&] { RONDO_CHECK_EXPECT(blocking_wait(push{c, second}) == outcome::accepted); }};
            RONDO_CHECK_EXPECT(blocking_wait(push{c, first}) == outcome::accepted);
            other.join();
            RONDO_CHECK_EXPECT(blocking_wait(push{c, third}) == outcome::accepted);
            done.park();
            c.close();
            threads.join();
            RONDO_CHECK_EXPECT(first.runs() == 1 && second.runs() == 1);
        },
        1);
}

// Each job is run, dropped or refused, and who waits for room is told.
TEST(CrewModel, StoppingLeavesNobodyWaiting) {
    EXPECT_HOLDS(
        [] {
            doing first{nothing{}};
            doing second{nothing{}};
            crew c{of(dispatch::stealing, 1, 1)};
            bool pushed = false;
            bool waited = false;
            thread submitter{[&] {
                pushed = c.try_push(first) == outcome::accepted;
                waited = blocking_wait(push{c, second}) == outcome::accepted;
            }};
            crowd threads{c};
            c.drop_waiting();
            c.close();
            submitter.join();
            threads.join();
            RONDO_CHECK_EXPECT(first.runs() + first.drops() == (pushed ? 1 : 0));
            RONDO_CHECK_EXPECT(second.runs() + second.drops() == (waited ? 1 : 0));
            RONDO_CHECK_EXPECT(c.dropped() == std::size_t(first.drops() + second.drops()));
        },
        1);
}

// What is in a worker's own queue is dropped while it runs, and a posted job is not.
TEST(CrewModel, StoppingDropsWhatAWorkerHasForItselfButNotWhatWasPosted) {
    EXPECT_HOLDS(
        [] {
            struct posted final : job {
                posted() noexcept
                    : job([](job& j) noexcept {
                          auto& self = static_cast<posted&>(j);
                          self.runs = self.runs + 1;
                      }) {}
                cell<int> runs{0};
            } raw;
            parker begun;
            doing inner{nothing{}};
            crew c{of(dispatch::stealing, 1, 4)};
            doing outer{[&] {
                RONDO_CHECK_EXPECT(c.try_push(inner) == outcome::accepted);
                c.post(raw);
                begun.unpark();
            }};
            crowd threads{c};
            RONDO_CHECK_EXPECT(c.try_push(outer) == outcome::accepted);
            begun.park();
            c.drop_waiting();
            c.close();
            threads.join();
            RONDO_CHECK_EXPECT(inner.runs() + inner.drops() == 1);
            RONDO_CHECK_EXPECT(raw.runs == 1);
        },
        1);
}

// It needs another worker for that: one that has nothing to do does not leave before it. Kills
// leave_before_the_others_have_ended.
void a_job_waits_for_another_at_the_end(dispatch how) {
    EXPECT_HOLDS(
        [how] {
            parker ending;
            parker inner_ran;
            doing inner{[&] { inner_ran.unpark(); }};
            crew c{of(how, 2, 4)};
            doing outer{[&] {
                ending.park();
                RONDO_CHECK_EXPECT(c.try_push(inner) == outcome::accepted);
                inner_ran.park();
            }};
            RONDO_CHECK_EXPECT(c.try_push(outer) == outcome::accepted);
            crowd threads{c};
            c.close();
            ending.unpark();
            threads.join();
            RONDO_CHECK_EXPECT(inner.runs() == 1 && outer.runs() == 1);
        },
        2);
}

TEST(CrewModel, AJobMayWaitForWhatItSubmitsAtTheEndShared) {
    a_job_waits_for_another_at_the_end(dispatch::shared);
}
TEST(CrewModel, AJobMayWaitForWhatItSubmitsAtTheEndStealing) {
    a_job_waits_for_another_at_the_end(dispatch::stealing);
}

TEST(CrewModel, AWorkerThatNeverCameIsNotWaitedFor) {
    EXPECT_HOLDS([] {
        crew c{of(dispatch::stealing, 2, 4)};
        thread only{[&] { c.workers().front()->run(); }};
        c.dismiss();
        only.join();
    });
}

// The crew is destroyed as soon as the posted job has run, while post() may still be returning.
TEST(CrewModel, APostedJobMayBeTheLast) {
    EXPECT_HOLDS(
        [] {
            parker done;
            struct last final : job {
                explicit last(parker& p) noexcept
                    : job([](job& j) noexcept { static_cast<last&>(j).done.unpark(); }), done(p) {}
                parker& done;
            } raw{done};
            auto c = std::make_unique<crew>(of(dispatch::shared, 2, 4));
            crowd threads{*c};
            thread poster{[&, target = c.get()] { target->post(raw); }};
            done.park();
            c->close();
            threads.join();
            c.reset();
            poster.join();
        },
        2);
}

}  // namespace
}  // namespace rondo
