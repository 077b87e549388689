// running_shop.hpp: a shop of real processes on the loopback, in a directory of its own.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shop/child.hpp"
#include "shop/finished_run.hpp"
#include "shop/members.hpp"
#include "shop_paths.hpp"
#include "support/child_process.hpp"
#include "support/sanitized.hpp"

namespace rondo::shop::test {

using namespace std::chrono_literals;

// The last ports of the places that were found last. No member has such a port; whoever looks for a
// place sees by it that this one is taken, although its members come later. No more than a test
// needs, so that one process can run all tests again and again.
class marked_places {
  public:
    ~marked_places() {
        for (int const m : marks_) ::close(m);
    }
    bool mark(std::uint16_t base) {
        int const m = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        at.sin_port = htons(static_cast<std::uint16_t>(base + screen_id(most_of_a_kind)));
        if (::bind(m, reinterpret_cast<sockaddr const*>(&at), sizeof at) != 0) {
            ::close(m);
            return false;
        }
        if (marks_.size() == 4) {
            ::close(marks_.front());
            marks_.pop_front();
        }
        marks_.push_back(m);
        return true;
    }

  private:
    std::deque<int> marks_;
};

inline std::uint16_t free_base_port(std::uint64_t from) {
    static marked_places places;
    for (;; ++from) {
        std::uint16_t const base = find_base_port(most_of_a_kind, most_of_a_kind, from).value();
        if (places.mark(base)) return base;
    }
}
// Tests that run at the same time look at different places first.
inline std::uint16_t free_base_port() {
    static auto next = static_cast<std::uint64_t>(::getpid());
    return free_base_port(next++);
}

inline bool until(std::function<bool()> const& so, std::chrono::milliseconds most = 60s) {
    auto const deadline = std::chrono::steady_clock::now() + most;
    while (!so()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        // real time: processes are watched from outside.
        std::this_thread::sleep_for(20ms);
    }
    return true;
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
    std::string farewell_ms = "2000";
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
                                   {"robot", std::to_string(r), list_of_members(r, size_.robots),
                                    "--scoop-ms", std::to_string(size_.scoop_ms)}));
        }
        for (std::uint32_t n = 0; n < size_.screens; ++n) {
            std::string const file = "orders" + std::to_string(n) + ".jsonl";
            (void)scratch_.write(file, orders(n));
            screens_.push_back(make("screen-" + std::to_string(n),
                                    {"screen", std::to_string(n), list_of_members(0, size_.screens),
                                     in(file), std::to_string(size_.robots), "--gone-after",
                                     size_.gone_after, "--farewell-ms", size_.farewell_ms}));
        }
    }

    void start() {
        gateway_->start();
        for (auto& r : robots_) r->start();
        for (auto& s : screens_) s->start();
    }

    child& gateway() { return *gateway_; }
    child& robot(std::uint32_t n) { return *robots_.at(n); }
    child& screen(std::uint32_t n) { return *screens_.at(n); }
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
    // Of all flavours, in grams.
    std::int64_t sold() const {
        std::int64_t sum = 0;
        for (flavour_level const& f : ledger().stock) sum += f.committed;
        return sum;
    }
    bool until_ended(std::int64_t orders) const {
        return until([&] { return ended() >= orders; });
    }
    bool until_said(child const& m, std::string const& text) const {
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
    std::unique_ptr<child> make(std::string const& name, std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "shop");
        for (std::string const& a :
             {std::string{"--state"}, directory(), std::string{"--base-port"},
              std::to_string(size_.base_port), std::string{"--log"}, std::string{"info"}}) {
            arguments.push_back(a);
        }
        if (size_.peers_port != 0) {
            arguments.emplace_back("--peers-port");
            arguments.push_back(std::to_string(size_.peers_port));
        }
        return std::make_unique<child>(SHOP_PROGRAM, std::move(arguments), in(name + ".log"));
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
    std::unique_ptr<child> gateway_;
    std::vector<std::unique_ptr<child>> robots_;
    std::vector<std::unique_ptr<child>> screens_;
};

}  // namespace rondo::shop::test
