// How many processors there are, by control groups that a test makes up.
#include "rondo/exec/processors.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>

#include "support/child_process.hpp"

namespace rondo {
namespace {

class Processors : public testing::Test {
  protected:
    void write(std::string const& file, std::string const& text) { scratch_.write(file, text); }

    test::scratch_directory scratch_;
    std::filesystem::path root_ = scratch_.path();
};

TEST_F(Processors, NoControlGroupIsNoLimit) { EXPECT_EQ(cgroup_processors(root_), std::nullopt); }

TEST_F(Processors, VersionTwoLimitsByQuotaAndPeriod) {
    write("proc/self/cgroup", "0::/pod/app\n");
    write("sys/fs/cgroup/pod/app/cpu.max", "150000 100000\n");
    EXPECT_EQ(cgroup_processors(root_), 1.5);
}

TEST_F(Processors, TheStrictestLevelCounts) {
    write("proc/self/cgroup", "0::/pod/app\n");
    write("sys/fs/cgroup/pod/cpu.max", "100000 100000\n");
    write("sys/fs/cgroup/pod/app/cpu.max", "400000 100000\n");
    EXPECT_EQ(cgroup_processors(root_), 1.0);
}

TEST_F(Processors, MaxIsNoLimit) {
    write("proc/self/cgroup", "0::/\n");
    write("sys/fs/cgroup/cpu.max", "max 100000\n");
    EXPECT_EQ(cgroup_processors(root_), std::nullopt);
}

TEST_F(Processors, VersionOneIsFoundByItsController) {
    write("proc/self/cgroup", "7:memory:/m\n4:cpu,cpuacct:/docker/x\n");
    write("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "200000\n");
    write("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(cgroup_processors(root_), 2.0);
}

TEST_F(Processors, AVersionOneQuotaOfMinusOneIsNoLimit) {
    write("proc/self/cgroup", "4:cpu:/\n");
    write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(cgroup_processors(root_), std::nullopt);
}

TEST_F(Processors, NonsenseIsNoLimit) {
    write("proc/self/cgroup", "0::/a\nwithout colons\n:\n");
    write("sys/fs/cgroup/a/cpu.max", "many few\n");
    EXPECT_EQ(cgroup_processors(root_), std::nullopt);
}

TEST(ProcessorsHere, AreAtLeastOneAndNotMoreThanTheMachineHas) {
    EXPECT_GE(processors(), 1U);
    EXPECT_LE(processors(), std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace rondo
