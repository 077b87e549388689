#include "driver.hpp"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "ratio.hpp"
#include "tally.hpp"

namespace rondo::bench {

namespace {

constexpr double co_located_share = 0.9;
constexpr std::size_t most_pinned_rounds = 3;

struct sample {
    double ns;
    counts threads;
};

// --- one processor, or all ---

class [[nodiscard("it acts until the end of its scope")]] one_processor {
  public:
    explicit one_processor(bool really) : really_(really) {
        if (!really_) return;
        ::sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<std::size_t>(std::max(::sched_getcpu(), 0)), &one);
        ::sched_setaffinity(0, sizeof one, &one);  // threads and programs started here inherit it
    }
    ~one_processor() {
        if (really_) ::sched_setaffinity(0, sizeof before_, &before_);
    }
    one_processor(one_processor const&) = delete;
    one_processor& operator=(one_processor const&) = delete;

  private:
    bool really_;
    cpu_set_t before_{};
};

// --- peer programs ---

std::string path_of(std::string const& program) { return RONDO_BENCH_PEERS "/" + program; }

bool is_there(std::string const& program) { return ::access(path_of(program).c_str(), X_OK) == 0; }

char const* packages_for(std::string const& program) {
    static std::map<std::string_view, char const*> const packages{
        {"tokio_peer", "cargo librust-tokio-dev"},
        {"rust_pools_peer", "cargo librust-crossbeam-channel-dev librust-rayon-core-dev"},
        {"asio_peer", "libboost1.81-dev"},
        {"tbb_peer", "libtbb-dev"},
        {"moodycamel_peer", "libconcurrentqueue-dev"},
        {"caf_peer", "libcaf-dev"},
    };
    auto const found = packages.find(program);
    return found != packages.end() ? found->second : "nothing: it should have been built";
}

// What a program prints; nothing when it fails.
std::optional<std::string> output_of(std::array<std::string, 3> words) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::array<char*, 4> const argv{words[0].data(), words[1].data(), words[2].data(), nullptr};
    pid_t child = 0;
    int const failed = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), ::environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t n = 0; (n = ::read(ends[0], part.data(), part.size())) > 0;) {
        text.append(part.data(), static_cast<std::size_t>(n));
    }
    ::close(ends[0]);
    int status = 0;
    if (failed != 0 || ::waitpid(child, &status, 0) != child || status != 0) return std::nullopt;
    return text;
}

// workload,param,ns_per_op,count/count/...
std::optional<sample> parsed(std::string const& line) {
    std::istringstream fields{line};
    std::string skipped, ns, threads;
    std::getline(fields, skipped, ',');
    std::getline(fields, skipped, ',');
    std::getline(fields, ns, ',');
    std::getline(fields, threads);
    char* end = nullptr;
    sample s{std::strtod(ns.c_str(), &end), {}};
    if (end == ns.c_str()) return std::nullopt;
    std::istringstream each{threads};
    for (std::string n; std::getline(each, n, '/');)
        s.threads.push_back(std::strtoull(n.c_str(), nullptr, 10));
    return s;
}

std::optional<sample> run_peer(peer const& p) {
    auto const text = output_of({path_of(p.program), p.workload, p.param});
    return text ? parsed(*text) : std::nullopt;
}

// --- one contender over all rounds ---

class record {
  public:
    void add(sample const& s) {
        ns_.push_back(s.ns);
        std::uint64_t sum = 0;
        for (std::uint64_t const n : s.threads) sum += n;
        if (sum == 0) return;
        auto const busiest = static_cast<double>(s.threads.front()) / static_cast<double>(sum);
        if (busiest > co_located_share) ++co_located_;
        last_threads_ = s.threads;
    }
    bool empty() const { return ns_.empty(); }
    double at(double q) const {
        std::vector<double> sorted = ns_;
        std::ranges::sort(sorted);
        return quantile(sorted, q);
    }
    double median() const { return at(0.5); }
    bool co_located() const { return 2 * co_located_ > ns_.size(); }
    std::string spread() const {
        std::array<char, 64> text{};
        std::snprintf(text.data(), text.size(), "%.1f..%.1f", at(0.25), at(0.75));
        return text.data();
    }
    // 52/48: what each thread did of the last run, in percent.
    std::string shares() const {
        std::uint64_t sum = 0;
        for (std::uint64_t const n : last_threads_) sum += n;
        std::string text;
        for (std::uint64_t const n : last_threads_) {
            if (!text.empty()) text += '/';
            text += std::to_string((100 * n + sum / 2) / sum);
        }
        return text;
    }

  private:
    std::vector<double> ns_;
    counts last_threads_;
    std::size_t co_located_ = 0;
};

