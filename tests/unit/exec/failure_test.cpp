// A job that throws costs nobody a worker.
#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>

#include "gate.hpp"
#include "rondo/exec/thread_pool.hpp"

namespace rondo {
namespace {

using test::countdown;
using test::gate;

std::string what(std::exception_ptr const& e) {
    try {
        std::rethrow_exception(e);
    } catch (std::exception const& ex) {
        return ex.what();
    } catch (...) {
        return "unknown";
    }
}

TEST(ThreadPoolFailure, TheHookGetsTheExceptionAndTheWorkerGoesOn) {
    std::string said;  // plain: one worker
    std::uint64_t failed = 0;
    {
        thread_pool pool{{.workers = 1, .on_failure = [&](auto const& e) { said += what(e); }}};
        ASSERT_TRUE(pool.try_execute([] { throw std::runtime_error{"burnt"}; }));
        ASSERT_TRUE(pool.try_execute([] { throw 7; }));
        gate done;
        ASSERT_TRUE(pool.try_execute([&] { done.open(); }));
        done.wait();
        failed = pool.count().failed;
        EXPECT_EQ(pool.count().run, 3U);
    }
    EXPECT_EQ(said, "burntunknown");
    EXPECT_EQ(failed, 2U);
}

TEST(ThreadPoolFailure, AHookThatThrowsCostsNoWorkerEither) {
    gate done;
    thread_pool pool{
        {.workers = 1, .on_failure = [](auto const& e) { std::rethrow_exception(e); }}};
    ASSERT_TRUE(pool.try_execute([] { throw std::runtime_error{"burnt"}; }));
    ASSERT_TRUE(pool.try_execute([&] { done.open(); }));
    done.wait();
    EXPECT_EQ(pool.count().failed, 1U);
}

TEST(ThreadPoolFailure, WithoutAHookItIsPrinted) {
    testing::internal::CaptureStderr();
    {
        thread_pool pool{{.workers = 1}};
        ASSERT_TRUE(pool.try_execute([] { throw std::runtime_error{"burnt"}; }));
    }
    EXPECT_NE(testing::internal::GetCapturedStderr().find("burnt"), std::string::npos);
}

TEST(ThreadPoolFailure, EveryWorkerSurvivesManyFailures) {
    std::atomic<int> hooked{0};
    countdown thrown{1000};
    countdown all_there{4};  // needs all four workers
    thread_pool pool{{.workers = 4, .on_failure = [&](auto const&) { ++hooked; }}};
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(pool.try_execute([&] {
            thrown.count();
            throw std::runtime_error{"burnt"};
        }));
    }
    thrown.wait();
    for (int i = 0; i < 4; ++i) {
        ASSERT_TRUE(pool.try_execute([&] {
            all_there.count();
            all_there.wait();
        }));
    }
    all_there.wait();
    EXPECT_EQ(pool.count().failed, 1000U);
    EXPECT_EQ(hooked, 1000);
}

}  // namespace
}  // namespace rondo
