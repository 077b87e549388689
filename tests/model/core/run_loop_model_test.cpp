// The end of a loop, explored, while a task of it ends in a thread that is not the loop's.
#include <coroutine>
#include <optional>

#include "rondo/core/block_on.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;

// Who awaits it goes on in a thread of its own.
class abroad {
  public:
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) {
        foreign_.emplace([h] { h.resume(); });
    }
    void await_resume() const noexcept {}

    void join() { foreign_->join(); }

  private:
    std::optional<thread> foreign_;
};

task<int> return_abroad(abroad* there, cell<int>* ended) {
    co_await *there;
    *ended = *ended + 1;
    co_return 7;
}

// Kills sleep_although_the_last_visitor_has_gone, go_under_a_visitor.
TEST(RunLoopModel, WaitsForATaskThatEndsInAForeignThreadAndIsWokenByIt) {
    EXPECT_HOLDS([] {
        abroad there;
        cell<int> ended{0};
        {
            run_loop loop;
            spawn(loop, return_abroad(&there, &ended)).detach();
            loop.run_ready();
        }
        RONDO_CHECK_EXPECT(ended == 1);
        there.join();
    });
}

TEST(RunLoopModel, ABlockOnMayEndInAForeignThread) {
    EXPECT_HOLDS([] {
        abroad there;
        cell<int> ended{0};
        RONDO_CHECK_EXPECT(block_on(return_abroad(&there, &ended)) == 7);
        there.join();
    });
}

// Kills tell_of_the_end_before_the_visit.
TEST(RunLoopModel, ABlockOnMayEndInAForeignThreadWhileAnotherFinishesItsLoop) {
    EXPECT_HOLDS([] {
        abroad there;
        cell<int> ended{0};
        std::optional<thread> impatient;
        {
            run_loop loop;
            impatient.emplace([&loop] { loop.finish(); });
            RONDO_CHECK_EXPECT(block_on(loop, return_abroad(&there, &ended)) == 7);
            impatient->join();
        }
        there.join();
    });
}

// Kills go_while_a_visitors_job_is_there.
TEST(RunLoopModel, RunsWhatATaskPostsThatEndsInAForeignThread) {
    struct farewell final : job {
        farewell() noexcept : job([](job& j) noexcept { ++static_cast<farewell&>(j).times; }) {}
        int times = 0;
    };
    struct posts_at_the_end {
        executor& to;
        job& what;
        ~posts_at_the_end() { to.post(what); }
    };
    EXPECT_HOLDS([] {
        abroad there;
        farewell bye;
        {
            run_loop loop;
            auto const leave = [](abroad* a, executor* to, job* what) -> task<void> {
                posts_at_the_end const last{*to, *what};
                co_await *a;
            };
            spawn(loop, leave(&there, &loop, &bye)).detach();
            loop.run_ready();
        }
        RONDO_CHECK_EXPECT(bye.times == 1);
        there.join();
    });
}

// Kills un_park_a_loop_that_a_timer_may_have_ended.
TEST(RunLoopModel, ATimerThatAnotherThreadAddsMayEndTheLoop) {
    struct finishes final : timer {
        explicit finishes(run_loop& l) noexcept
            : timer([](timer& t) noexcept { static_cast<finishes&>(t).loop.finish(); }), loop(l) {}
        run_loop& loop;
    };
    EXPECT_HOLDS([] {
        std::optional<run_loop> loop{std::in_place};
        finishes end{*loop};
        thread adds{[&end, &timers = static_cast<executor&>(*loop).timers()] {
            timers.add(end, time_point{});
        }};
        loop->run();
        loop.reset();
        adds.join();
    });
}

}  // namespace
}  // namespace rondo