// [0] is ours.
std::vector<record> take_turns(workload const& w, std::vector<peer> const& peers,
                               std::size_t rounds, bool pinned) {
    std::vector<record> records(peers.size() + 1);
    one_processor const here{pinned};
    for (std::size_t round = 0; round < rounds; ++round) {
        for (std::size_t turn = 0; turn < records.size(); ++turn) {
            std::size_t const who = (round + turn) % records.size();
            if (who == 0) {
                forget_counts();
                double const ns = w.ours();
                records[0].add({ns, counted()});
            } else if (auto const s = run_peer(peers[who - 1])) {
                records[who].add(*s);
            }
        }
    }
    return records;
}

// --- what is printed ---

void print_pair(char const* module, workload const& w, peer const& p, record const& ours,
                record const& theirs, record const* ours_pinned, record const* theirs_pinned) {
    bool const co_located = w.threads && (ours.co_located() || theirs.co_located());
    std::printf("ratio %s %s %s rondo=%.1f peer=%.1f %.2fx%s\n", module, w.name.c_str(),
                p.name.c_str(), ours.median(), theirs.median(), theirs.median() / ours.median(),
                co_located ? " co-located" : "");
    std::printf("spread %s %s %s rondo=%s peer=%s", module, w.name.c_str(), p.name.c_str(),
                ours.spread().c_str(), theirs.spread().c_str());
    if (w.threads) {
        std::printf(" threads rondo=%s%s peer=%s%s", ours.shares().c_str(),
                    ours.co_located() ? " co-located" : "", theirs.shares().c_str(),
                    theirs.co_located() ? " co-located" : "");
    }
    if (ours_pinned != nullptr && !theirs_pinned->empty()) {
        std::printf(" pinned rondo=%.1f peer=%.1f %.2fx", ours_pinned->median(),
                    theirs_pinned->median(), theirs_pinned->median() / ours_pinned->median());
    }
    std::putchar('\n');
}

void measure(char const* module, workload const& w, std::size_t rounds) {
    std::vector<peer> peers = w.peers;
    std::erase_if(peers, [](peer const& p) { return !is_there(p.program); });
    auto const free = take_turns(w, peers, rounds, false);
    std::vector<record> pinned;
    if (w.threads) pinned = take_turns(w, peers, std::min(rounds, most_pinned_rounds), true);
    if (peers.empty()) {
        std::printf("alone %s %s rondo=%.1f (%s)\n", module, w.name.c_str(), free[0].median(),
                    free[0].spread().c_str());
    }
    for (std::size_t i = 0; i < peers.size(); ++i) {
        if (free[i + 1].empty()) {
            std::printf("failed %s %s %s: %s %s %s\n", module, w.name.c_str(),
                        peers[i].name.c_str(), peers[i].program.c_str(), peers[i].workload.c_str(),
                        peers[i].param.c_str());
            continue;
        }
        print_pair(module, w, peers[i], free[0], free[i + 1], w.threads ? &pinned[0] : nullptr,
                   w.threads ? &pinned[i + 1] : nullptr);
    }
    std::fflush(stdout);
}

void print_missing(char const* module, std::vector<workload> const& all) {
    std::map<std::string, std::string> missing;  // of each program, one of its names
    for (workload const& w : all) {
        for (peer const& p : w.peers) {
            if (!is_there(p.program)) missing.emplace(p.program, p.name);
        }
    }
    for (auto const& [program, name] : missing) {
        std::printf("missing %s %s: %s needs %s\n", module, name.c_str(), program.c_str(),
                    packages_for(program));
    }
}

bool is_wanted(workload const& w, std::vector<std::string_view> const& beginnings) {
    return beginnings.empty() || std::ranges::any_of(beginnings, [&](std::string_view beginning) {
               return w.name.starts_with(beginning);
           });
}

std::size_t rounds_wanted() {
    char const* const set = std::getenv("RONDO_BENCH_ROUNDS");
    return set != nullptr ? std::max<std::size_t>(std::strtoul(set, nullptr, 10), 1) : 9;
}

}  // namespace

int run(char const* module, int argc, char** argv, std::vector<workload> const& all) {
    std::vector<std::string_view> const wanted(argv + 1, argv + argc);
    if (std::ranges::none_of(all, [&](workload const& w) { return is_wanted(w, wanted); })) {
        std::fprintf(stderr, "no workload begins so; there are:");
        for (workload const& w : all) std::fprintf(stderr, " %s", w.name.c_str());
        std::fputc('\n', stderr);
        return 1;
    }
    std::size_t const rounds = rounds_wanted();
    std::printf(
        "legend: medians of %zu interleaved rounds on %u processors, ns per operation; above 1x "
        "rondo is faster. spread: quartiles; threads: each one's share of the operations in "
        "percent, co-located when one did over 90; pinned: the same on one processor\n",
        rounds, std::thread::hardware_concurrency());
    print_missing(module, all);
    for (workload const& w : all) {
        if (is_wanted(w, wanted)) measure(module, w, rounds);
    }
    return 0;
}

}  // namespace rondo::bench
