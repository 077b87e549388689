// running_shop.hpp: a shop of real processes on the loopback, in a directory of its own.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shop/finished_run.hpp"
#include "shop/members.hpp"
#include "shop_paths.hpp"
#include "support/child_process.hpp"
#include "support/sanitized.hpp"

namespace rondo::shop::test {

using namespace std::chrono_literals;

// A process that dies with the test, and writes into a file.
class member {
  public:
    member(std::vector<std::string> command, std::string log)
        : command_(std::move(command)), log_(std::move(log)) {}
    member(member const&) = delete;
    member& operator=(member const&) = delete;
    ~member() { end(SIGKILL); }

    void start() {
        std::vector<char*> arguments;
        for (std::string const& a : command_) arguments.push_back(const_cast<char*>(a.c_str()));
        arguments.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        int const out = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        ::dup2(out, 1);
        ::dup2(out, 2);
        ::execv(arguments[0], arguments.data());
        ::_exit(127);
    }
    // Its exit status; 128 and more for a signal. -1: it did not run.
    int end(int signal) {
        if (pid_ <= 0) return -1;
        ::kill(pid_, signal);
        return wait();
    }
    int wait() {
        int status = 0;
        ::waitpid(std::exchange(pid_, -1), &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    void kill() { end(SIGKILL); }
    void pause() const { ::kill(pid_, SIGSTOP); }
    void resume() const { ::kill(pid_, SIGCONT); }
    // Whether it has ended by now.
    bool has_ended() {
        int status = 0;
        if (pid_ <= 0) return true;
        if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
        pid_ = -1;
        status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        return true;
    }
    int status() const noexcept { return status_; }
    std::string said() const {
        std::ostringstream all;
        all << std::ifstream{log_}.rdbuf();
        return all.str();
    }

  private:
    std::vector<std::string> command_;
    std::string log_;
    pid_t pid_ = -1;
    int status_ = -1;
};

inline bool is_free(std::uint16_t port) {
    int const s = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(port);
    bool const bound = ::bind(s, reinterpret_cast<sockaddr const*>(&at), sizeof at) == 0;
    ::close(s);
    return bound;
}

// The first of 130 ports that are free; other tests that run now look elsewhere.
inline std::uint16_t free_base_port() {
    static unsigned next = static_cast<unsigned>(::getpid());
    for (int tries = 0; tries < 200; ++tries) {
        auto const base = static_cast<std::uint16_t>(10000 + next++ % 170 * 130);
        bool all = true;
        for (std::uint16_t p = 0; p < 130 && all; ++p) {
            all = is_free(static_cast<std::uint16_t>(base + p));
        }
        if (all) return base;
    }
    throw std::runtime_error("no ports are free");
}

struct shop_size {
    std::uint32_t robots = 1;
    std::uint32_t screens = 1;
    std::uint32_t orders = 10;  // of each screen
    std::uint32_t scoop_ms = 0;
    std::uint32_t capacity = 100'000;
    std::uint16_t peers_port = 0;
    std::uint16_t base_port = 0;
    std::string gone_after = "10";  // seconds
};

class running_shop {
  public:
    explicit running_shop(shop_size s) : size_(std::move(s)) {
        if (size_.base_port == 0) size_.base_port = free_base_port();
        std::ostringstream stock;
        for (char const* const f : {"lemon", "mint"}) {
            stock << "[flavour." << f << "]\ncapacity = " << size_.capacity << "\nprice = 10\n";
        }
        (void)scratch_.write("stock.toml", stock.str());
        gateway_ = make("gateway", {"gateway", "--stock", in("stock.toml")});
        for (std::uint32_t r = 0; r < size_.robots; ++r) {
            robots_.push_back(make("robot-" + std::to_string(r),
                                   {"robot", std::to_string(r), list(r, size_.robots), "--scoop-ms",
                                    std::to_string(size_.scoop_ms)}));
        }
        for (std::uint32_t n = 0; n < size_.screens; ++n) {
            std::string const file = "orders" + std::to_string(n) + ".jsonl";
            (void)scratch_.write(file, orders(n));
            screens_.push_back(
                make("screen-" + std::to_string(n),
                     {"screen", std::to_string(n), list(0, size_.screens), in(file),
                      std::to_string(size_.robots), "--gone-after", size_.gone_after}));
        }
    }

    void start() {
        gateway_->start();
        for (auto& r : robots_) r->start();
        for (auto& s : screens_) s->start();
    }

    member& gateway() { return *gateway_; }
    member& robot(std::uint32_t n) { return *robots_.at(n); }
    member& screen(std::uint32_t n) { return *screens_.at(n); }
    std::string directory() const { return scratch_.path().string(); }
    std::string in(std::string const& name) const { return directory() + "/" + name; }
    std::uint16_t base_port() const noexcept { return size_.base_port; }

    ledger_summary ledger() const {
        auto const seen = summarise(directory());
        return seen ? *seen : ledger_summary{};
    }
    std::int64_t ended() const {
        ledger_summary const s = ledger();
        return s.delivered + s.aborted + s.refunded;
    }
    bool until(std::function<bool()> const& so, std::chrono::milliseconds most = 60s) const {
        auto const deadline = std::chrono::steady_clock::now() + most;
        while (!so()) {
            if (std::chrono::steady_clock::now() > deadline) return false;
            // real time: processes are watched from outside.
            std::this_thread::sleep_for(20ms);
        }
        return true;
    }
    bool until_ended(std::int64_t orders) const {
        return until([&] { return ended() >= orders; });
    }
    bool until_said(member const& m, std::string const& text) const {
        return until([&] { return m.said().find(text) != std::string::npos; });
    }

    // Every screen ends by itself, every order has ended, and the files agree.
    void expect_good_end(std::chrono::milliseconds most = 60s) {
        bool const all = until(
            [&] {
                bool over = true;
                for (auto& s : screens_) over &= s->has_ended();
                return over;
            },
            most);
        EXPECT_TRUE(all) << dump();
        EXPECT_EQ(ended(), std::int64_t{size_.screens} * size_.orders) << dump();
        expect_files_agree();
    }
    void expect_files_agree() const {
        auto const checks = verify(directory());
        ASSERT_TRUE(checks) << checks.error();
        EXPECT_FALSE(checks->empty());
        for (invariant_check const& c : *checks) {
            for (std::string const& v : c.violations) ADD_FAILURE() << c.name << ": " << v;
        }
    }
    std::string dump() const {
        std::string all = "\n--- gateway\n" + tail(gateway_->said());
        for (auto const& r : robots_) all += "--- robot\n" + tail(r->said());
        for (auto const& s : screens_) all += "--- screen\n" + tail(s->said());
        return all;
    }

  private:
    static std::string tail(std::string const& text) {
        return text.size() < 2500 ? text : text.substr(text.size() - 2500);
    }
    std::unique_ptr<member> make(std::string const& name, std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), SHOP_PROGRAM);
        for (std::string const& a :
             {std::string{"--state"}, directory(), std::string{"--base-port"},
              std::to_string(size_.base_port), std::string{"--log"}, std::string{"info"}}) {
            arguments.push_back(a);
        }
        if (size_.peers_port != 0) {
            arguments.emplace_back("--peers-port");
            arguments.push_back(std::to_string(size_.peers_port));
        }
        return std::make_unique<member>(std::move(arguments), in(name + ".log"));
    }
    static std::string list(std::uint32_t from, std::uint32_t count) {
        std::string text;
        for (std::uint32_t i = 0; i < count; ++i) {
            text += (i == 0 ? "" : ":") + std::to_string((from + i) % count);
        }
        return text;
    }
    std::string orders(std::uint32_t screen) const {
        std::ostringstream text;
        for (std::uint32_t i = 1; i <= size_.orders; ++i) {
            text << R"({"id": ")" << screen << "." << i << R"(", "card": "4242", "items": [)"
                 << R"({"flavour": ")" << (i % 2 == 0 ? "lemon" : "mint") << R"(", "grams": 100})";
            if (i % 3 == 0) text << R"(, {"flavour": "lemon", "grams": 50})";
            text << "]}\n";
        }
        return text.str();
    }

    shop_size size_;
    rondo::test::scratch_directory scratch_;
    std::unique_ptr<member> gateway_;
    std::vector<std::unique_ptr<member>> robots_;
    std::vector<std::unique_ptr<member>> screens_;
};

}  // namespace rondo::shop::test
