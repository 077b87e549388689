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

}  // namespace
}  // namespace rondo
