// A role as a process: how it ends when something goes wrong in it.
#include "shop/process.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "shop/child.hpp"
#include "support/child_process.hpp"

namespace rondo::shop {
namespace {

using namespace std::chrono_literals;

task<int> fails_itself(place, onlooker) {
    co_await yield();
    throw std::runtime_error{"out of spoons"};
}

task<void> fails() {
    co_await yield();
    throw std::runtime_error{"out of spoons"};
}
task<int> has_a_part_that_fails(place here, onlooker) {
    auto const part = spawn(*here.where, reporting(fails()));
    co_await sleep_for(1h);
    co_return 0;
}

class ShopProcessDeathTest : public testing::Test {
  protected:
    int run(std::function<task<int>(place, onlooker)> const& role) {
        process_options chosen;
        chosen.directory = in_.path().string();
        auto const log = std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::stderr_sink_mt>());
        return run_as_process(chosen, gateway_id, log, role);
    }

  private:
    rondo::test::scratch_directory in_;
};

TEST_F(ShopProcessDeathTest, EndsWhenItsRoleThrows) {
    EXPECT_EXIT(run(fails_itself), testing::ExitedWithCode(exit_unforeseen),
                "cannot go on: out of spoons");
}

TEST_F(ShopProcessDeathTest, EndsWhenAPartOfItsRoleThrows) {
    EXPECT_EXIT(run(has_a_part_that_fails), testing::ExitedWithCode(exit_unforeseen),
                "cannot go on: out of spoons");
}

TEST(ShopChild, OneThatGoesOnAlthoughItIsToEndIsKilled) {
    rondo::test::scratch_directory const in;
    std::string const deaf = "trap '' TERM; echo deaf; exec sleep 1000";
    child stays{"/bin/sh", {"sh", "-c", deaf}, (in.path() / "log").string()};
    stays.start();
    // real time: another process is waited for.
    while (stays.said().empty()) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(stays.end(SIGTERM, 100ms), 128 + SIGKILL);
    EXPECT_FALSE(stays.is_up());
    child willing{"/bin/sleep", {"sleep", "1000"}, (in.path() / "other").string()};
    willing.start();
    EXPECT_EQ(willing.end(SIGTERM), 128 + SIGTERM);
}

}  // namespace
}  // namespace rondo::shop
