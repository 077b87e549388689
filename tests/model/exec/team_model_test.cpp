// A runtime without its threads and its I/O, explored: how jobs find workers, who is woken and who
// keeps the time. Nobody closes the team before what it waits for has been run: a wake-up that is
// lost shows as a deadlock.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "crowd.hpp"
#include "rondo/core/parker.hpp"
#include "rondo/exec/detail/team.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using detail::driver;
using detail::runner;
using detail::steal_queue;
using detail::team;
using test::crowd;
using test::deaf_driver;
using test::doing;

struct nothing {
    void operator()() const noexcept {}
};

// Hears one thing, once.
class hearing_driver final : public driver {
  public:
    void will_hear(std::function<void()> heard) { heard_ = std::move(heard); }

    void poll() noexcept override {
        if (auto const f = std::exchange(heard_, nullptr)) f();
    }
    void park(time_point until) noexcept override { (void)parker_.park_until(until); }
    void unpark() noexcept override { parker_.unpark(); }

  private:
    std::function<void()> heard_;
    parker parker_;
};

TEST(TeamModel, AJobWakesTheOnlyWorkerEachTime) {
    EXPECT_HOLDS(
        [] {
            parker done;
            doing first{[&] { done.unpark(); }};
            doing second{[&] { done.unpark(); }};
            crowd c{1};
            c.start();
            c->post(first);
            done.park();
            c->post(second);
            done.park();
            c.end();
            RONDO_CHECK_EXPECT(first.runs() == 1 && second.runs() == 1);
        },
        1);
}

TEST(TeamModel, AJobWakesOneOfTwoWorkers) {
    EXPECT_HOLDS(
        [] {
            parker done;
            doing only{[&] { done.unpark(); }};
            crowd c{2};
            c.start();
            c->post(only);
            done.park();
            c.end();
            RONDO_CHECK_EXPECT(only.runs() == 1);
        },
        2);
}

// A job posts another one and does not end before that was run: by the other worker.
TEST(TeamModel, AJobThatIsPostedInALongTurnIsStolen) {
    EXPECT_HOLDS(
        [] {
            parker done;
            parker inner_ran;
            doing inner{[&] { inner_ran.unpark(); }};
            crowd c{2};
            doing outer{[&] {
                c->post(inner);
                inner_ran.park();
                done.unpark();
            }};
            c->post(outer);
            c.start();
            done.park();
            c.end();
            RONDO_CHECK_EXPECT(inner.runs() == 1 && outer.runs() == 1);
        },
        2);
}

// Of two jobs that a turn wakes, the first gives up its place to the second, and is not lost.
TEST(TeamModel, BothOfTwoWokenJobsRun) {
    EXPECT_HOLDS(
        [] {
            parker done;
            doing one{nothing{}};
            doing two{nothing{}};
            crowd c{2};
            doing outer{[&] {
                c->wake(one);
                c->wake(two);
                done.unpark();
            }};
            c->post(outer);
            c.start();
            done.park();
            c.end();
            RONDO_CHECK_EXPECT(one.runs() == 1 && two.runs() == 1);
        },
        2);
}

// A job that gives way behind another one needs a worker of its own if that one does not end.
TEST(TeamModel, AJobThatGivesWayToALongOneIsStolen) {
    EXPECT_HOLDS(
        [] {
            parker done;
            parker again;
            parker asleep;
            doing before{[&] { asleep.unpark(); }};
            crowd c{2};
            doing after{[&] { again.unpark(); }};
            doing long_one{[&] {
                again.park();
                done.unpark();
            }};
            doing outer{[&] {
                c->wake(long_one);
                c->give_way(after);
            }};
            c.start();
            c.worker(1).post(before);
            asleep.park();  // both workers have been up, and one at least sleeps again
            c->post(outer);
            done.park();
            c.end();
            RONDO_CHECK_EXPECT(after.runs() == 1 && long_one.runs() == 1);
        },
        3);
}

// One of them may have to wait for the turn in which they gave way, but not both.
TEST(TeamModel, OfTwoJobsThatGiveWayInALongTurnOneIsStolen) {
    EXPECT_HOLDS(
        [] {
            parker done;
            parker again;
            parker asleep;
            doing before{[&] { asleep.unpark(); }};
            crowd c{2};
            doing one{[&] { again.unpark(); }};
            doing two{[&] { again.unpark(); }};
            doing long_one{[&] {
                c->give_way(one);
                c->give_way(two);
                again.park();
                done.unpark();
            }};
            c.start();
            c.worker(1).post(before);
            asleep.park();  // both workers have been up, and one at least sleeps again
            c->post(long_one);
            done.park();
            c.end();
            RONDO_CHECK_EXPECT(one.runs() == 1 && two.runs() == 1);
        },
        3);
}

