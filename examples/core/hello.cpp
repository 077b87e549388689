// One microphone; a task, a plain thread and a coroutine of a foreign type take turns at it, and an
// impatient task gives up waiting: its locals are destroyed, its place in line closes, nothing else
// changes.
//
// The first half is the microphone: all that a primitive has to say for itself. Turns, wake-ups,
// stop and deadlines come with wait_queue.
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/core/with_timeout.hpp"

namespace {

using namespace std::chrono_literals;

// [microphone]
// One speaker at a time, in the order in which they asked.
class microphone final : rondo::wait_queue {
  public:
    // Held until it is destroyed.
    class [[nodiscard("dropping it passes the microphone on")]] turn {
      public:
        explicit turn(microphone& m) noexcept : of_(&m) {}
        turn(turn&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
        turn& operator=(turn&&) = delete;
        ~turn() {
            if (of_ != nullptr) of_->put_back();
        }

      private:
        microphone* of_;
    };

    class take_op : public rondo::waiter {
      public:
        explicit take_op(microphone& m) noexcept : waiter(m), of_(m) {}
        bool ready() noexcept {
            std::lock_guard const guard{of_.lock()};
            return !of_.has_waiters() && of_.grant(*this);  // nobody overtakes those in line
        }
        turn take() noexcept { return turn{of_}; }
        void hand_on() noexcept { of_.put_back(); }

      private:
        microphone& of_;
    };

    rondo::wait<take_op> take() noexcept { return rondo::wait{take_op{*this}}; }
    turn blocking_take() { return rondo::blocking_wait(take_op{*this}); }
    bool awaited() noexcept {
        std::lock_guard const guard{lock()};
        return has_waiters();
    }

  private:
    bool grant(rondo::waiter&) noexcept override { return std::exchange(free_, false); }
    void put_back() noexcept {
        serve([this] { free_ = true; });
    }

    bool free_ = true;
};
// [/microphone]

// A coroutine type that knows nothing of rondo: starts at once, belongs to nobody.
struct foreign {
    struct promise_type {
        foreign get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::abort(); }
    };
};

class evening {
  public:
    rondo::task<void> run() {
        rondo::environment const& here = co_await rondo::this_environment();
        std::optional<microphone::turn> held{co_await microphone_.take()};
        say("host", "has the microphone");

        std::jthread const thread{[this] {
            microphone::turn const mine = microphone_.blocking_take();
            say("thread", "speaks");
        }};
        while (!microphone_.awaited()) co_await rondo::yield();
        auto impatient = spawn(*here.where, give_up_after(5ms));
        auto task = spawn(*here.where, speak("task"));
        co_await rondo::yield();  // both are in line behind the thread now
        speak_foreign();

        co_await rondo::sleep_for(20ms);
        say("host", "passes it on");
        held.reset();
        (void)co_await impatient.join();
        (void)co_await task.join();
        microphone::turn const last = co_await microphone_.take();  // after all the others
        say("host", "has it back: nothing was lost");
    }

    std::vector<std::string> const& heard() const noexcept { return heard_; }

  private:
    class notes {
      public:
        explicit notes(evening& e) noexcept : evening_(e) {}
        notes(notes const&) = delete;
        notes& operator=(notes const&) = delete;
        ~notes() { evening_.say("impatient", "folds up the notes"); }

      private:
        evening& evening_;
    };

    rondo::task<void> speak(std::string who) {
        microphone::turn const mine = co_await microphone_.take();
        say(who, "speaks");
    }

    rondo::task<void> speak_from_notes() {
        notes const mine{*this};
        co_await speak("impatient");
    }

    rondo::task<void> give_up_after(rondo::clock::duration patience) {
        auto const spoke = co_await rondo::with_timeout(speak_from_notes(), patience);
        if (!spoke) say("impatient", "has left the line");
    }

    foreign speak_foreign() {
        microphone::turn const mine = co_await microphone_.take();
        say("coroutine", "speaks");
    }

    // Called by whoever has the microphone, or by the host's loop while the host has it.
    void say(std::string const& who, char const* what) {
        std::printf("%-10s %s\n", who.c_str(), what);
        heard_.push_back(who + ' ' + what);
    }

    microphone microphone_;
    std::vector<std::string> heard_;
};

}  // namespace

int main() {
    evening e;
    rondo::block_on(e.run());
    std::vector<std::string> const expected{
        "host has the microphone",
        "impatient folds up the notes",
        "impatient has left the line",
        "host passes it on",
        "thread speaks",
        "task speaks",
        "coroutine speaks",
        "host has it back: nothing was lost",
    };
    return e.heard() == expected ? EXIT_SUCCESS : EXIT_FAILURE;
}
