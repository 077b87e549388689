// A wait for an operation that belongs to another place, explored: its start, its end and requests
// to cancel it meet in every order, and the frame goes when all of them are done with it.
#include <expected>
#include <functional>
#include <optional>

#include "rondo/core/block_on.hpp"
#include "rondo/core/detail/remote_wait.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using detail::no_bounds;

// When the operation ends.
enum class ends : std::uint8_t {
    at_once,        // as it is started
    later,          // in a turn of its own
    when_cancelled  // and not before
};

// Whether a request to cancel finds the way.
enum class requests : std::uint8_t { arrive, go_nowhere };

// How many operations were begun in this execution. (Each scenario that asks sets it to zero.)
int begun = 0;

// An operation that reads the number 7 at another loop.
template <class Bounds>
class reading final : detail::remote_wait<Bounds> {
  public:
    reading(run_loop& there, ends when, requests r, Bounds bounds, detail::promise_base& task)
        : detail::remote_wait<Bounds>(task, bounds_),
          there_(there),
          when_(when),
          requests_(r),
          bounds_(bounds) {}

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept {
        return this->suspend();
    }
    std::expected<int, wait_state> await_resume() {
        if (aborted()) return std::unexpected{this->why()};
        return result_;
    }

  private:
    // A job that goes to the place.
    struct errand : job {
        errand(reading& r, void (reading::*f)() noexcept) noexcept
            : job(&arrived), of(r), what(f) {}
        static void arrived(job& j) noexcept {
            auto& e = static_cast<errand&>(j);
            (e.of.*e.what)();
        }
        reading& of;
        void (reading::*what)() noexcept;
    };

    void send_start() noexcept override { there_.post(start_); }
    void send_cancel() noexcept override {
        if (requests_ == requests::arrive) {
            there_.post(cancel_);
        } else {
            this->cancelled();
        }
    }
    bool aborted() const noexcept override { return aborted_ || !begun_; }

    void begin() noexcept {
        if (!this->may_start()) return;
        ++begun;
        if (when_ == ends::at_once) finish();
        if (when_ == ends::later) there_.post(end_);
        begun_ = true;
        if (cancel_came_) abort();
        this->started();
    }
    void finish() noexcept {
        if (over_) return;
        over_ = true;
        result_ = 7;
        this->ended();
    }
    void abort() noexcept {
        if (over_ || when_ == ends::later) return;  // that one will not be talked out of it
        over_ = true;
        aborted_ = true;
        this->ended();
    }
    void cancel() noexcept {
        cancel_came_ = true;
        if (begun_) abort();
        this->cancelled();
    }

    run_loop& there_;
    ends when_;
    requests requests_;
    [[no_unique_address]] Bounds bounds_;
    errand start_{*this, &reading::begin};
    errand end_{*this, &reading::finish};
    errand cancel_{*this, &reading::cancel};
    bool begun_ = false;
    bool cancel_came_ = false;
    bool over_ = false;
    cell<int> result_{0};
    cell<bool> aborted_{false};
};

template <class Bounds>
class read_at {
  public:
    read_at(run_loop& there, ends when, requests r, Bounds bounds) noexcept
        : there_(there), when_(when), requests_(r), bounds_(bounds) {}
    reading<Bounds> rondo_await(detail::promise_base& task) const {
        return reading<Bounds>{there_, when_, requests_, bounds_, task};
    }

  private:
    run_loop& there_;
    ends when_;
    requests requests_;
    Bounds bounds_;
};

task<std::expected<int, wait_state>> read(run_loop& there, ends when,
                                          requests r = requests::arrive) {
    read_at<no_bounds> operation{there, when, r, no_bounds{}};
    co_return co_await operation;
}
task<std::expected<int, wait_state>> read(run_loop& there, ends when, stop_token token) {
    read_at<wait_bounds> operation{there, when, requests::arrive, wait_bounds{token}};
    co_return co_await operation;
}

// Runs both in this thread until the task has ended.
template <class T>
std::expected<T, wait_error> end_of_both(run_loop& here, run_loop& there, join_handle<T>& handle) {
    while (!handle.ended()) {
        here.run_ready();
        there.run_ready();
        spin_pause();
    }
    return handle.blocking_join();
}

// Runs the place in a thread of its own.
template <class T>
std::expected<T, wait_error> end_of(run_loop& here, run_loop& there, join_handle<T>& handle) {
    thread runs{[&] { there.run(); }};
    auto result = block_on(here, [](auto& h) -> task<std::expected<T, wait_error>> {
        co_return co_await h.join();
    }(handle));
    there.finish();
    runs.join();
    return result;
}

// What was begun has completed, and what was not is stopped.
void expect_seven_if_begun(std::expected<std::expected<int, wait_state>, wait_error> const& r) {
    if (begun != 0) {
        RONDO_CHECK_EXPECT(r && *r && **r == 7);
    } else {
        RONDO_CHECK_EXPECT(!r && r.error() == wait_error::stopped);
    }
}

TEST(RemoteWaitModel, TheResultIsThereWhenTheTaskGoesOn) {
    for (ends when : {ends::at_once, ends::later}) {
        EXPECT_HOLDS(
            [when] {
                run_loop here, there;
                auto handle = spawn(here, read(there, when));
                auto const r = end_of(here, there, handle);
                RONDO_CHECK_EXPECT(r && *r && **r == 7);
            },
            1);
    }
}

