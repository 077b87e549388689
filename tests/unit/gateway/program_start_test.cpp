// The program as it is started: by shells and supervisors that leave it little, or nothing at all.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "program.hpp"
#include "running.hpp"
#include "support/sanitized.hpp"

namespace rondo::gateway {
namespace {

namespace fs = std::filesystem;
using test::child_process;
using test::scratch_directory;
using test::scripted_server;
using test::wire;

// By a shell, after what is said there.
std::vector<std::string> started_by(std::string const& shell, std::vector<std::string> arguments) {
    std::vector<std::string> all{"sh", "-c", shell + "; exec \"$0\" \"$@\"", RONDO_PROGRAM};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
}

// What is not open would be given to the next socket, and what is logged be written to a client.
TEST(Program, WritesToNoConnectionIfItHasNoStandardStreams) {
    scratch_directory in;
    in.write("site/index.html", "x");
    std::uint16_t const port = free_port();
    auto const file =
        in.write("rondo.toml", "[gateway]\naccess_log = 'json'\n[[server]]\nlisten = '127.0.0.1:" +
                                   std::to_string(port) + "'\nserve = 'site'\n");
    child_process p{started_by("exec <&- >&- 2>&-", {"run", "-c", file.string()})};
    ASSERT_TRUE(eventually([&] { return test::listens(port); }));
    fs::path const open = "/proc/" + std::to_string(p.pid()) + "/fd";
    for (char const* const standard : {"0", "1", "2"}) {
        EXPECT_EQ(fs::read_symlink(open / standard), "/dev/null") << standard;
    }
    p.signal(SIGTERM);
    EXPECT_EQ(p.wait(), 0);
}

// A sanitizer needs some of its own.
#ifndef RONDO_TEST_SANITIZED

TEST(Program, SaysWhyItCannotStartWithoutDescriptors) {
    scratch_directory in;
    in.write("site/index.html", "x");
    std::string const file = in.write("rondo.toml",
                                      "[admin]\nlisten = '127.0.0.1:0'\n"
                                      "[[server]]\nlisten = '127.0.0.1:0'\nserve = 'site'\n")
                                 .string();
    std::string const gone = test::free_address();
    constexpr int not_loaded = 127;  // by the system, which needs one for each library; whoever
                                     // runs the tests may have left others open
    int tried = 0;
    int refused = 0;
    for (int limited_to = 4; tried < 8 && limited_to < 1024; ++limited_to) {
        std::string const limit = "ulimit -n " + std::to_string(limited_to);
        if (run_to_end(started_by(limit, {"--version"})).status == not_loaded) continue;
        ++tried;
        for (std::vector<std::string> const& command :
             {std::vector<std::string>{"check", "-c", file},
              {"reload", "-c", file, "--admin", gone}}) {
            ended const e = run_to_end(started_by(limit, command));
            EXPECT_LE(e.status, 2) << limit << ' ' << command[0] << ": " << e.said;
        }
        child_process run{started_by(limit, {"run", "-c", file})};
        std::string const said = run.read_until("operators look at");
        run.signal(SIGTERM);
        int const status = run.wait();
        if (said.find("operators look at") == std::string::npos) {
            EXPECT_EQ(status, 1) << limit << ": " << said;
            EXPECT_NE(said.find("Too many open files"), std::string::npos) << said;
            ++refused;
        }
    }
    EXPECT_GT(refused, 0);
}

#endif

// Shells give a program few, which it may raise; idle clients would take them from everybody else.
TEST(Program, OpensAsManyFilesAsItMay) {
    scripted_server up{[](wire& w) {
        while (!w.read_message().empty()) w.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }};
    scratch_directory in;
    auto const file = in.write("rondo.toml", forwarding_to(up.address()));
    child_process p{started_by("ulimit -S -n 40", {"run", "-c", file.string()})};
    std::string const listens = "listens at 127.0.0.1:";
    std::string said = p.read_until(listens);
    std::size_t const at = said.find(listens);
    ASSERT_NE(at, std::string::npos) << said;
    while (said.find('\n', at) == std::string::npos) said = p.read_until("\n\n");
    auto const port = static_cast<std::uint16_t>(std::stoi(said.substr(at + listens.size())));
    rlimit given{};
    ASSERT_EQ(::prlimit(p.pid(), RLIMIT_NOFILE, nullptr, &given), 0);
    EXPECT_EQ(given.rlim_cur, given.rlim_max);
    std::vector<wire> idle;
    for (int i = 0; i < 60; ++i) idle.push_back(wire::to(port));
    wire w = wire::to(port);
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(status_of(w.read_message()), "200");
    p.signal(SIGTERM);
    (void)p.wait();
}

// What keeps it from starting is no message of a program that runs.
TEST(Program, SaysWhyItCannotStartThoughNothingIsLogged) {
    scripted_server const taken{[](wire&) {}};
    scratch_directory in;
    in.write("site/index.html", "x");
    auto const file = in.write("rondo.toml", "[gateway]\nlog = 'off'\n[[server]]\nlisten = '" +
                                                 taken.address() + "'\nserve = 'site'\n");
    ended const e = rondo({"run", "-c", file.string()});
    EXPECT_EQ(e.status, 1);
    EXPECT_NE(e.said.find("cannot listen at " + taken.address()), std::string::npos) << e.said;
}

TEST(Program, EndsWithTwoForAnAddressThatIsNone) {
    for (char const* const command : {"reload", "drain", "top"}) {
        EXPECT_EQ(rondo({command, "--admin", "here"}).status, 2) << command;
    }
}

// As when its terminal is closed.
TEST(Program, LeavesNoFilesOfADemoThatLosesItsTerminal) {
    scratch_directory in;
    child_process demo{{"env", "TMPDIR=" + in.path().string(), RONDO_PROGRAM, "demo"}};
    (void)demo.read_until("turns are on");
    EXPECT_FALSE(fs::is_empty(in.path()));
    demo.signal(SIGHUP);
    EXPECT_EQ(demo.wait(), 0) << demo.said();
    EXPECT_TRUE(fs::is_empty(in.path()));
}

}  // namespace
}  // namespace rondo::gateway
