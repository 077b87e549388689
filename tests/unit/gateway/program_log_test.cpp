// The access log of the program as it is run: where stdout goes to a file on a disk that fills up.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "program.hpp"
#include "running.hpp"

namespace rondo::gateway {
namespace {

using test::child_process;
using test::scratch_directory;

// A limit of the size of its files does what a full disk does: a line is written in part.
class Disk : public testing::Test {
  protected:
    void let_it_have(pid_t whom, std::size_t bytes) const {
        rlimit const most{.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
        ASSERT_EQ(::prlimit(whom, RLIMIT_FSIZE, &most, nullptr), 0);
    }
    std::vector<std::string> lines() const {
        std::ifstream file{log};
        std::vector<std::string> all;
        for (std::string line; std::getline(file, line);) all.push_back(line);
        return all;
    }

    scratch_directory in;
    std::filesystem::path log = in.path() / "access";
    std::uint16_t port = free_port();
};

TEST_F(Disk, ThatWasFullLeavesTheLinesAfterItWhole) {
    in.write("site/index.html", "x");
    auto const file =
        in.write("rondo.toml", "[gateway]\naccess_log = 'json'\n[[server]]\nlisten = '127.0.0.1:" +
                                   std::to_string(port) + "'\nserve = 'site'\n");
    child_process p{{"sh", "-c", "trap '' XFSZ; exec \"$0\" run -c \"$1\" >>\"$2\"", RONDO_PROGRAM,
                     file.string(), log.string()}};
    (void)p.read_until("listens at");
    let_it_have(p.pid(), 300);
    // A line is written before its connection is closed.
    auto const ask = [this](char const* target) {
        EXPECT_NE(running::ask_at(port, target, "Host: h\r\n"), "");
    };
    for (char const* const target : {"/1", "/2", "/3", "/4"}) ask(target);
    let_it_have(p.pid(), 100'000);
    for (char const* const target : {"/5", "/6"}) ask(target);
    p.signal(SIGTERM);
    EXPECT_EQ(p.wait(), 0) << p.said();
    std::vector<std::string> const all = lines();
    ASSERT_EQ(all.size(), 4U);  // the second one in part
    for (std::size_t const whole : {0U, 2U, 3U}) {
        EXPECT_TRUE(all[whole].starts_with("{\"time\":") && all[whole].ends_with("}"))
            << all[whole];
    }
    EXPECT_NE(all[3].find("\"/6\""), std::string::npos);
    // Nobody would look for what is not there.
    EXPECT_NE(p.said().find("the access log cannot be written: File too large"), std::string::npos)
        << p.said();
    EXPECT_NE(p.said().find("the access log is written again: 3 lines are lost"), std::string::npos)
        << p.said();
}

}  // namespace
}  // namespace rondo::gateway
