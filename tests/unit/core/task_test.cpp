// task<T>: when it runs, what it carries, who destroys it; block_on.
#include "rondo/core/task.hpp"

#include <gtest/gtest.h>

#include <array>
#include <coroutine>
#include <cstdint>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "rondo/core/assert.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/environment.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using test::permits;

static_assert(!std::is_copy_constructible_v<task<int>> && !std::is_copy_assignable_v<task<int>>);
static_assert(std::is_nothrow_move_constructible_v<task<int>>);
static_assert(std::is_nothrow_move_assignable_v<task<int>>);
static_assert(!std::is_default_constructible_v<task<int>>, "a task always has something to run");

// Notes its construction and destruction in a list.
class noted {
  public:
    noted(std::vector<std::string>& log, std::string name) : log_(&log), name_(std::move(name)) {}
    noted(noted&& other) noexcept
        : log_(std::exchange(other.log_, nullptr)), name_(std::move(other.name_)) {}
    noted& operator=(noted&&) = delete;
    ~noted() {
        if (log_ != nullptr) log_->push_back("~" + name_);
    }

  private:
    std::vector<std::string>* log_;
    std::string name_;
};

using log = std::vector<std::string>;

task<int> answer() { co_return 42; }

task<int> run_noted(log& l, noted) {
    l.push_back("runs");
    co_return 1;
}

TEST(Task, RunsNothingBeforeItIsAwaited) {
    log l;
    auto const program = [](log& inner) -> task<void> {
        task<int> t = run_noted(inner, noted{inner, "parameter"});
        inner.push_back("made");
        (void)co_await std::move(t);
    };
    block_on(program(l));
    EXPECT_EQ(l, (log{"made", "runs", "~parameter"}));
}

TEST(Task, DestroyedUnstartedDestroysItsParametersAndRunsNothing) {
    log l;
    {
        auto const t = run_noted(l, noted{l, "parameter"});
    }
    EXPECT_EQ(l, log{"~parameter"});
}

TEST(Task, AssignmentDestroysTheTaskThatWasThere) {
    log l;
    task<int> t = run_noted(l, noted{l, "first"});
    t = run_noted(l, noted{l, "second"});
    EXPECT_EQ(l, log{"~first"});
    EXPECT_EQ(block_on(std::move(t)), 1);
    EXPECT_EQ(l, (log{"~first", "runs", "~second"}));
}

TEST(Task, AMovedTaskIsAwaitedByItsNewOwner) {
    task<int> a = answer();
    task<int> b = std::move(a);
    task<int> c = answer();
    c.swap(b);
    EXPECT_EQ(block_on(std::move(c)), 42);
}

TEST(Task, ReturnsWhatItsBodyReturns) {
    EXPECT_EQ(block_on(answer()), 42);
    auto const convert = []() -> task<std::string> { co_return "a literal"; };
    EXPECT_EQ(block_on(convert()), "a literal");
    auto const braces = []() -> task<std::pair<int, int>> { co_return {1, 2}; };
    EXPECT_EQ(block_on(braces()), std::pair(1, 2));
    static_assert(std::is_void_v<decltype(block_on(std::declval<task<void>>()))>);
}

TEST(Task, CarriesMoveOnlyResults) {
    auto const inner = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(7); };
    auto const outer = [](auto& make) -> task<std::unique_ptr<int>> {
        std::unique_ptr<int> p = co_await make();
        ++*p;
        co_return p;
    };
    EXPECT_EQ(*block_on(outer(inner)), 8);
}

TEST(Task, CarriesResultsWithoutDefaultConstructorOrAssignment) {
    struct fixed {
        explicit fixed(int v) : value(v) {}
        fixed(fixed&&) = default;
        fixed& operator=(fixed&&) = delete;
        int const value;
    };
    auto const make = []() -> task<fixed> { co_return fixed{9}; };
    EXPECT_EQ(block_on(make()).value, 9);
}

TEST(Task, CarriesReferencesToTheVeryObject) {
    std::string text = "here";
    auto const inner = [](std::string& s) -> task<std::string&> { co_return s; };
    auto const outer = [](auto& lookup, std::string& s) -> task<std::string const&> {
        std::string& found = co_await lookup(s);
        found += " and there";
        co_return found;
    };
    std::string const& found = block_on(outer(inner, text));
    EXPECT_EQ(&found, &text);
    EXPECT_EQ(text, "here and there");
}

TEST(Task, CarriesExceptionPointersAndMonostateAsPlainValues) {
    auto const pointer = []() -> task<std::exception_ptr> { co_return std::make_exception_ptr(1); };
    EXPECT_NE(block_on(pointer()), nullptr);
    auto const nothing = []() -> task<std::monostate> { co_return std::monostate{}; };
    EXPECT_EQ(block_on(nothing()), std::monostate{});
}

