// The program as it is run: its commands, its signals, with nginx behind it and curl in front.
#include "program.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "running.hpp"
#include "support/free_port.hpp"
#include "support/sanitized.hpp"

namespace rondo::gateway {
namespace {

namespace fs = std::filesystem;
using test::child_process;
using test::listens;
using test::scratch_directory;
using test::scripted_server;
using test::wire;

// nginx with a folder of its own, serving what is in its www.
class nginx {
  public:
    explicit nginx(scratch_directory const& in) : port_(free_port()) {
        std::string const p = in.path().string();
        fs::create_directories(in.path() / "www");
        std::ostringstream conf;
        conf << "daemon off; master_process off; error_log stderr; pid " << p << "/nginx.pid;\n"
             << "events {}\nhttp { access_log off;\n";
        for (char const* const kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
            conf << kind << "_temp_path " << p << "/" << kind << ";\n";
        }
        conf << "server { listen 127.0.0.1:" << port_ << "; root " << p << "/www;\n"
             << "location /echo { return 200 \"$request_method $request_uri $http_via "
                "$http_x_forwarded_for\\n\"; } } }\n";
        process_.emplace(std::vector<std::string>{"nginx", "-p", p, "-c",
                                                  in.write("nginx.conf", conf.str()).string()});
        (void)eventually([this] { return listens(port_); });
    }
    std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  private:
    std::uint16_t port_;
    std::optional<child_process> process_;
};

// --- commands ----------------------------------------------------------------------------------

TEST(Program, SaysItsVersion) {
    ended const e = rondo({"version"});
    EXPECT_EQ(e.status, 0);
    EXPECT_TRUE(e.said.starts_with("rondo ")) << e.said;
    ended const flag = rondo({"--version"});
    EXPECT_EQ(flag.status, 0);
    EXPECT_EQ(flag.said, e.said);
}

TEST(Program, ChecksAConfiguration) {
    scratch_directory in;
    in.write("site/index.html", "x");
    auto const file =
        in.write("good.toml", "[[server]]\nlisten = '127.0.0.1:8080'\nserve = 'site'\n").string();
    ended const e = rondo({"check", "-c", file});
    EXPECT_EQ(e.status, 0) << e.said;
    EXPECT_EQ(e.said, file + " is fine\n");
}

TEST(Program, ExplainsEachBrokenConfigurationAndDoesNotRunIt) {
    for (auto const& entry : fs::directory_iterator{BROKEN_CONFIGS}) {
        if (entry.path().extension() != ".toml") continue;
        std::string const file = entry.path().string();
        std::ifstream in{entry.path()};
        std::string expected;
        for (std::string line; std::getline(in, line);) {
            if (line.starts_with("# ")) expected += file + ":" + line.substr(2) + "\n";
        }
        for (std::size_t at = 0; (at = expected.find("'@/", at)) != std::string::npos;) {
            expected.replace(at + 1, 1, BROKEN_CONFIGS);
        }
        for (char const* const command : {"check", "run"}) {
            ended const e = rondo({command, "-c", file});
            EXPECT_EQ(e.status, 2) << command << ' ' << file;
            EXPECT_EQ(e.said, expected) << command;
        }
    }
}

TEST(Program, SaysWhatItCannotListenAt) {
    scripted_server const taken{[](wire&) {}};
    scratch_directory in;
    in.write("site/index.html", "x");
    auto const file = in.write("rondo.toml", "[[server]]\nlisten = ['127.0.0.1:0', '" +
                                                 taken.address() + "']\nserve = 'site'\n");
    ended const e = rondo({"run", "-c", file.string()});
    EXPECT_EQ(e.status, 1);
    EXPECT_NE(e.said.find("cannot listen at " + taken.address()), std::string::npos) << e.said;
}

TEST(Program, SaysWhatItCannotFind) {
    scratch_directory in;
    auto const file = in.write("rondo.toml",
                               "[[server]]\nlisten = '127.0.0.1:0'\n"
                               "forward = 'no-such-host.invalid:80'\n");
    ended const e = rondo({"check", "-c", file.string()});
    EXPECT_EQ(e.status, 2);
    EXPECT_NE(e.said.find(":3:11: cannot find 'no-such-host.invalid'"), std::string::npos)
        << e.said;
}

// --- with nginx and curl -----------------------------------------------------------------------

TEST(Program, StandsBetweenCurlAndNginx) {
    scratch_directory in;
    nginx const up{in};
    std::string const large(5'000'000, 'n');
    in.write("www/large", large);
    program p{in, forwarding_to(up.address())};

    EXPECT_EQ(curl({p.url("/echo?a=b")}).said, "GET /echo?a=b 1.1 rondo 127.0.0.1\n");
    EXPECT_EQ(curl({p.url("/large")}).said, large);
    EXPECT_EQ(curl({"-r", "100-199", p.url("/large")}).said, large.substr(0, 100));
    EXPECT_EQ(curl({"-d", "x=1", p.url("/echo")}).said, "POST /echo 1.1 rondo 127.0.0.1\n");
    EXPECT_NE(curl({"-I", p.url("/large")}).said.find("5000000"), std::string::npos);
    EXPECT_NE(curl({"-i", p.url("/none")}).said.find("404 Not Found"), std::string::npos);
    // Eight at a time, over connections that are used again.
    EXPECT_EQ(curl({"--stderr", "/dev/null", "--parallel", "--parallel-max", "8", "-o", "/dev/null",
                    "-w", "%{http_code}", p.url("/echo?[1-50]")})
                  .said.find_first_not_of("20"),
              std::string::npos);
}

TEST(Program, SpeaksTls) {
    scratch_directory in;
    in.write("site/index.html", "secure");
    auto const make = [&](std::string const& name) {
        std::string const at = (in.path() / name).string();
        ended const e = run_to_end({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                                    "/CN=" + name, "-addext", "subjectAltName=DNS:" + name,
                                    "-keyout", at + ".key", "-out", at + ".pem"});
        ASSERT_EQ(e.status, 0) << e.said;
    };
    make("a.test");
    make("b.test");
    program p{in,
              "[[server]]\nlisten = '127.0.0.1:0'\nserve = 'site'\ntls = [\n"
              "  { certificate = 'a.test.pem', key = 'a.test.key' },\n"
              "  { certificate = 'b.test.pem', key = 'b.test.key' },\n]\n"};
    auto const ask = [&](std::string const& name, std::vector<std::string> more) {
        std::string const at = name + ":" + std::to_string(p.port());
        more.insert(more.end(), {"--resolve", at + ":127.0.0.1", "https://" + at + "/"});
        return curl(std::move(more));
    };
    for (std::string const name : {"a.test", "b.test"}) {
        EXPECT_EQ(ask(name, {"--cacert", (in.path() / (name + ".pem")).string()}).said, "secure");
    }
    // Who asks for another name gets the first certificate, and may refuse it.
    EXPECT_EQ(ask("c.test", {"--cacert", (in.path() / "a.test.pem").string()}).status, 60);
    EXPECT_EQ(ask("c.test", {"--insecure"}).said, "secure");
    EXPECT_EQ(ask("a.test", {"--insecure", "--tls-max", "1.2"}).said, "secure");
    EXPECT_NE(ask("a.test", {"--insecure", "--tls-max", "1.1"}).status, 0);

    // The same behind a proxy that announces who asks.
    program behind{in,
                   "[[server]]\nlisten = '127.0.0.1:0'\nserve = 'site'\n"
                   "proxy_protocol = ['127.0.0.1']\n"
                   "tls = { certificate = 'a.test.pem', key = 'a.test.key' }\n"};
    std::string const url = "https://127.0.0.1:" + std::to_string(behind.port()) + "/";
    EXPECT_EQ(curl({"--insecure", "--haproxy-protocol", url}).said, "secure");
    EXPECT_NE(curl({"--insecure", url}).status, 0);
}

TEST(Program, SaysWhichCertificateIsNone) {
    scratch_directory in;
    in.write("site/index.html", "x");
    auto const file =
        in.write("rondo.toml",
                 "[[server]]\nlisten = '127.0.0.1:0'\nserve = 'site'\n"
                 "tls = { certificate = 'site/index.html', key = 'site/index.html' }\n");
    ended const e = rondo({"check", "-c", file.string()});
    EXPECT_EQ(e.status, 2);
    EXPECT_NE(e.said.find(":4:7: cannot use '"), std::string::npos) << e.said;
}

// --- the end -----------------------------------------------------------------------------------

TEST(Program, EndsByEitherSignal) {
    scratch_directory in;
    in.write("site/index.html", "x");
    for (int const signal : {SIGTERM, SIGINT}) {
        program p{in, "[[server]]\nlisten = '127.0.0.1:0'\nserve = 'site'\n"};
        wire idle = wire::to(p.port());
        p.process().signal(signal);
        EXPECT_EQ(p.process().wait(), 0);
        EXPECT_TRUE(idle.ended());
    }
}

// As a tool that rotates logs sends it to other servers. It is heard before the one that follows.
TEST(Program, DoesNotEndWhenItIsToReopenItsLogs) {
    scratch_directory in;
    in.write("site/index.html", "x");
    program p{in, "[[server]]\nlisten = '127.0.0.1:0'\nserve = 'site'\n"};
    p.process().signal(SIGUSR1);
    p.process().signal(SIGTERM);
    EXPECT_EQ(p.process().wait(), 0);
    EXPECT_NE(p.process().said().find("Terminated: stopping"), std::string::npos)
        << p.process().said();
}

TEST(Program, AnswersWhatItHasBegunToReadBeforeItEnds) {
    std::atomic<bool> go{false};
    scripted_server up{[&](wire& w) {
        w.read_message();
        go.wait(false);
        w.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
    }};
    scratch_directory in;
    program p{in, forwarding_to(up.address())};
    wire w = wire::to(p.port());
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    wire half = wire::to(p.port());
    half.send("GET / HT");
    while (up.accepted() == 0) std::this_thread::yield();
    p.process().signal(SIGTERM);
    (void)p.process().read_until("stopping");
    half.send("TP/1.1\r\nHost: h\r\n\r\n");
    go = true;
    go.notify_all();
    EXPECT_EQ(body_of(w.read_message()), "late");
    EXPECT_EQ(body_of(half.read_message()), "late");
    EXPECT_EQ(p.process().wait(), 0);
}

TEST(Program, RefusesWhoComesWhileItEnds) {
    std::atomic<bool> go{false};
    scripted_server up{[&](wire& w) {
        w.read_message();
        go.wait(false);
        w.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
    }};
    scratch_directory in;
    program p{in, forwarding_to(up.address(), "[gateway]\nshutdown_grace = '10m'\n")};
    wire w = wire::to(p.port());
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    while (up.accepted() == 0) std::this_thread::yield();
    p.process().signal(SIGTERM);
    (void)p.process().read_until("stopping");
    // Who comes while the queue is being emptied is accepted, and its connection closed.
    EXPECT_TRUE(eventually([&] { return !listens(p.port()); }));
    go = true;
    go.notify_all();
    EXPECT_EQ(body_of(w.read_message()), "late");
    EXPECT_EQ(p.process().wait(), 0);
}

TEST(Program, EndsWithItsGraceAndSaysWhatItCutOff) {
    scripted_server up{[](wire& w) { (void)w.read_to_end(); }};
    scratch_directory in;
    program p{in, forwarding_to(up.address(), "[gateway]\nshutdown_grace = '50ms'\n")};
    wire w = wire::to(p.port());
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    while (up.accepted() == 0) std::this_thread::yield();
    p.process().signal(SIGTERM);
    EXPECT_EQ(p.process().wait(), 0);
    EXPECT_NE(p.process().said().find("1 requests were cut off"), std::string::npos)
        << p.process().said();
}

TEST(Program, EndsAtOnceByASecondSignal) {
    scripted_server up{[](wire& w) { (void)w.read_to_end(); }};
    scratch_directory in;
    program p{in, forwarding_to(up.address(), "[gateway]\nshutdown_grace = '10m'\n")};
    wire w = wire::to(p.port());
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    while (up.accepted() == 0) std::this_thread::yield();
    p.process().signal(SIGTERM);
    (void)p.process().read_until("stopping");
    p.process().signal(SIGTERM);
    EXPECT_EQ(p.process().wait(), 128 + SIGTERM);
}

// Twenty times: what reached the upstream was read by us, and so its answer reaches the client.
TEST(Program, LosesNoRequestWhenItIsStoppedUnderLoad) {
    for (int round = 0; round < 20; ++round) {
        std::mutex lock;
        std::set<std::string> reached;
        std::set<std::string> answered;
        scripted_server up{[&](wire& w) {
            for (;;) {
                std::string const seen = w.read_message();
                if (seen.empty()) return;
                std::string const id = field_of(seen, "X-Id");
                {
                    std::lock_guard const guard{lock};
                    reached.insert(id);
                }
                w.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(id.size()) +
                       "\r\n\r\n" + id);
            }
        }};
        scratch_directory in;
        program p{in, forwarding_to(up.address())};
        std::atomic<int> done{0};
        auto const load = [&](int client) {
            try {
                for (int i = 0;; ++i) {
                    wire w = wire::to(p.port());
                    for (int k = 0; k < 20; ++k) {
                        std::string const id = std::to_string(client) + "-" + std::to_string(i) +
                                               "-" + std::to_string(k);
                        w.send("GET / HTTP/1.1\r\nHost: h\r\nX-Id: " + id + "\r\n\r\n");
                        std::string const answer = w.read_message();
                        if (answer.empty()) break;  // the connection ended before it was read
                        if (body_of(answer) == id) {
                            std::lock_guard const guard{lock};
                            answered.insert(id);
                        }
                        ++done;
                    }
                }
            } catch (std::runtime_error const&) {
            }  // it listens no more
        };
        std::vector<std::thread> clients;
        for (int c = 0; c < 8; ++c) clients.emplace_back(load, c);
        while (done < 200 + 37 * round) std::this_thread::yield();
        p.process().signal(SIGTERM);
        for (std::thread& c : clients) c.join();
        EXPECT_EQ(p.process().wait(), 0);
        EXPECT_EQ(reached, answered);
        EXPECT_GT(reached.size(), 100U);
    }
}

// --- to operate it -------------------------------------------------------------------------------

TEST(Program, SuggestsACommandForOneThatItDoesNotHave) {
    ended const e = rondo({"relod"});
    EXPECT_EQ(e.status, 2);
    EXPECT_EQ(e.said, "rondo: no command 'relod'; did you mean 'reload'?\n");
}

TEST(Program, EndsWithTwoForArgumentsThatItDoesNotKnow) {
    EXPECT_EQ(rondo({"run", "--port", "80"}).status, 2);
    EXPECT_EQ(rondo({"demo", "--turns", "perhaps"}).status, 2);
    EXPECT_EQ(rondo({}).status, 2);
    EXPECT_EQ(rondo({"--help"}).status, 0);
}

TEST(Program, SaysWhomItCannotAsk) {
    scratch_directory in;
    in.write("site/index.html", "x");
    std::string const server = "[[server]]\nlisten = '127.0.0.1:0'\nserve = 'site'\n";
    auto const file = in.write("rondo.toml", server).string();
    ended const nowhere = rondo({"reload", "-c", file});
    EXPECT_EQ(nowhere.status, 1);
    EXPECT_EQ(nowhere.said, "rondo: '" + file +
                                "' does not say where to ask (section [admin]); -c names another "
                                "file, --admin an address\n");
    std::string const none = file + ".none";
    ended const unread = rondo({"top", "-c", none});
    EXPECT_EQ(unread.status, 1);
    EXPECT_EQ(unread.said, "rondo: " + none +
                               ": cannot read it: No such file or directory; -c names another "
                               "file\n");
    auto const wrong_file = in.write("wrong.toml", "[admin]\nlisten = 'here'\n" + server).string();
    ended const section = rondo({"top", "-c", wrong_file});
    EXPECT_TRUE(section.said.starts_with("rondo: " + wrong_file + ":2:")) << section.said;
    std::string const gone = test::free_address();
    ended const nobody = rondo({"drain", "-c", file, "--admin", gone});
    EXPECT_EQ(nobody.status, 1);
    EXPECT_TRUE(nobody.said.starts_with("rondo: no answer from " + gone)) << nobody.said;
    ended const wrong = rondo({"reload", "-c", file, "--admin", "here"});
    EXPECT_EQ(wrong.said, "rondo: 'here' is not an address: it has no port\n");
}

// --- to look at ----------------------------------------------------------------------------------

TEST(Program, ShowsADemoThatCanBeWatched) {
    child_process demo{{RONDO_PROGRAM, "demo"}};
    std::string const said = demo.read_until("turns are on");
    std::string const before = std::string{RONDO_PROGRAM} + " top --admin ";
    std::size_t const at = said.find(before);
    ASSERT_NE(at, std::string::npos) << said;
    std::size_t const from = at + before.size();
    std::string const address = said.substr(from, said.find('\n', from) - from);
    std::string page;
    while (page.find("noisy ") == std::string::npos || page.find("amber ") == std::string::npos) {
        ended const e = rondo({"top", "--once", "--admin", address});
        ASSERT_EQ(e.status, 0) << e.said;
        page = e.said;
    }
    EXPECT_NE(page.find("of 16"), std::string::npos) << page;
    demo.signal(SIGINT);
    EXPECT_EQ(demo.wait(), 0) << demo.said();
}

// Its files are in a directory of its own. Without one it does not run, and least of all makes them
// where it was started.
TEST(Program, ShowsNoDemoWithoutATemporaryDirectory) {
    scratch_directory in;
    std::string const mine = "this is somebody's page";
    auto const page = in.write("site/index.html", mine);
    for (char const* const nowhere : {"TMPDIR=/proc", "TMPDIR=/no/such/directory"}) {
        ended const e = run_to_end(
            {"env", "-C", in.path().string(), nowhere, "timeout", "20", RONDO_PROGRAM, "demo"});
        EXPECT_EQ(e.status, 1) << e.said;
        EXPECT_TRUE(e.said.starts_with("rondo: the demo cannot start: ")) << e.said;
        std::ifstream now{page};
        std::string text;
        std::getline(now, text);
        EXPECT_EQ(text, mine);
    }
}

std::size_t resident_kib(pid_t pid) {
    std::ifstream in{"/proc/" + std::to_string(pid) + "/status"};
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
    }
    return 0;
}

