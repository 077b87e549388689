// The program as it is run: configurations that are loaded while it runs, and its end as an
// operator asks for it.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "held_upstream.hpp"
#include "program.hpp"
#include "rondo/status.hpp"
#include "running.hpp"
#include "support/sanitized.hpp"

namespace rondo::gateway {
namespace {

using test::listens;
using test::scratch_directory;
using test::scripted_server;
using test::wire;

// An upstream that answers everything with its name.
class named_upstream {
  public:
    explicit named_upstream(std::string name)
        : server_([name = std::move(name)](wire& w) {
              while (!w.read_message().empty()) {
                  w.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + name);
              }
          }) {}
    std::string address() const { return server_.address(); }

  private:
    scripted_server server_;
};

// Whom requests go to, which of them wait for whom, how many connections there may be, whether
// there is a second address: each of it changes with another rhythm.
std::string configuration(int i, std::string const& upstream, std::string const& second) {
    constexpr std::array admission{
        "", "[admission]\nmax_in_flight = 1\n",
        "[admission]\nmax_in_flight = 4\nmax_in_flight_per_tenant = 2\ncost = 'measured'\n",
        "[admission]\nmax_in_flight = 2\n[tenants]\nkey = ['path:1']\n"
        "[[tenant]]\nname = '/'\nweight = 3\n"};
    std::string const more = i % 2 == 0 ? ", '" + second + "'" : "";
    return std::string{admission.at(static_cast<std::size_t>(i) % 4)} +
           "[[server]]\nlisten = ['127.0.0.1:0'" + more +
           "]\nmax_connections = " + (i % 3 == 0 ? "6" : "1000") + "\nforward = '" + upstream +
           "'\n";
}

// Twenty times, under clients that keep their connections and clients that come anew: each request
// is answered, by the old routes or the new ones.
TEST(Program, FailsNoRequestWhenItsConfigurationIsLoadedAgainUnderLoad) {
    named_upstream const one{"one"};
    named_upstream const two{"two"};
    scratch_directory in;
    std::uint16_t const second = free_port();
    std::string const second_address = "127.0.0.1:" + std::to_string(second);
    program p{in, configuration(1, one.address(), second_address)};
    std::atomic<bool> over{false};
    std::atomic<int> answered{0};
    std::atomic<int> failed{0};
    auto const load = [&](int requests_each) {
        while (!over) {
            try {
                wire w = wire::to(p.port());
                for (int i = 0; i < requests_each && !over; ++i) {
                    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
                    std::string const body = body_of(w.read_message());
                    (body == "one" || body == "two") ? ++answered : ++failed;
                }
            } catch (std::runtime_error const&) {
                ++failed;
            }
        }
    };
    std::vector<std::thread> clients;
    for (int c = 0; c < 8; ++c) clients.emplace_back(load, c % 2 == 0 ? 1'000'000 : 3);
    for (int i = 2; i <= 21; ++i) {
        int const before = answered;
        while (answered < before + 100) std::this_thread::yield();
        in.write("rondo.toml",
                 configuration(i, i % 5 < 2 ? two.address() : one.address(), second_address));
        p.process().signal(SIGHUP);
        (void)p.process().read_until("configuration " + std::to_string(i) + " is loaded");
        EXPECT_EQ(listens(second), i % 2 == 0) << i;
    }
    over = true;
    for (std::thread& c : clients) c.join();
    EXPECT_EQ(failed, 0);
    p.process().signal(SIGTERM);
    EXPECT_EQ(p.process().wait(), 0);
}

TEST(Program, KeepsItsConfigurationIfTheNewOneIsBadAndSaysSo) {
    named_upstream const one{"one"};
    scratch_directory in;
    std::string const admin = "[admin]\nlisten = '127.0.0.1:0'\n";
    program p{in, admin + forwarding_to(one.address())};
    std::string const file = (in.path() / "rondo.toml").string();
    std::string const at = p.admin();

    ended const fine = rondo({"reload", "-c", file, "--admin", at});
    EXPECT_EQ(fine.status, 0) << fine.said;
    EXPECT_EQ(fine.said, "configuration 2 is loaded\n");
    in.write("rondo.toml", admin + "[[server]]\nlisten = '127.0.0.1:0'\nforwrd = 'a:1'\n");
    std::string const why = file +
                            ":5:1: unknown key 'forwrd' in [[server]]; did you mean "
                            "'forward'?";
    ended const wrong = rondo({"reload", "-c", file, "--admin", at});
    EXPECT_EQ(wrong.status, 2);
    EXPECT_NE(wrong.said.find(why), std::string::npos) << wrong.said;
    EXPECT_EQ(curl({p.url("/")}).said, "one");
    p.process().signal(SIGHUP);
    (void)p.process().read_until("the configuration stays as it was");
    EXPECT_NE(p.process().said().find(why), std::string::npos);
    EXPECT_EQ(curl({p.url("/")}).said, "one");

    ended const drained = rondo({"drain", "-c", file, "--admin", at});
    EXPECT_EQ(drained.status, 0) << drained.said;
    EXPECT_TRUE(drained.said.starts_with("draining\n")) << drained.said;
    EXPECT_TRUE(drained.said.ends_with("stopped\n")) << drained.said;
    EXPECT_EQ(p.process().wait(), 0);
}

// Who drains one waits for its end: an answer that says nothing of it is not that.
TEST(Program, ThatDrainsAnotherDoesNotTakeABadAnswerForItsEnd) {
    scripted_server busy{[](wire& w) {
        bool const asked_to_drain = w.read_message().starts_with("POST /drain ");
        w.send(asked_to_drain
                   ? "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
                   : "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nbusy\n");
    }};
    ended const drained = rondo({"drain", "--admin", busy.address()});
    EXPECT_EQ(drained.status, 1);
    EXPECT_EQ(drained.said, "draining\nrondo: " + busy.address() + " answers 503: busy\n");
}

// As when a supervisor starts the next one as soon as one has ended.
TEST(Program, ThatDrainsAnotherDoesNotWaitForItsSuccessor) {
    std::atomic<bool> asked{false};
    scripted_server both{[&asked](wire& w) {
        bool const drains = w.read_message().starts_with("POST /drain ");
        status now;
        now.uptime_s = asked ? 0.5 : 1;  // neither has run for long
        now.connections = 5;
        if (drains) asked = true;
        std::string const body = drains ? "draining\n" : to_json(now);
        w.send("HTTP/1.1 " + std::string{drains ? "202 Accepted" : "200 OK"} +
               "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    }};
    ended const drained =
        run_to_end({"timeout", "20", RONDO_PROGRAM, "drain", "--admin", both.address()});
    EXPECT_EQ(drained.status, 0);
    EXPECT_EQ(drained.said, "draining\nstopped; another one runs there\n");
}

// As of a disk with a fault: the file is there, can be opened, and not be read.
TEST(Program, KeepsItsConfigurationIfItsFileCannotBeRead) {
    named_upstream const one{"one"};
    scratch_directory in;
    program p{in, forwarding_to(one.address())};
    std::filesystem::path const file = in.path() / "rondo.toml";
    std::filesystem::remove(file);
    std::filesystem::create_symlink("/proc/self/mem", file);
    p.process().signal(SIGHUP);
    (void)p.process().read_until("the configuration stays as it was");
    EXPECT_NE(p.process().said().find("cannot read it: Input/output error"), std::string::npos);
    EXPECT_EQ(curl({p.url("/")}).said, "one");
    p.process().signal(SIGTERM);
    EXPECT_EQ(p.process().wait(), 0) << p.process().said();
}

// A sanitizer takes more memory than there could be a limit of.
#ifndef RONDO_TEST_SANITIZED

TEST(Program, KeepsItsConfigurationIfThereIsNoMemoryForTheNewOne) {
    named_upstream const one{"one"};
    scratch_directory in;
    program p{in, forwarding_to(one.address())};
    pid_t const pid = p.process().pid();
    std::filesystem::resize_file(in.path() / "rondo.toml", std::uintmax_t{1} << 30U);  // of a hole
    rlim_t pages = 0;
    std::ifstream{"/proc/" + std::to_string(pid) + "/statm"} >> pages;
    rlimit usual{};
    ASSERT_EQ(::prlimit(pid, RLIMIT_AS, nullptr, &usual), 0);
    // Too little for such a file only: what else is to be done has enough.
    rlimit little = usual;
    little.rlim_cur = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{256} << 20U);
    ASSERT_EQ(::prlimit(pid, RLIMIT_AS, &little, nullptr), 0);
    p.process().signal(SIGHUP);
    (void)p.process().read_until("the configuration stays as it was");
    EXPECT_NE(p.process().said().find("cannot load it: std::bad_alloc"), std::string::npos)
        << p.process().said();
    ASSERT_EQ(::prlimit(pid, RLIMIT_AS, &usual, nullptr), 0);
    EXPECT_EQ(curl({p.url("/")}).said, "one");
    p.process().signal(SIGTERM);
    EXPECT_EQ(p.process().wait(), 0) << p.process().said();
}

#endif

// The second one comes to a gateway that drains already, and cuts nobody off.
TEST(Program, DrainsOnceHoweverOftenItIsAskedTo) {
    held_upstream up;
    scratch_directory in;
    program p{in, "[admin]\nlisten = '127.0.0.1:0'\n" + forwarding_to(up.address())};
    std::string const at = p.admin();
    wire w = wire::to(p.port());
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    up.await_request();
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(curl({"-X", "POST", "-H", "X-Rondo-Command: 1", at + "/drain"}).said,
                  "draining\n");
        (void)p.process().read_until("stopping");
    }
    up.let_go(1);
    EXPECT_TRUE(w.read_message().ends_with("ok"));
    EXPECT_EQ(p.process().wait(), 0) << p.process().said();
}

// As when an operator looks on while systemd ends it.
TEST(Program, IsNotCutShortByWhoAsksItToDrainAfterASignal) {
    held_upstream up;
    scratch_directory in;
    program p{in, "[admin]\nlisten = '127.0.0.1:0'\n" + forwarding_to(up.address())};
    std::string const at = p.admin();
    wire w = wire::to(p.port());
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    up.await_request();
    p.process().signal(SIGTERM);
    (void)p.process().read_until("stopping");
    EXPECT_EQ(curl({"-X", "POST", "-H", "X-Rondo-Command: 1", at + "/drain"}).said, "draining\n");
    up.let_go(1);
    EXPECT_TRUE(w.read_message().ends_with("ok"));
    EXPECT_EQ(p.process().wait(), 0) << p.process().said();
}

// It would hold who asks until the end, and then be cut off.
TEST(Program, RefusesAtOnceToLoadAConfigurationWhileItEnds) {
    held_upstream up;
    scratch_directory in;
    program p{in, "[admin]\nlisten = '127.0.0.1:0'\n" + forwarding_to(up.address())};
    std::string const at = p.admin();
    wire w = wire::to(p.port());
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    up.await_request();
    p.process().signal(SIGTERM);
    while (curl({at + "/readyz"}).said == "ready\n") {
    }
    ended const asked = rondo({"reload", "-c", (in.path() / "rondo.toml").string(), "--admin", at});
    EXPECT_EQ(asked.status, 2);
    EXPECT_TRUE(asked.said.ends_with(": the gateway ends\n")) << asked.said;
    up.let_go(1);
    EXPECT_TRUE(w.read_message().ends_with("ok"));
    EXPECT_EQ(p.process().wait(), 0) << p.process().said();
}

// As while names are looked up, or a file system does not answer: a FIFO that nobody writes.
TEST(Program, HearsThatItIsToEndWhileItLoadsAConfiguration) {
    for (bool const twice : {false, true}) {
        scratch_directory in;
        held_upstream up;
        program p{in, "[admin]\nlisten = '127.0.0.1:0'\n" + forwarding_to(up.address())};
        std::string const at = p.admin();
        wire held = wire::to(p.port());
        held.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        up.await_request();
        std::filesystem::path const file = in.path() / "rondo.toml";
        std::filesystem::remove(file);
        ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
        p.process().signal(SIGHUP);
        (void)p.process().read_until("loading");
        p.process().signal(SIGTERM);
        bool const ends = eventually([&] { return curl({at + "/readyz"}).said == "it ends\n"; });
        EXPECT_TRUE(ends);
        if (twice) p.process().signal(SIGTERM);
        up.let_go(1);
        if (!twice) std::ofstream{file} << "nothing";
        EXPECT_EQ(ends ? p.process().wait() : -1, twice ? 128 + SIGTERM : 0);
    }
}

// Nobody else would know that their answers are lost.
TEST(Program, SaysWhatItCutOffOfAServerThatIsGone) {
    held_upstream up;
    scratch_directory in;
    std::string const brief = "[gateway]\nshutdown_grace = '50ms'\n";
    std::string const gone =
        "[[server]]\nname = 'gone'\nlisten = '127.0.0.1:0'\nforward = '" + up.address() + "'\n";
    std::string const stays =
        "[[server]]\nname = 'stays'\nlisten = '127.0.0.2:0'\nforward = '" + up.address() + "'\n";
    program p{in, brief + gone + stays};
    wire w = wire::to(p.port());
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    up.await_request();
    in.write("rondo.toml", brief + stays);
    p.process().signal(SIGHUP);
    EXPECT_EQ(w.read_to_end(), "");
    (void)p.process().read_until("cut off");
    EXPECT_NE(p.process().said().find("server gone: the grace is over: 1 requests were cut off"),
              std::string::npos);
    p.process().signal(SIGTERM);
    EXPECT_EQ(p.process().wait(), 0);
}

// A gateway that an operator has drained, and that has a request left.
class drained_program {
  public:
    drained_program() {
        client_.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        up_.await_request();
        EXPECT_EQ(curl({"-X", "POST", "-H", "X-Rondo-Command: 1", admin_ + "/drain"}).said,
                  "draining\n");
        // Signals are not blocked any more when it is not ready.
        while (curl({admin_ + "/readyz"}).said == "ready\n") {
        }
    }
    bool runs() const { return curl({admin_ + "/healthz"}).said == "it runs\n"; }
    void signal(int number) { program_.process().signal(number); }
    std::string answer() {
        up_.let_go(1);
        return body_of(client_.read_message());
    }
    int wait() { return program_.process().wait(); }

  private:
    held_upstream up_;
    scratch_directory in_;
    program program_{in_, "[admin]\nlisten = '127.0.0.1:0'\n" + forwarding_to(up_.address())};
    std::string admin_ = program_.admin();
    wire client_ = wire::to(program_.port());
};

// As when systemd ends what an operator drains.
TEST(Program, IsNotCutShortByTheFirstSignalAfterADrain) {
    drained_program p;
    p.signal(SIGTERM);
    EXPECT_TRUE(p.runs());
    EXPECT_EQ(p.answer(), "ok");
    EXPECT_EQ(p.wait(), 0);
}

TEST(Program, IsCutShortByTheSecondSignalAfterADrain) {
    drained_program p;
    p.signal(SIGINT);
    while (p.runs()) p.signal(SIGTERM);  // two that come too fast are one
    EXPECT_EQ(p.wait(), 128 + SIGTERM);
}

TEST(Program, IsNotReadyWhileItDrains) {
    scripted_server up{[](wire& w) { (void)w.read_to_end(); }};
    scratch_directory in;
    program p{in, "[admin]\nlisten = '127.0.0.1:0'\n" + forwarding_to(up.address())};
    std::string const at = p.admin();
    wire w = wire::to(p.port());
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    while (up.accepted() == 0) std::this_thread::yield();
    EXPECT_EQ(curl({at + "/readyz"}).said, "ready\n");
    p.process().signal(SIGTERM);
    (void)p.process().read_until("stopping");
    std::string said = "ready\n";
    while (said == "ready\n") said = curl({at + "/readyz"}).said;
    EXPECT_EQ(said, "it ends\n");
    EXPECT_EQ(curl({at + "/healthz"}).said, "it runs\n");
    w.close();
    p.process().signal(SIGKILL);
}

}  // namespace
}  // namespace rondo::gateway