// The result is built in the awaiter: for block_on that is the stack, which the compiler aligns.
TEST(Task, AnOverAlignedResultIsAlignedOnTheStackOfBlockOn) {
    struct alignas(64) line {
        std::array<std::uint64_t, 8> words{};
        std::uintptr_t misalignment() const { return reinterpret_cast<std::uintptr_t>(this) % 64; }
    };
    auto const make = []() -> task<line> { co_return line{}; };
    line const result = block_on(make());
    EXPECT_EQ(result.misalignment(), 0U);
    EXPECT_EQ(result.words[7], 0U);
}

TEST(Task, AnExceptionGoesToWhoeverAwaitsAndPastTheLocalsOnTheWay) {
    log l;
    auto const inner = [](log& n) -> task<int> {
        noted const local{n, "inner"};
        throw std::runtime_error{"inner"};
        co_return 0;
    };
    auto const outer = [](auto& body, log& n) -> task<int> {
        noted const local{n, "outer"};
        try {
            co_return co_await body(n);
        } catch (std::runtime_error const& e) {
            n.push_back(std::string{"caught "} + e.what());
        }
        throw std::logic_error{"outer"};
    };
    EXPECT_THROW(block_on(outer(inner, l)), std::logic_error);
    EXPECT_EQ(l, (log{"~inner", "caught inner", "~outer"}));
}

TEST(Task, AResultWhoseConstructionThrowsIsAnException) {
    struct picky {
        explicit picky(int v) {
            if (v == 0) throw std::invalid_argument{"zero"};
        }
    };
    auto const make = [](int v) -> task<picky> { co_return picky{v}; };
    (void)block_on(make(1));
    EXPECT_THROW((void)block_on(make(0)), std::invalid_argument);
}

TEST(Task, AnAwaitedTaskIsDestroyedBeforeTheNextStatement) {
    log l;
    auto const program = [](log& n) -> task<void> {
        (void)co_await run_noted(n, noted{n, "parameter"});
        n.push_back("next");
    };
    block_on(program(l));
    EXPECT_EQ(l, (log{"runs", "~parameter", "next"}));
}

TEST(Task, InheritsTheEnvironmentOfWhoeverAwaitsIt) {
    auto const inner = []() -> task<environment const*> {
        environment const& env = co_await this_environment();
        co_return &env;
    };
    auto const outer = [](auto& ask, run_loop& expected) -> task<bool> {
        environment const& mine = co_await this_environment();
        environment const* const below = co_await ask();
        EXPECT_EQ(mine.where, &expected);
        EXPECT_EQ(&mine.timers(), &expected.timers());
        EXPECT_FALSE(mine.stop.stop_possible());
        co_return &mine == below;
    };
    run_loop loop;
    EXPECT_TRUE(block_on(loop, outer(inner, loop)));
}

// --- awaiting what is not ours ---------------------------------------------------------------

TEST(Task, AwaitsTheStandardsTrivialAwaitables) {
    auto const program = []() -> task<int> {
        co_await std::suspend_never{};
        co_return 3;
    };
    EXPECT_EQ(block_on(program()), 3);
}

// A thread on which one coroutine can go on.
class elsewhere {
  public:
    class awaiter {
      public:
        explicit awaiter(elsewhere& e) noexcept : elsewhere_(&e) {}
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> h) { elsewhere_->suspended_.set_value(h); }
        std::thread::id await_resume() const noexcept { return std::this_thread::get_id(); }

      private:
        elsewhere* elsewhere_;
    };

    elsewhere() : thread_([this] { suspended_.get_future().get().resume(); }) {}
    ~elsewhere() { thread_.join(); }

    awaiter go() noexcept { return awaiter{*this}; }

  private:
    std::promise<std::coroutine_handle<>> suspended_;
    std::thread thread_;
};

TEST(Task, AfterAForeignAwaitableTheNextSuspensionBringsItBackToItsExecutor) {
    elsewhere other;
    auto const program = [](elsewhere& foreign) -> task<bool> {
        auto const home = std::this_thread::get_id();
        auto const there = co_await foreign.go();
        EXPECT_NE(home, there);
        EXPECT_EQ(executor::current(), nullptr);
        co_await yield();
        EXPECT_EQ(std::this_thread::get_id(), home);
        EXPECT_NE(executor::current(), nullptr);
        co_return true;
    };
    EXPECT_TRUE(block_on(program(other)));
}

