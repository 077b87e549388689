#include "demo.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "finished_run.hpp"
#include "members.hpp"

namespace rondo::shop {

namespace {

using namespace std::chrono_literals;
using instant = std::chrono::steady_clock::time_point;

constexpr auto longest_run = 100s;
constexpr auto longest_chaos = 25s;
constexpr char const* flavours[] = {"chocolate", "lemon", "mint", "pistachio", "vanilla"};

// A process of the shop, which dies with this one.
class child {
  public:
    child(std::string name, std::vector<std::string> command, std::string log)
        : name_(std::move(name)), command_(std::move(command)), log_(std::move(log)) {}
    child(child const&) = delete;
    child& operator=(child const&) = delete;
    ~child() { kill(); }

    std::string const& name() const noexcept { return name_; }
    std::string const& log() const noexcept { return log_; }
    bool is_up() const noexcept { return pid_ > 0; }
    bool is_done() const noexcept { return done_; }

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
        ::execv("/proc/self/exe", arguments.data());
        ::_exit(127);
    }
    // Whether it has ended meanwhile, by itself and well.
    void look() {
        int status = 0;
        if (pid_ <= 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) return;
        pid_ = -1;
        done_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!done_) std::printf("\n%s ended, with status %d\n", name_.c_str(), status);
    }
    void kill() { end(SIGKILL); }
    void end(int signal) {
        if (pid_ <= 0) return;
        ::kill(pid_, signal);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

    instant start_again{};

  private:
    std::string name_;
    std::vector<std::string> command_;
    std::string log_;
    pid_t pid_ = -1;
    bool done_ = false;
};

bool is_free(std::uint16_t port) {
    int const s = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(port);
    bool const bound = ::bind(s, reinterpret_cast<sockaddr const*>(&at), sizeof at) == 0;
    ::close(s);
    return bound;
}

class demo {
  public:
    explicit demo(demo_options chosen) : options_(std::move(chosen)), random_(options_.seed) {}

    bool run() {
        ::setenv("CARD_REJECTION_PROBABILITY", "0.05", 0);
        write_inputs();
        find_ports();
        make_children();
        std::printf("seed %llu; a gateway, %u robots and %u screens with %u orders each, in %s\n",
                    static_cast<unsigned long long>(options_.seed), options_.robots,
                    options_.screens, options_.orders, options_.directory.c_str());
        for (auto& c : children_) c->start();
        begun_ = std::chrono::steady_clock::now();
        next_kill_ = begun_ + 1s;
        while (!screens_done() && now() - begun_ < longest_run) {
            for (auto& c : children_) c->look();
            if (options_.chaos) make_trouble();
            show();
            std::this_thread::sleep_for(100ms);
        }
        show(true);
        for (auto& c : children_) c->end(SIGTERM);
        return verdict();
    }

  private:
    static instant now() { return std::chrono::steady_clock::now(); }
    std::uint64_t below(std::uint64_t n) { return random_() % n; }
    std::string in(std::string const& name) const { return options_.directory + "/" + name; }

    void write_inputs() {
        std::filesystem::create_directories(options_.directory);
        std::ofstream stock{in("stock.toml")};
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
        }
    }

    // Of all ports that the shop may need, so that two demos do not meet.
    void find_ports() {
        for (int tries = 0; tries < 100; ++tries) {
            base_port_ = static_cast<std::uint16_t>(20000 + below(12000));
            bool all = true;
            for (std::uint32_t r = 0; r < options_.robots; ++r) all &= is_free(port(robot_id(r)));
            for (std::uint32_t s = 0; s < options_.screens; ++s) all &= is_free(port(screen_id(s)));
            if (all && is_free(base_port_)) return;
        }
    }
    std::uint16_t port(member_id id) const { return static_cast<std::uint16_t>(base_port_ + id); }