// More jobs than the queue of a worker holds: half of it goes outside with the one too many, ahead
// of that. All ways to take turns are few, those to interrupt one by another many: these at random.
// Kills go_round_and_round_in_a_full_queue.
TEST(TeamModel, ATurnMayWaitForTheLastOfMoreJobsThanItsWorkerKeeps) {
    auto const scenario = [] {
        parker last_ran;
        std::vector<std::unique_ptr<doing<nothing>>> first;
        for (std::uint32_t i = 0; i < steal_queue::capacity; ++i) {
            first.push_back(std::make_unique<doing<nothing>>(nothing{}));
        }
        doing last{[&] {
            RONDO_CHECK_EXPECT(first.front()->runs() == 1);
            last_ran.unpark();
        }};
        deaf_driver here, there;
        team t{{.drivers = {&here, &there}, .on_unobserved = {}}};
        runner& mine = *t.runners()[0];
        bool over = false;
        doing outer{[&] {
            for (auto const& j : first) t.post(*j);
            t.post(last);
            last_ran.park();
            over = true;
        }};
        mine.post(outer);
        thread other{[&] { t.runners()[1]->run(); }};
        mine.run_until([&] { return over; });
        t.close();
        mine.run();
        other.join();
        for (auto const& j : first) RONDO_CHECK_EXPECT(j->runs() == 1);
        RONDO_CHECK_EXPECT(last.runs() == 1);
    };
    EXPECT_HOLDS(scenario, 3);
    EXPECT_HOLDS_AT_RANDOM(scenario);
}

TEST(TeamModel, APinnedJobFromOutsideWakesItsWorker) {
    EXPECT_HOLDS(
        [] {
            parker done;
            crowd c{2};
            runner* ran_on = nullptr;
            doing pinned{[&] {
                ran_on = runner::current();
                done.unpark();
            }};
            c.start();
            c.worker(1).post(pinned);
            done.park();
            RONDO_CHECK_EXPECT(ran_on == &c.worker(1));
            c.end();
            RONDO_CHECK_EXPECT(pinned.runs() == 1);
        },
        2);
}

// A worker that was up for a pinned job searches no more while it runs that.
TEST(TeamModel, APinnedJobThatDoesNotEndKeepsNobodyFromBeingWoken) {
    EXPECT_HOLDS(
        [] {
            parker shared_ran;
            parker done;
            doing pinned{[&] {
                shared_ran.park();
                done.unpark();
            }};
            doing shared{[&] { shared_ran.unpark(); }};
            crowd c{2};
            c.start();
            c.worker(0).post(pinned);
            c->post(shared);
            done.park();
            c.end();
        },
        2);
}

// A turn keeps what it has woken itself, not what the one before it has. Kills
// keep_what_another_turn_has_woken.
TEST(TeamModel, WhatATurnHasWokenIsNotKeptByThePinnedOneAfterIt) {
    EXPECT_HOLDS(
        [] {
            parker done;
            parker woken_ran;
            doing woken{[&] { woken_ran.unpark(); }};
            crowd c{2};
            doing pinned{[&] {
                woken_ran.park();
                done.unpark();
            }};
            doing outer{[&] {
                runner::current()->post(pinned);
                c->wake(woken);
            }};
            c->post(outer);
            c.start();
            done.park();
            c.end();
            RONDO_CHECK_EXPECT(woken.runs() == 1 && pinned.runs() == 1);
        },
        3);
}

// Nor does one that a worker with enough to do takes from outside.
TEST(TeamModel, WhatATurnHasWokenIsNotKeptByTheOneFromOutsideAfterIt) {
    EXPECT_HOLDS(
        [] {
            parker done;
            parker often_enough;
            crowd c{2};
            job* itself = nullptr;
            int runs = 0;
            doing again{[&] {
                if (++runs == 4) return often_enough.unpark();
                c->wake(*itself);
            }};
            itself = &again;
            doing long_one{[&] {
                often_enough.park();
                done.unpark();
            }};
            c->post(again);
            c->post(long_one);
            c.start();
            done.park();
            c.end();
            RONDO_CHECK_EXPECT(again.runs() == 4 && long_one.runs() == 1);
        },
        3);
}

// The worker sleeps for one reason and is chosen for another in the same instant.
TEST(TeamModel, APinnedAndASharedJobMeetAtOneSleeper) {
    EXPECT_HOLDS(
        [] {
            parker first_done;
            parker second_done;
            doing pinned{[&] { first_done.unpark(); }};
            doing shared{[&] { second_done.unpark(); }};
            crowd c{1};
            c.start();
            thread other{[&] { c->post(shared); }};
            c.worker(0).post(pinned);
            first_done.park();
            second_done.park();
            c.end();
            other.join();
            RONDO_CHECK_EXPECT(pinned.runs() == 1 && shared.runs() == 1);
        },
        1);
}