TEST(Program, HoldsTenThousandIdleConnectionsInLittleMemory) {
    scratch_directory in;
    in.write("site/index.html", "x");
    // They are patient: on a busy machine it takes a while until the last one has its turn.
    program p{in,
              "[[server]]\nlisten = '127.0.0.1:0'\nserve = 'site'\nmax_connections = 12000\n"
              "timeouts = { header = '10m', idle = '10m' }\n"};
    [[maybe_unused]] std::size_t const before = resident_kib(p.process().pid());
    std::vector<wire> idle;
    idle.reserve(10'000);
    for (int i = 0; i < 10'000; ++i) idle.push_back(wire::to(p.port()));
    for (wire& w : idle) {
        ASSERT_TRUE(w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
        ASSERT_TRUE(w.read_message().ends_with("\r\n\r\nx"));
    }
#ifndef RONDO_TEST_SANITIZED  // what a sanitizer adds to memory is not ours
    EXPECT_LT(resident_kib(p.process().pid()) - before, 10'000U * 24);
#endif
    wire one_more = wire::to(p.port());
    one_more.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_TRUE(one_more.read_message().ends_with("\r\n\r\nx"));
    p.process().signal(SIGTERM);
    EXPECT_EQ(p.process().wait(), 0);
}

}  // namespace
}  // namespace rondo::gateway