    void add(std::string const& name, std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "shop");
        for (std::string const& a :
             {std::string{"--state"}, options_.directory, std::string{"--base-port"},
              std::to_string(base_port_), std::string{"--log"}, std::string{"info"}}) {
            arguments.push_back(a);
        }
        std::string log = in(name + ".log");
        children_.push_back(std::make_unique<child>(name, std::move(arguments), std::move(log)));
    }
    static std::string list(std::uint32_t from, std::uint32_t count) {
        std::string text;
        for (std::uint32_t i = 0; i < count; ++i) {
            text += (i == 0 ? "" : ":") + std::to_string((from + i) % count);
        }
        return text;
    }
    void make_children() {
        add("gateway", {"gateway", "--stock", in("stock.toml")});
        std::string const scoop = options_.chaos ? "120" : "40";
        for (std::uint32_t r = 0; r < options_.robots; ++r) {
            add("robot-" + std::to_string(r),
                {"robot", std::to_string(r), list(r, options_.robots), "--scoop-ms", scoop});
        }
        for (std::uint32_t s = 0; s < options_.screens; ++s) {
            std::string const n = std::to_string(s);
            add("screen-" + n, {"screen", n, list(0, options_.screens), in("orders" + n + ".jsonl"),
                                std::to_string(options_.robots)});
        }
    }

    bool screens_done() const {
        for (std::size_t i = 1 + options_.robots; i < children_.size(); ++i) {
            if (!children_[i]->is_done()) return false;
        }
        return true;
    }

    // Somebody dies every second or so, and is started again a little later.
    void make_trouble() {
        bool const over = now() - begun_ > longest_chaos;
        for (auto& c : children_) {
            if (!c->is_up() && !c->is_done() && now() >= c->start_again) c->start();
        }
        if (over || now() < next_kill_) return;
        next_kill_ = now() + std::chrono::milliseconds{300 + below(1200)};
        std::size_t victim = below(children_.size());
        if (below(4) == 0) {  // the leader, whoever that is
            std::int64_t const leader = last_leader(options_.directory, options_.screens);
            if (leader >= 0) victim = 1 + options_.robots + static_cast<std::size_t>(leader);
        }
        child& c = *children_[victim];
        if (!c.is_up()) return;
        c.kill();
        ++kills_;
        c.start_again = now() + std::chrono::milliseconds{200 + below(1800)};
        std::printf("\n%5.1f s  killed %s\n", seconds(), c.name().c_str());
    }

    double seconds() const { return std::chrono::duration<double>(now() - begun_).count(); }

    std::string last_ring() const {
        std::string ring = "-";
        for (std::size_t i = 1; i <= options_.robots; ++i) {
            if (!children_[i]->is_up()) continue;
            std::ifstream log{children_[i]->log()};
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
        line << seen->delivered << " delivered, " << seen->aborted << " aborted, " << seen->refunded
             << " refunded, " << seen->open << " open;";
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
        std::int64_t const given = std::int64_t{options_.screens} * options_.orders;
        good = good && ended == given;
        std::printf("%lld of %lld orders came to their end, %u processes were killed: %s\n",
                    static_cast<long long>(ended), static_cast<long long>(given), kills_,
                    good ? "nothing was lost" : "SOMETHING IS WRONG");
        return good;
    }

    demo_options options_;
    std::mt19937_64 random_;
    std::uint16_t base_port_ = 0;
    std::vector<std::unique_ptr<child>> children_;  // the gateway, the robots, the screens
    instant begun_{};
    instant next_kill_{};
    instant next_line_{};
    unsigned kills_ = 0;
};

}  // namespace

bool run_demo(demo_options chosen) {
    if (chosen.seed == 0) chosen.seed = std::random_device{}();
    bool const temporary = chosen.directory.empty();
    if (temporary) {
        std::string name = (std::filesystem::temp_directory_path() / "shop-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) return false;
        chosen.directory = name;
    }
    std::string const directory = chosen.directory;
    bool const good = demo{std::move(chosen)}.run();
    if (temporary && good) {
        std::error_code ignored;
        std::filesystem::remove_all(directory, ignored);
    }
    return good;
}

}  // namespace rondo::shop
