// A role as a process: how it ends when something goes wrong in it.
#include "shop/process.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>

#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
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

}  // namespace
}  // namespace rondo::shop
