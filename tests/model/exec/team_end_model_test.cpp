// How a runtime pauses and ends, explored without its threads and its I/O.
#include <coroutine>
#include <exception>
#include <stdexcept>

#include "crowd.hpp"
#include "rondo/core/parker.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/exec/detail/team.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using test::crowd;
using test::doing;

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
