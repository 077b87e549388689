// `rondo top` as it is run: on terminals, in pipes, and asking whoever is there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program.hpp"
#include "rondo/status.hpp"

namespace rondo::gateway {
namespace {

using test::child_process;
using test::scripted_server;
using test::wire;

constexpr std::string_view stream_head =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

std::string status_text(std::uint64_t version) {
    status s;
    s.version = "1.2.3";
    s.config_version = version;
    s.servers.resize(9);
    return to_json(s);
}
std::string event(std::string_view name, std::string_view data) {
    return "event: " + std::string{name} + "\ndata: " + std::string{data} + "\n\n";
}
std::string history(std::uint64_t n) {
    std::string all;
    for (std::uint64_t i = 1; i <= n; ++i) all += (i > 1 ? "," : "") + status_text(i);
    return event("history", "[" + all + "]");
}
// Says this to who comes first, and closes; it is gone for whoever comes then.
scripted_server::script answering(std::string text) {
    auto const asked = std::make_shared<std::atomic<bool>>(false);
    return [text = std::move(text), asked](wire& w) {
        (void)w.read_head();
        if (!asked->exchange(true)) w.send(text);
    };
}

ended top(scripted_server const& at, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"top", "--admin", at.address()});
    return rondo(more);
}
std::size_t count(std::string_view text, std::string_view what) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string_view::npos; ++at) ++n;
    return n;
}

TEST(ProgramTop, ShowsWhatWasBeforeItBegan) {
    scripted_server const gateway{answering(std::string{stream_head} + history(3))};
    ended const e = top(gateway, {"--once"});
    EXPECT_EQ(e.status, 0) << e.said;
    EXPECT_NE(e.said.find("configuration 3"), std::string::npos) << e.said;
    EXPECT_NE(e.said.find("over 3 s"), std::string::npos) << e.said;
    EXPECT_EQ(count(e.said, "rondo 1.2.3"), 1U) << e.said;
}

TEST(ProgramTop, WaitsForTheFirstStatusOfAGatewayThatHasJustBegun) {
    scripted_server const gateway{answering(std::string{stream_head} + event("history", "[]") +
                                            event("status", status_text(7)))};
    ended const e = top(gateway, {"--once"});
    EXPECT_EQ(e.status, 0) << e.said;
    EXPECT_NE(e.said.find("configuration 7"), std::string::npos) << e.said;
}

TEST(ProgramTop, WritesPagesBelowEachOtherWhereThereIsNoTerminal) {
    scripted_server const gateway{answering(std::string{stream_head} + history(1) +
                                            event("status", status_text(2)) +
                                            event("status", status_text(3)))};
    ended const e = top(gateway);
    EXPECT_EQ(count(e.said, "\n\nrondo 1.2.3   running   configuration"), 2U) << e.said;
    EXPECT_NE(e.said.find("over 3 s"), std::string::npos) << e.said;
    EXPECT_EQ(e.said.find('\x1b'), std::string::npos) << e.said;
}

TEST(ProgramTop, EndsWithTheGateway) {
    std::atomic<int> connections{0};
    scripted_server const gateway{[&connections](wire& w) {
        (void)w.read_head();
        if (++connections == 1) w.send(std::string{stream_head} + history(1));
    }};
    EXPECT_EQ(top(gateway).status, 0);
    EXPECT_EQ(connections, 2);  // it looks whether it is gone
}

// As when whoever watches has stopped it for a while, by Ctrl-Z, and goes on. Real time: it is ten
// seconds until that is taken for no answer.
TEST(ProgramTop, AsksAgainWhenNothingHasComeForLong) {
    std::atomic<int> connections{0};
    scripted_server const gateway{[&connections](wire& w) {
        (void)w.read_head();
        int const which = ++connections;
        if (which < 3)
            w.send(std::string{stream_head} + history(static_cast<std::uint64_t>(which)));
        if (which == 1) (void)w.read_to_end();
    }};
    ended const e = top(gateway);
    EXPECT_EQ(e.status, 0) << e.said;
    EXPECT_NE(e.said.find("configuration 2"), std::string::npos) << e.said;
}

TEST(ProgramTop, SaysSoWhenItMayNotLookAnyMore) {
    std::atomic<int> connections{0};
    scripted_server const gateway{[&connections](wire& w) {
        (void)w.read_head();
        w.send(++connections == 1
                   ? std::string{stream_head} + history(1)
                   : "HTTP/1.1 401 Unauthorized\r\nContent-Length: 13\r\n\r\nUnauthorized\n");
    }};
    ended const e = top(gateway);
    EXPECT_EQ(e.status, 1);
    EXPECT_TRUE(e.said.ends_with("rondo: " + gateway.address() + " answers 401: Unauthorized\n"))
        << e.said;
}

