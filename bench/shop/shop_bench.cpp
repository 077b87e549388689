// shop_bench: a whole shop on the loopback. How long it takes until another screen leads when the
// leader was killed, each time of many; and how many orders go through, and what that waits for.
//
//   shop_bench [recovery | throughput] [times or orders of a screen]
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "shop/child.hpp"
#include "shop/finished_run.hpp"
#include "shop_paths.hpp"

namespace {

using namespace std::chrono_literals;
using namespace rondo::shop;
using instant = std::chrono::steady_clock::time_point;

instant now() { return std::chrono::steady_clock::now(); }

class shop {
  public:
    shop(std::uint32_t robots, std::uint32_t screens, std::uint32_t orders,
         std::string const& scoop_ms)
        : port_(find_base_port(robots, screens, static_cast<std::uint64_t>(::getpid())).value()) {
        std::string name = (std::filesystem::temp_directory_path() / "shop-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        directory_ = name;
        std::ofstream{in("stock.toml")} << "[flavour.lemon]\ncapacity = 900000000\nprice = 1\n"
                                        << "[flavour.mint]\ncapacity = 900000000\nprice = 1\n";
        add({"gateway", "--stock", in("stock.toml")}, "gateway");
        for (std::uint32_t r = 0; r < robots; ++r) {
            add({"robot", std::to_string(r), list_of_members(r, robots), "--scoop-ms", scoop_ms},
                "robot-" + std::to_string(r));
        }
        for (std::uint32_t s = 0; s < screens; ++s) {
            std::string const number = std::to_string(s);
            std::string const file = in("orders" + number);
            std::ofstream out{file};
            for (std::uint32_t i = 0; i < orders; ++i) {
                out << R"({"id": "x", "card": "1", "items": [{"flavour": ")"
                    << (i % 2 == 0 ? "lemon" : "mint") << R"(", "grams": 100}]})" << "\n";
            }
            first_screen_ = std::min(first_screen_, members_.size());
            add({"screen", number, list_of_members(0, screens), file, std::to_string(robots)},
                "screen-" + number);
        }
        for (auto& m : members_) m->start();
    }
    shop(shop const&) = delete;
    shop& operator=(shop const&) = delete;
    ~shop() {
        members_.clear();
        std::error_code ignored;
        std::filesystem::remove_all(directory_, ignored);
    }

    std::string const& directory() const noexcept { return directory_; }
    child& screen(std::size_t n) { return *members_[first_screen_ + n]; }
    bool screens_done() {
        bool all = true;
        for (std::size_t i = first_screen_; i < members_.size(); ++i) {
            all = members_[i]->has_ended() && members_[i]->status() == EXIT_SUCCESS && all;
        }
        return all;
    }

  private:
    std::string in(std::string const& name) const { return directory_ + "/" + name; }
    void add(std::vector<std::string> arguments, std::string const& name) {
        arguments.insert(arguments.begin(), "shop");
        for (std::string const& a :
             {std::string{"--state"}, directory_, std::string{"--base-port"}, std::to_string(port_),
              std::string{"--log"}, std::string{"info"}}) {
            arguments.push_back(a);
        }
        members_.push_back(std::make_unique<child>(SHOP_PROGRAM, std::move(arguments), in(name)));
    }

    std::uint16_t port_;
    std::string directory_;
    std::size_t first_screen_ = ~std::size_t{0};
    std::vector<std::unique_ptr<child>> members_;
};

bool wait_until(std::function<bool()> const& so) {
    instant const deadline = now() + 30s;
    while (!so()) {
        if (now() > deadline) return false;
        std::this_thread::sleep_for(2ms);
    }
    return true;
}

// How often a screen has recognised a robot as leader: then it leads, and robots follow it.
std::size_t times_led(child const& screen) {
    std::string const said = screen.said();
    std::size_t count = 0;
    for (std::size_t at = 0; (at = said.find("robot 0 is there", at)) != std::string::npos; ++at) {
        ++count;
    }
    return count;
}

// The highest screen is killed while it leads; the next one leads until it is back.
bool recovery(unsigned times) {
    shop s{3, 3, 100'000, "20"};
    std::vector<double> measured;
    for (unsigned i = 0; i < times; ++i) {
        if (!wait_until([&] { return times_led(s.screen(2)) > i; })) return false;
        std::size_t const led = times_led(s.screen(1));
        instant const killed = now();
        s.screen(2).kill();
        if (!wait_until([&] { return times_led(s.screen(1)) > led; })) return false;
        measured.push_back(std::chrono::duration<double>(now() - killed).count());
        std::printf("%.3f%s", measured.back(), i % 10 == 9 ? "\n" : " ");
        std::fflush(stdout);
        s.screen(2).start();
    }
    std::ranges::sort(measured);
    std::printf(
        "\nseconds until another screen leads and its robots follow: least %.3f, middle %.3f, "
        "most %.3f (of %zu)\n",
        measured.front(), measured[measured.size() / 2], measured.back(), measured.size());
    return true;
}

bool throughput(unsigned orders) {
    shop s{5, 3, orders, "0"};
    instant const begun = now();
    while (!s.screens_done()) {
        std::this_thread::sleep_for(10ms);
        if (now() - begun > 10min) return false;
        auto const seen = summarise(s.directory());
        if (seen && seen->delivered == 3 * static_cast<std::int64_t>(orders)) break;
    }
    double const seconds = std::chrono::duration<double>(now() - begun).count();
    auto const seen = summarise(s.directory());
    if (!seen) return false;
    std::printf("%lld orders delivered in %.1f s: %.0f a second, with 5 robots and 3 screens\n",
                static_cast<long long>(seen->delivered), seconds,
                static_cast<double>(seen->delivered) / seconds);
    std::printf(
        "each waits for 7 commits of its screen's journal and 3 of the ledger, one after the "
        "other\n");
    return seen->delivered > 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::string const what = argc > 1 ? argv[1] : "";
    unsigned const given = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 0;
    bool good = true;
    if (what.empty() || what == "recovery") good &= recovery(given != 0 ? given : 50);
    if (what.empty() || what == "throughput") good &= throughput(given != 0 ? given : 300);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