TEST(Task, MayEndOnTheThreadOfAForeignAwaitable) {
    elsewhere other;
    auto const program = [](elsewhere& foreign) -> task<std::thread::id> {
        co_return co_await foreign.go();
    };
    EXPECT_NE(block_on(program(other)), std::this_thread::get_id());
}

struct by_member {
    int value;
    auto operator co_await() const noexcept {
        struct awaiter {
            int result;
            bool await_ready() const noexcept { return true; }
            void await_suspend(std::coroutine_handle<>) const noexcept {}
            int await_resume() const noexcept { return result; }
        };
        return awaiter{value};
    }
};

struct by_free_function {
    int value;
};
auto operator co_await(by_free_function f) noexcept {
    return by_member{f.value}.operator co_await();
}

TEST(Task, AwaitsThroughAMemberOrFreeOperator) {
    auto const program = []() -> task<int> {
        by_member const member{20};
        by_free_function const free{22};
        int const a = co_await member;
        int const b = co_await free;
        co_return a + b;
    };
    EXPECT_EQ(block_on(program()), 42);
}

// --- block_on --------------------------------------------------------------------------------

TEST(BlockOn, RunsEverythingInTheCallingThread) {
    auto const program = []() -> task<std::thread::id> {
        co_await yield();
        co_return std::this_thread::get_id();
    };
    EXPECT_EQ(block_on(program()), std::this_thread::get_id());
}

TEST(BlockOn, WaitsForWhatAnotherThreadDoes) {
    permits p{0};
    std::thread releases{[&] { p.release(); }};
    auto const program = [](permits& q) -> task<int> {
        auto const got = co_await q.acquire();
        co_return 1;
    };
    EXPECT_EQ(block_on(program(p)), 1);
    releases.join();
}

TEST(BlockOn, CanUseOneLoopAgainAndAgain) {
    run_loop loop;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(block_on(loop, answer()), 42);
}

TEST(BlockOn, ReturnsWhenItsTaskHasEndedAlthoughAnotherIsAlwaysReady) {
    run_loop loop;
    auto busy = spawn(loop, []() -> task<void> {
        for (;;) co_await yield();
    }());
    EXPECT_EQ(block_on(loop, answer()), 42);
    EXPECT_FALSE(busy.ended());
    busy.request_stop();
    loop.run_ready();
    EXPECT_TRUE(busy.ended());
}

TEST(BlockOn, StopsTheTasksThatWereLeftRunningOnItsOwnLoop) {
    bool waiter_unwound = false, yielder_unwound = false;
    permits p{0};
    struct witness {
        explicit witness(bool& b) noexcept : told(b) {}
        ~witness() { told = true; }
        witness(witness const&) = delete;
        witness& operator=(witness const&) = delete;
        bool& told;
    };
    block_on([](permits& q, bool& a, bool& b) -> task<void> {
        environment const& env = co_await this_environment();
        spawn(*env.where,
              [](permits& r, bool& told) -> task<void> {
                  witness const here{told};
                  auto const never = co_await r.acquire();
              }(q, a))
            .detach();
        spawn(*env.where,
              [](bool& told) -> task<void> {
                  witness const here{told};
                  for (;;) co_await yield();
              }(b))
            .detach();
        co_await yield();
    }(p, waiter_unwound, yielder_unwound));
    EXPECT_TRUE(waiter_unwound);
    EXPECT_TRUE(yielder_unwound);
}

TEST(BlockOn, IsNotEndedByAFinishThatWasMeantForAnother) {
    run_loop loop;
    loop.finish();
    EXPECT_EQ(block_on(loop,
                       []() -> task<int> {
                           for (int i = 0; i < 3; ++i) co_await yield();
                           co_return 42;
                       }()),
              42);
}

TEST(TaskDeathTest, IsAwaitedOnce) {
    EXPECT_DEATH(block_on([]() -> task<void> {
                     task<int> t = answer();
                     (void)co_await std::move(t);
                     (void)co_await std::move(t);
                 }()),
                 "a task is awaited once");
}

TEST(BlockOnDeathTest, InsideAnExecutorIsAProgrammersError) {
    auto const program = []() -> task<int> { co_return block_on(answer()); };
    EXPECT_DEATH((void)block_on(program()), "block_on is for plain threads");
}

TEST(BlockOnDeathTest, AnAssertionSaysWhatWasPromisedAndWhere) {
    EXPECT_DEATH(RONDO_ASSERT(1 + 1 == 3, "sums are right"),
                 "sums are right.*1 \\+ 1 == 3.*task_test.cpp");
}

}  // namespace
}  // namespace rondo
