#include "demo.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "child.hpp"
#include "finished_run.hpp"

namespace rondo::shop {

namespace {

using namespace std::chrono_literals;
using instant = std::chrono::steady_clock::time_point;

constexpr auto longest_run = 100s;
constexpr auto longest_chaos = 25s;
constexpr auto longest_farewell = 10s;
constexpr char const* flavours[] = {"chocolate", "lemon", "mint", "pistachio", "vanilla"};

// One of the processes of the demo.
struct member {
    std::string name;
    std::unique_ptr<child> process;
    instant start_again{};
};

class demo {
  public:
    explicit demo(demo_options chosen) : options_(std::move(chosen)), random_(*options_.seed) {}

    std::expected<bool, std::string> run() {
        if (auto wrong = prepare()) return std::unexpected{*std::move(wrong)};
        make_members();
        std::printf("seed %llu; a gateway, %u robots and %u screens with %u orders each, in %s\n",
                    static_cast<unsigned long long>(*options_.seed), options_.robots,
                    options_.screens, options_.orders, options_.directory.c_str());
        for (member& m : members_) m.process->start();
        begun_ = std::chrono::steady_clock::now();
        next_kill_ = begun_ + 1s;
        while (!screens_done() && now() - begun_ < longest_run) {
            if (auto wrong = find_ended()) return std::unexpected{*std::move(wrong)};
            if (options_.chaos) make_trouble();
            show();
            std::this_thread::sleep_for(100ms);
        }
        show(true);
        for (member& m : members_) m.process->signal(SIGTERM);
        instant const until = now() + longest_farewell;  // for all: they end side by side
        for (member& m : members_) {
            auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(until - now());
            (void)m.process->end(SIGTERM, std::max(left, 0ms));
        }
        return verdict();
    }

  private:
    static instant now() { return std::chrono::steady_clock::now(); }
    std::uint64_t below(std::uint64_t n) { return random_() % n; }
    // Orders of all screens.
    std::int64_t given() const { return std::int64_t{options_.screens} * options_.orders; }
    std::string in(std::string const& name) const { return options_.directory + "/" + name; }

    // Why it cannot run, if so.
    std::optional<std::string> prepare() {
        ::setenv("CARD_REJECTION_PROBABILITY", "0.05", 0);
        auto const rejection = parse_probability(std::getenv("CARD_REJECTION_PROBABILITY"));
        if (!rejection) return "CARD_REJECTION_PROBABILITY: " + rejection.error();
        std::error_code error;
        std::filesystem::create_directories(options_.directory, error);
        if (error) return options_.directory + ": " + error.message();
        if (std::filesystem::exists(in("ledger.db"), error)) {
            return options_.directory + ": there is a shop in it already";
        }
        if (!write_inputs()) return options_.directory + ": no files can be written there";
        auto const port = find_base_port(options_.robots, options_.screens, below(1000));
        if (!port) return "no ports are free for a shop";
        base_port_ = *port;
        return std::nullopt;
    }