// A worker with enough to do listens between two turns: what it hears is not charged to the job
// that ran last. Kills charge_a_handler_to_a_task.
TEST(TeamModel, WhatIsHeardIsNoJobsTurn) {
    EXPECT_HOLDS([] {
        bool heard = false;
        hearing_driver ears;
        team t{{.drivers = {&ears}, .on_unobserved = {}}};
        struct again final : job {
            again(team& t, bool& enough) noexcept
                : job([](job& j) noexcept {
                      auto& self = static_cast<again&>(j);
                      if (!self.over) self.where.give_way(j);
                  }),
                  where(t),
                  over(enough) {}
            team& where;
            bool& over;
        } busy{t, heard};
        doing first{[&] {
            ears.will_hear([&] {
                heard = true;
                RONDO_CHECK_EXPECT(runner::current()->running() == nullptr);
            });
        }};
        t.post(first);
        t.post(busy);
        t.close();
        t.runners().front()->run();
        RONDO_CHECK_EXPECT(heard);
    });
}

// In one round a worker may run a pinned and a shared job: both are turns. Kills
// count_two_turns_as_one.
TEST(TeamModel, AWorkerThatIsBusyInTwoWaysListensNoLater) {
    EXPECT_HOLDS([] {
        int since = 0;  // turns since it listened
        int left = 20;
        hearing_driver ears;
        team t{{.drivers = {&ears}, .on_unobserved = {}}};
        std::function<void()> const hear = [&] {
            since = 0;
            ears.will_hear(hear);
        };
        ears.will_hear(hear);
        auto const count = [&] { RONDO_CHECK_EXPECT(++since <= 3); };
        doing woken{count};
        struct again final : job {
            using body = std::function<void(job&)>;
            explicit again(body f) noexcept
                : job([](job& j) noexcept { static_cast<again&>(j).runs(j); }),
                  runs(std::move(f)) {}
            body runs;
        } busy{[&](job& j) {
            count();
            if (--left == 0) return;
            t.wake(woken);
            t.give_way(j);
        }};
        t.post(busy);
        t.close();
        t.runners().front()->run();
    });
}

// What a thread that is lent waits for may come to pass while it looks around, and leave nothing to
// run: it does not sleep on that. Kills sleep_on_what_was_heard.
TEST(TeamModel, AThreadThatIsLentSeesWhatAHandlerHasDone) {
    EXPECT_HOLDS([] {
        bool heard = false;
        hearing_driver ears;
        ears.will_hear([&] { heard = true; });
        team t{{.drivers = {&ears}, .on_unobserved = {}}};
        t.runners().front()->run_until([&] { return heard; });
        t.close();
        t.runners().front()->run();
    });
}

struct unparks final : timer {
    explicit unparks(parker& p) noexcept
        : timer([](timer& t) noexcept { static_cast<unparks&>(t).whom.unpark(); }), whom(p) {}
    parker& whom;
};

// It is seen, or the worker is un-parked.
TEST(TeamModel, ATimerThatIsAddedWhileAWorkerLiesDownFires) {
    EXPECT_HOLDS(
        [] {
            parker done;
            unparks now{done};
            crowd c{1};
            c.start();
            c->timers().add(now, time_point{});
            done.park();
            c.end();
        },
        1);
}

// Kills add_a_timer_to_a_team_that_it_may_end.
TEST(TeamModel, ATimerThatAnotherThreadAddsMayBeTheLastThatHappens) {
    EXPECT_HOLDS(
        [] {
            parker done;
            unparks now{done};
            std::optional<thread> adds;
            {
                crowd c{1};
                c.start();
                adds.emplace([&now, &timers = c->timers()] { timers.add(now, time_point{}); });
                done.park();
                c.end();
            }
            adds->join();
        },
        1);
}

// Who was to keep the time has found a job, in the same instant in which a timer is added. Kills
// keep_the_time_no_more_on_a_hint.
TEST(TeamModel, ATimerThatIsAddedWhileTheKeeperFindsAJobFires) {
    EXPECT_HOLDS_AT_RANDOM([] {
        parker fired;
        parker done;
        parker up;
        unparks now{fired};
        doing before{[&] { up.unpark(); }};
        doing long_one{[&] {
            fired.park();
            done.unpark();
        }};
        crowd c{2};
        c.start();
        c.worker(0).post(before);  // so that it may lie down last, and keep the time
        up.park();
        c->post(long_one);
        c->timers().add(now, time_point{});
        done.park();
        c.end();
    });
}

}  // namespace
}  // namespace rondo