TEST(ProgramTop, SaysSoWhenWhoIsThereIsNoGateway) {
    std::string const other = "rondo: the answer is not that of a gateway of this version\n";
    auto const said_about = [](std::string answer) {
        scripted_server const there{answering(std::move(answer))};
        ended const e = top(there);
        EXPECT_EQ(e.status, 1) << e.said;
        return e.said;
    };
    EXPECT_EQ(said_about(std::string{stream_head}), other);
    EXPECT_EQ(said_about("HTTP/1.1 204 No Content\r\n\r\n"), other);
    EXPECT_EQ(said_about(std::string{stream_head} + event("history", "[{}]")), other);
    EXPECT_EQ(said_about(std::string{stream_head} + event("status", "\x1b[2J")), other);
    EXPECT_TRUE(said_about("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    .ends_with(" answers 404\n"));
    EXPECT_TRUE(said_about("HTTP/1.1 500 Oops\r\nContent-Length: 9\r\n\r\n\x1b[2Jx\nyyy")
                    .ends_with(" answers 500: ?[2Jx\n"));
}

TEST(ProgramTop, SaysSoWhenItCannotWrite) {
    scripted_server const gateway{answering(std::string{stream_head} + history(1))};
    ended const e =
        run_to_end({"sh", "-c",
                    RONDO_PROGRAM " top --once --admin " + gateway.address() + " 2>&1 >/dev/full"});
    EXPECT_EQ(e.status, 1);
    EXPECT_TRUE(e.said.starts_with("rondo: cannot write")) << e.said;
}

// --- on terminals ------------------------------------------------------------------------------

class pseudo_terminal {
  public:
    pseudo_terminal(unsigned short columns, unsigned short rows)
        : fd_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
        winsize const size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
        char name[64];
        if (::grantpt(fd_) != 0 || ::unlockpt(fd_) != 0 || ::ioctl(fd_, TIOCSWINSZ, &size) != 0 ||
            ::ptsname_r(fd_, name, sizeof name) != 0) {
            throw std::runtime_error("no terminal");
        }
        name_ = name;
    }
    ~pseudo_terminal() { ::close(fd_); }
    pseudo_terminal(pseudo_terminal const&) = delete;
    pseudo_terminal& operator=(pseudo_terminal const&) = delete;

    // What a program shows that is run here until it ends.
    std::string run(std::string const& command) {
        // Somebody has it open to the end, or what was written would be lost with the last who had.
        int const kept = ::open(name_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
        child_process p{{"sh", "-c", command + " >" + name_}};
        EXPECT_EQ(p.wait(), 0) << p.said();
        EXPECT_EQ(::write(kept, "\x04", 1), 1);
        std::string all;
        char block[4096];
        while (!all.ends_with('\x04')) {
            ssize_t const n = ::read(fd_, block, sizeof block);
            if (n <= 0) break;
            all.append(block, static_cast<std::size_t>(n));
        }
        ::close(kept);
        return all;
    }

  private:
    int fd_;
    std::string name_;
};

std::string shown(std::string_view environment, std::string_view options = "") {
    scripted_server const gateway{answering(std::string{stream_head} + history(2))};
    pseudo_terminal t{60, 12};
    return t.run("env -u NO_COLOR " + std::string{environment} + " " RONDO_PROGRAM " top --admin " +
                 gateway.address() + " " + std::string{options});
}

TEST(ProgramTop, FillsATerminalAndNoMore) {
    std::string const text = shown("TERM=xterm LC_ALL=C.UTF-8");
    EXPECT_TRUE(text.starts_with("\x1b[2J\x1b[H")) << text;
    EXPECT_EQ(count(text, "\n"), 11U) << text;  // of 12, the last of which is for the cursor
    EXPECT_NE(text.find("\x1b[1m"), std::string::npos) << text;
}

TEST(ProgramTop, DoesWithoutWhatATerminalDoesNotHave) {
    std::string const mono = shown("TERM=xterm NO_COLOR=1");
    EXPECT_TRUE(mono.starts_with("\x1b[2J\x1b[H")) << mono;
    EXPECT_EQ(mono.find("\x1b[1m"), std::string::npos) << mono;
    std::string const dumb = shown("TERM=dumb");
    EXPECT_EQ(dumb.find('\x1b'), std::string::npos) << dumb;
    std::string const page = shown("TERM=xterm NO_COLOR=1", "--once");
    EXPECT_EQ(page.find('\x1b'), std::string::npos) << page;
    EXPECT_NE(page.find("server"), std::string::npos) << page;
}

}  // namespace
}  // namespace rondo::gateway