    bool write_inputs() {
        std::ofstream stock{in("stock.toml")};
        bool good = true;
        for (char const* const f : flavours) {
            std::uint64_t const all = std::uint64_t{options_.screens} * options_.orders;
            stock << "[flavour." << f << "]\ncapacity = " << all * (60 + below(50))
                  << "\nprice = " << 10 + below(10) << ".50\n";
        }
        for (std::uint32_t s = 0; s < options_.screens; ++s) {
            std::ofstream orders{in("orders" + std::to_string(s) + ".jsonl")};
            for (std::uint32_t i = 1; i <= options_.orders; ++i) {
                orders << R"({"id": ")" << s << "-" << i << R"(", "card": "4242-)" << below(10000)
                       << R"(", "items": [)";
                std::uint64_t const first = below(std::size(flavours));
                std::uint64_t const items = 1 + below(3);
                for (std::uint64_t k = 0; k < items; ++k) {
                    orders << (k == 0 ? "" : ", ") << R"({"flavour": ")"
                           << flavours[(first + k) % std::size(flavours)] << R"(", "grams": )"
                           << 50 * (1 + below(8)) << "}";
                }
                orders << "]}\n";
            }
            good = orders.flush().good() && good;
        }
        return stock.flush().good() && good;
    }

    void add(std::string const& name, std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "shop");
        for (std::string const& a :
             {std::string{"--state"}, options_.directory, std::string{"--base-port"},
              std::to_string(base_port_), std::string{"--log"}, std::string{"info"}}) {
            arguments.push_back(a);
        }
        std::string log = in(name + ".log");
        members_.push_back({name, std::make_unique<child>("/proc/self/exe", std::move(arguments),
                                                          std::move(log))});
    }
    void make_members() {
        add("gateway", {"gateway", "--stock", in("stock.toml")});
        std::string const scoop = options_.chaos ? "120" : "40";
        for (std::uint32_t r = 0; r < options_.robots; ++r) {
            add("robot-" + std::to_string(r),
                {"robot", std::to_string(r), list_of_members(r, options_.robots), "--scoop-ms",
                 scoop});
        }
        for (std::uint32_t s = 0; s < options_.screens; ++s) {
            std::string const n = std::to_string(s);
            add("screen-" + n, {"screen", n, list_of_members(0, options_.screens),
                                in("orders" + n + ".jsonl"), std::to_string(options_.robots)});
        }
    }

    // Who has ended by itself. Chaos starts again whom it has killed, nobody else: one that crashes
    // may leave good books, and is no good.
    std::optional<std::string> find_ended() {
        for (member& m : members_) {
            if (!m.process->is_up() || !m.process->has_ended()) continue;
            int const status = m.process->status().value_or(0);
            if (status == EXIT_SUCCESS) continue;
            std::string said = m.process->said();
            if (said.ends_with('\n')) said.pop_back();
            std::string const last = said.substr(said.rfind('\n') + 1);
            return m.name + " has ended with status " + std::to_string(status) + ": " + last +
                   " (" + m.process->log() + ")";
        }
        return std::nullopt;
    }

    bool screens_done() const {
        for (std::size_t i = 1 + options_.robots; i < members_.size(); ++i) {
            if (members_[i].process->status() != EXIT_SUCCESS) return false;
        }
        return true;
    }

    // Somebody dies every second or so, and is started again a little later.
    void make_trouble() {
        bool const over = now() - begun_ > longest_chaos;
        for (member& m : members_) {
            bool const down = !m.process->is_up() && m.process->status() != EXIT_SUCCESS;
            if (down && now() >= m.start_again) m.process->start();
        }
        if (over || now() < next_kill_) return;
        next_kill_ = now() + std::chrono::milliseconds{300 + below(1200)};
        std::size_t victim = below(members_.size());
        if (below(4) == 0) {  // the leader, whoever that is
            std::int64_t const leader = last_leader(options_.directory, options_.screens);
            if (leader >= 0) victim = 1 + options_.robots + static_cast<std::size_t>(leader);
        }
        member& m = members_[victim];
        if (!m.process->is_up()) return;
        m.process->kill();
        ++kills_;
        m.start_again = now() + std::chrono::milliseconds{200 + below(1800)};
        std::printf("\n%5.1f s  killed %s\n", seconds(), m.name.c_str());
    }

    // As those say who were not killed.
    std::uint64_t dropped() const {
        constexpr std::string_view mark = " datagrams dropped";
        std::uint64_t all = 0;
        for (member const& m : members_) {
            std::string const said = m.process->said();
            for (std::size_t at = 0; (at = said.find(mark, at)) != std::string::npos; ++at) {
                std::size_t const from = said.rfind(' ', at - 1) + 1;
                all += std::strtoull(said.c_str() + from, nullptr, 10);
            }
        }
        return all;
    }

    double seconds() const { return std::chrono::duration<double>(now() - begun_).count(); }

    std::string last_ring() const {
        std::string ring = "-";
        for (std::size_t i = 1; i <= options_.robots; ++i) {
            if (!members_[i].process->is_up()) continue;
            std::istringstream log{members_[i].process->said()};
            for (std::string line; std::getline(log, line);) {
                std::size_t const at = line.find("the ring is ");
                if (at != std::string::npos) ring = line.substr(at + 12);
            }
        }
        return ring;
    }

    // On a terminal the line is written over and over again.
    void show(bool last = false) {
        bool const terminal = ::isatty(1) == 1;
        if (!last && !terminal && now() < next_line_) return;
        next_line_ = now() + 1s;
        auto const seen = summarise(options_.directory);
        if (!seen) return;
        std::ostringstream line;
        std::int64_t const ended = seen->delivered + seen->aborted + seen->refunded;
        line << given() - seen->open - ended << " queued, " << seen->open << " open, "
             << seen->delivered << " delivered, " << seen->aborted << " aborted, " << seen->refunded
             << " refunded;";
        for (flavour_level const& f : seen->stock) {
            line << " " << f.name << " " << f.capacity - f.committed;
        }
        line << "; leader " << last_leader(options_.directory, options_.screens) << ", ring "
             << last_ring();
        std::printf("%s%5.1f s  %s%s", terminal ? "\r\033[K" : "", seconds(), line.str().c_str(),
                    terminal && !last ? "" : "\n");
        std::fflush(stdout);
    }

    bool verdict() {
        bool good = screens_done();
        if (!good) std::printf("not all screens came to the end of their orders\n");
        auto const checks = verify(options_.directory);
        if (!checks) {
            std::printf("%s\n", checks.error().c_str());
            return false;
        }
        for (invariant_check const& c : *checks) {
            std::printf("%s  %s\n", c.violations.empty() ? "holds" : "FAILS", c.name.c_str());
            for (std::string const& v : c.violations) std::printf("       %s\n", v.c_str());
            good = good && c.violations.empty();
        }
        auto const seen = summarise(options_.directory);
        std::int64_t const ended =
            seen ? seen->delivered + seen->aborted + seen->refunded : std::int64_t{-1};
        good = good && ended == given();
        std::printf("%llu datagrams were dropped by those that were not killed\n",
                    static_cast<unsigned long long>(dropped()));
        std::printf("%lld of %lld orders came to their end, %u processes were killed: %s\n",
                    static_cast<long long>(ended), static_cast<long long>(given()), kills_,
                    good ? "nothing was lost" : "SOMETHING IS WRONG");
        return good;
    }

    demo_options options_;
    std::mt19937_64 random_;
    std::uint16_t base_port_ = 0;
    std::vector<member> members_;  // the gateway, the robots, the screens
    instant begun_{};
    instant next_kill_{};
    instant next_line_{};
    unsigned kills_ = 0;
};

}  // namespace

std::expected<bool, std::string> run_demo(demo_options chosen) {
    if (!chosen.seed) chosen.seed = std::random_device{}();
    ::umask(S_IRWXG | S_IRWXO);  // orders have the numbers of cards
    bool const temporary = chosen.directory.empty();
    if (temporary) {
        std::error_code error;
        auto const where = std::filesystem::temp_directory_path(error);
        std::string name = (where / "shop-XXXXXX").string();
        if (!error && ::mkdtemp(name.data()) == nullptr) error = {errno, std::generic_category()};
        if (error) return std::unexpected{name + ": " + error.message()};
        chosen.directory = name;
    }
    std::string const directory = chosen.directory;
    auto const good = demo{std::move(chosen)}.run();
    if (temporary && good && *good) {
        std::error_code ignored;
        std::filesystem::remove_all(directory, ignored);
    }
    return good;
}

}  // namespace rondo::shop