// A task on it begins in one loop and goes on in another.
class two_loops final : public executor {
  public:
    two_loops(run_loop& first, run_loop& then) noexcept : first_(first), then_(then) {}
    void post(job& j) noexcept override { first_.post(j); }
    void wake(job& j) noexcept override { then_.post(j); }
    timer_service& timers() noexcept override { return first_.timers(); }

  private:
    run_loop& first_;
    run_loop& then_;
};

TEST(RemoteWaitModel, TheTaskMayGoOnWhileTheThreadThatSuspendedItIsStillOnItsWayOut) {
    EXPECT_HOLDS([] {
        run_loop here, there;
        two_loops both{here, there};
        auto handle = spawn(both, read(there, ends::at_once));
        thread begins{[&] { here.run_ready(); }};
        while (!handle.ended()) {
            there.run_ready();
            spin_pause();
        }
        begins.join();
        auto const r = handle.blocking_join();
        RONDO_CHECK_EXPECT(r && *r && **r == 7);
    });
}

TEST(RemoteWaitModel, AStopEndsWhatWouldNotEndByItself) {
    EXPECT_HOLDS([] {
        run_loop here, there;
        auto handle = spawn(here, read(there, ends::when_cancelled));
        thread stops{[&] { handle.request_stop(); }};
        auto const r = end_of_both(here, there, handle);
        stops.join();
        RONDO_CHECK_EXPECT(!r && r.error() == wait_error::stopped);
    });
}

TEST(RemoteWaitModel, AStopMeetsTheEndAndOneOfThemDecides) {
    EXPECT_HOLDS([] {
        run_loop here, there;
        auto handle = spawn(here, read(there, ends::at_once));
        thread stops{[&] { handle.request_stop(); }};
        auto const r = end_of_both(here, there, handle);
        stops.join();
        // Stopped before it was awaited, or complete: it ends as it is started.
        RONDO_CHECK_EXPECT(r ? *r && **r == 7 : r.error() == wait_error::stopped);
    });
}

TEST(RemoteWaitModel, AStopFromAThirdThreadMeetsTheEndAtThePlace) {
    EXPECT_HOLDS(
        [] {
            begun = 0;
            run_loop here, there;
            auto handle = spawn(here, read(there, ends::at_once));
            here.run_ready();
            thread stops{[&] { handle.request_stop(); }};
            auto const r = end_of(here, there, handle);
            stops.join();
            expect_seven_if_begun(r);
        },
        2);
}

TEST(RemoteWaitModel, AStopThatComesBeforeTheStartStartsNothing) {
    EXPECT_HOLDS([] {
        begun = 0;
        run_loop here, there;
        auto handle = spawn(here, read(there, ends::when_cancelled));
        here.run_ready();
        atomic<bool> asked{false};
        thread stops{[&] {
            handle.request_stop();
            asked.store(true);
        }};
        bool const before = asked.load();
        there.run_ready();
        RONDO_CHECK_EXPECT(!before || begun == 0);
        auto const r = end_of_both(here, there, handle);
        stops.join();
        RONDO_CHECK_EXPECT(!r && r.error() == wait_error::stopped);
    });
}

TEST(RemoteWaitModel, AnOperationThatIgnoresTheStopIsWaitedFor) {
    EXPECT_HOLDS([] {
        begun = 0;
        run_loop here, there;
        auto handle = spawn(here, read(there, ends::later));
        here.run_ready();
        thread stops{[&] { handle.request_stop(); }};
        auto const r = end_of_both(here, there, handle);
        stops.join();
        expect_seven_if_begun(r);
    });
}

TEST(RemoteWaitModel, ARequestThatGoesNowhereIsMadeInTheThreadThatAsks) {
    EXPECT_HOLDS(
        [] {
            begun = 0;
            run_loop here, there;
            auto handle = spawn(here, read(there, ends::at_once, requests::go_nowhere));
            here.run_ready();
            thread stops{[&] { handle.request_stop(); }};
            auto const r = end_of(here, there, handle);
            stops.join();
            expect_seven_if_begun(r);
        },
        2);
}

TEST(RemoteWaitModel, AStopThatCameBeforeTheAwaitStartsNothing) {
    EXPECT_HOLDS([] {
        run_loop here, there;
        auto handle = spawn(here, read(there, ends::at_once));
        handle.request_stop();
        here.run_ready();
        RONDO_CHECK_EXPECT(there.run_ready() == 0);
        auto const r = handle.blocking_join();
        RONDO_CHECK_EXPECT(!r && r.error() == wait_error::stopped);
    });
}

TEST(RemoteWaitModel, OfTwoWhoAskOneIsTheReason) {
    EXPECT_HOLDS(
        [] {
            run_loop here, there;
            stop_source token;
            auto handle = spawn(here, read(there, ends::when_cancelled, token.token()));
            here.run_ready();
            thread stops{[&] { handle.request_stop(); }};
            thread interrupts{[&] { token.request_stop(); }};
            auto const r = end_of_both(here, there, handle);
            stops.join();
            interrupts.join();
            RONDO_CHECK_EXPECT(r ? !*r && r->error() == wait_state::interrupted
                                 : r.error() == wait_error::stopped);
        },
        1);
}

}  // namespace
}  // namespace rondo
