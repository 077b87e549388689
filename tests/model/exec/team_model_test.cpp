// A runtime without its threads and its I/O, explored: how jobs find workers, who is woken, who
// keeps the time, and how it ends. Nobody closes the team before what it waits for has been run: a
// wake-up that is lost shows as a deadlock.
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rondo/core/parker.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/exec/detail/team.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using detail::driver;
using detail::runner;
using detail::team;

// Runs a function, once; whoever runs it must have seen it being made.
template <class F>
class doing final : public job {
  public:
    explicit doing(F f) : job(&act), body_(std::move(f)) {}
    int runs() const noexcept { return runs_; }

  private:
    static void act(job& j) noexcept {
        auto& self = static_cast<doing&>(j);
        self.runs_ = self.runs_ + 1;
        self.body_();
    }

    F body_;
    cell<int> runs_{0};
};

struct nothing {
    void operator()() const noexcept {}
};

// Sleeps, and hears nothing of the world.
class deaf_driver final : public driver {
  public:
    void poll() noexcept override {}
    void park(time_point until) noexcept override {
        last_until = until;
        (void)parker_.park_until(until);
    }
    void unpark() noexcept override { parker_.unpark(); }

    cell<time_point> last_until{time_point{}};

  private:
    parker parker_;
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

class crowd {
  public:
    explicit crowd(std::size_t workers, std::function<void(std::exception_ptr)> unobserved = {})
        : drivers_(workers) {
        team::setup s;
        s.on_unobserved = std::move(unobserved);
        for (auto& d : drivers_) s.drivers.push_back(&(d = std::make_unique<deaf_driver>(), *d));
        team_ = std::make_unique<team>(std::move(s));
    }
    void start() {
        for (auto const& r : team_->runners()) threads_.emplace_back([&r] { r->run(); });
    }
    // Ends as a runtime does, down to its memory.
    void end() {
        team_->close();
        for (thread& t : threads_) t.join();
        team_.reset();
        drivers_.clear();
    }
    team& operator*() { return *team_; }
    team* operator->() { return team_.get(); }
    runner& worker(std::size_t i) { return *team_->runners()[i]; }

  private:
    std::vector<std::unique_ptr<deaf_driver>> drivers_;
    std::unique_ptr<team> team_;
    std::vector<thread> threads_;
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

// The team is destroyed as soon as the job has run, while post() may still be returning.
TEST(TeamModel, APostedJobMayBeTheLast) {
    EXPECT_HOLDS(
        [] {
            parker done;
            doing last{[&] { done.unpark(); }};
            crowd c{2};
            c.start();
            thread poster{[&, target = &*c] { target->post(last); }};
            done.park();
            c.end();
            poster.join();
        },
        2);
}

TEST(TeamModel, APinnedJobMayBeTheLast) {
    EXPECT_HOLDS(
        [] {
            parker done;
            doing last{[&] { done.unpark(); }};
            crowd c{1};
            c.start();
            thread poster{[&, target = &c.worker(0)] { target->post(last); }};
            done.park();
            c.end();
            poster.join();
        },
        1);
}

// Who leaves need not pause, and says so. Kills leave_in_a_pause_without_a_word.
TEST(TeamModel, APauseDoesNotWaitForAThreadThatLeaves) {
    EXPECT_HOLDS([] {
        crowd c{1};
        thread lent{[&] { c.worker(0).run_until([] { return true; }); }};
        RONDO_CHECK_EXPECT(c->pause(time_point::max()));
        c->resume();
        lent.join();
        c.end();
    });
}

// An awaitable that knows nothing of tasks: who awaits it goes on in the thread that resumes it.
class abroad {
  public:
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept { traveller_ = h; }
    void await_resume() const noexcept {}

    bool arrived() const noexcept { return traveller_ != nullptr; }
    void resume() { traveller_.resume(); }

  private:
    std::coroutine_handle<> traveller_;
};

task<void> end_abroad(abroad* there) {
    co_await *there;
    throw std::runtime_error{"reported to a team that is about to go"};
}

// The thread that ends the team is also its only worker: nobody else keeps it.
void end_a_task_abroad(bool pinned) {
    abroad there;
    cell<int> reported{0};
    crowd c{1, [&](std::exception_ptr const&) { reported = reported + 1; }};
    spawn(pinned ? static_cast<executor&>(c.worker(0)) : *c, end_abroad(&there)).detach();
    c.worker(0).run_until([&] { return there.arrived(); });
    thread foreign{[&] { there.resume(); }};
    RONDO_CHECK_EXPECT(c->await_tasks(time_point::max()));
    c.end();
    RONDO_CHECK_EXPECT(reported == 1);
    foreign.join();
}

TEST(TeamModel, ATaskThatEndsInAForeignThreadMayBeTheLast) {
    EXPECT_HOLDS([] { end_a_task_abroad(false); });
}

TEST(TeamModel, APinnedTaskThatEndsInAForeignThreadMayBeTheLast) {
    EXPECT_HOLDS([] { end_a_task_abroad(true); });
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
        auto const count = [&] { RONDO_CHECK_EXPECT(++since <= 4); };
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

// Between pause() and resume() no worker runs anything, and afterwards all goes on.
TEST(TeamModel, NothingRunsInAPause) {
    EXPECT_HOLDS(
        [] {
            parker done;
            cell<int> touched{0};  // plain: the checker sees whether two use it at a time
            doing first{[&] {
                touched = touched + 1;
                done.unpark();
            }};
            crowd c{1};
            c.start();
            c->post(first);
            bool const paused = c->pause(time_point{});  // may give up at any time
            if (paused) touched = touched + 1;
            c->resume();
            done.park();
            c.end();
            RONDO_CHECK_EXPECT(touched == (paused ? 2 : 1));
        },
        1);
}

task<void> return_abroad(abroad* there) { co_await *there; }

// A thread that is not the team's goes on with a task and destroys its frame. Kills
// resume_abroad_in_a_pause and go_abroad_unmarked.
TEST(TeamModel, NoTaskIsReadWhileItGoesOnAbroad) {
    EXPECT_HOLDS([] {
        abroad there;
        crowd c{1};
        spawn(*c, return_abroad(&there)).detach();
        c.worker(0).run_until([&] { return there.arrived(); });
        thread foreign{[&] { there.resume(); }};
        RONDO_CHECK_EXPECT(c->pause(time_point::max()));  // no worker is there
        c->for_each_task([](live_task const& t) {
            if (!t.abroad()) (void)t.trace();
        });
        c->resume();
        RONDO_CHECK_EXPECT(c->await_tasks(time_point::max()));
        c.end();
        foreign.join();
    });
}

}  // namespace
}  // namespace rondo
