// simulate: many runs of the simulated shop, or one of them to look at.
//
//   simulate --seeds N [--seed S]     N runs: seeds S, S + 1, ...; from 1 if not said otherwise
//   simulate --seed S [--trace]       one run; with everything that happens
//   simulate --caught-within N        seeds 1 to N of a shop that is broken on purpose
//
// A run counts if a fault came while an order was under way. Of many seeds all are run: each that
// shows a violation is printed, and of the first one (in each process) the run with the shortest
// schedule of faults that still shows it. So it is of one seed without --trace.
// What is broken has to be seen by a numbered invariant; the seeds that it took are printed.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "simulated_shop.hpp"

namespace {

using namespace rondo::shop::test;

struct totals {
    std::uint64_t runs = 0;
    std::uint64_t counting = 0;
    std::uint64_t orders = 0;
    double hours = 0;  // by the virtual clock
    std::map<fault, int> happened;
    int stayed_away = 0;
    std::map<std::string, std::uint64_t> transitions;
    std::map<std::string, int> steps;
    std::set<std::string> reasons;

    void add(simulation_result const& r) {
        ++runs;
        if (r.counts) ++counting;
        orders += r.orders;
        hours += std::chrono::duration<double, std::ratio<3600>>(r.took).count();
        for (auto const& [f, times] : r.happened) happened[f] += times;
        stayed_away += r.stayed_away;
        for (auto const& [what, times] : r.transitions) transitions[what] += times;
        for (auto const& [state, times] : r.steps) steps[state] += times;
        reasons.insert(r.reasons.begin(), r.reasons.end());
    }
    void print() const {
        std::printf("%" PRIu64 " runs, %" PRIu64 " of them counting; %" PRIu64
                    " orders; %.1f simulated hours\n",
                    runs, counting, orders, hours);
        std::printf("faults:");
        for (auto const& [f, times] : happened) std::printf("  %s %d", describe(f), times);
        std::printf("  stays away %d", stayed_away);
        std::printf("\ntransitions:");
        for (auto const& [what, times] : transitions) {
            std::printf("  %s %" PRIu64, what.c_str(), times);
        }
        std::printf("\nsteps of the ledger:");
        for (auto const& [state, times] : steps) std::printf("  %s %d", state.c_str(), times);
        std::printf("\nreasons:");
        for (std::string const& r : reasons) std::printf("  \"%s\"", r.c_str());
        std::printf("\n");
    }
};

// The run again that shows the violation.
void show(std::uint64_t seed) {
    int const shortest = shortest_schedule(seed, 8);
    std::printf("with the first %d faults:\n", shortest);
    simulated_shop again{{.seed = seed, .most_faults = shortest, .shown = true}};
    (void)again.run();
    std::printf("again: ./dev sim --seed %" PRIu64 " --trace\n", seed);
}

// A line on the terminal, if there is one, that comes again and again. Whoever keeps what is
// printed does not get it.
class progress {
  public:
    void show(std::uint64_t done, std::uint64_t of) {
        if (terminal_ == nullptr) return;
        std::fprintf(terminal_.get(), "%" PRIu64 " of %" PRIu64 "\r", done, of);
        std::fflush(terminal_.get());
    }

  private:
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> terminal_{std::fopen("/dev/tty", "we"),
                                                              &std::fclose};
};

// Every `stride`-th seed, as each process has a world of its own.
bool run_many(std::uint64_t from, std::uint64_t count, std::uint64_t first, std::uint64_t stride) {
    totals all;
    progress shown;
    bool well = true;
    auto const begun = std::chrono::steady_clock::now();
    for (std::uint64_t i = first; i < count; i += stride) {
        simulation_result const r = simulated_shop{{.seed = from + i}}.run();
        all.add(r);
        if (!r.violation.empty()) {
            std::printf("\nseed %" PRIu64 ": %s\n", from + i, r.violation.c_str());
            if (std::exchange(well, false)) show(from + i);
        }
        if (first == 0 && all.runs % 50 == 0) shown.show(i + 1, count);
    }
    double const seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    std::printf("process %" PRIu64 " of %" PRIu64 ", %.1f s: ", first + 1, stride, seconds);
    all.print();
    return well;
}

bool run_in_processes(std::uint64_t from, std::uint64_t count) {
    unsigned const processes = std::max(1U, std::thread::hardware_concurrency());
    std::vector<pid_t> children;
    bool well = true;
    for (unsigned i = 0; i < processes; ++i) {
        pid_t const child = ::fork();
        if (child < 0) {  // its seeds are not run
            std::perror("simulate: fork");
            well = false;
            continue;
        }
        if (child == 0) {
            bool const all_well = run_many(from, count, i, processes);
            std::fflush(stdout);
            ::_exit(all_well ? EXIT_SUCCESS : EXIT_FAILURE);
        }
        children.push_back(child);
    }
    for (pid_t const child : children) {
        int status = 0;
        bool const ended = ::waitpid(child, &status, 0) == child;
        well = well && ended && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
    }
    return well;
}

bool run_one(std::uint64_t seed, bool shown) {
    simulation_result const r = simulated_shop{{.seed = seed, .shown = shown}}.run();
    totals one;
    one.add(r);
    one.print();
    bool const well = r.violation.empty();
    std::printf("seed %" PRIu64 ": %s\n", seed, well ? "no violation" : r.violation.c_str());
    if (!well && !shown) show(seed);
    return well;
}

// A crash, or a run that never ends, is no proof of the checks.
bool is_caught(std::uint64_t within) {
    for (std::uint64_t seed = 1; seed <= within; ++seed) {
        simulation_result const r = simulated_shop{{.seed = seed}}.run();
        if (r.violation.empty()) continue;
        std::printf("%" PRIu64 " seeds to detection: %s\n", seed, r.violation.c_str());
        return r.violation.front() == 'I' && r.violation.find(':') == 2;
    }
    std::printf("not caught within %" PRIu64 " seeds\n", within);
    return false;
}

int usage() {
    std::fprintf(stderr,
                 "simulate --seeds N [--seed S] | --seed S [--trace] | --caught-within N\n");
    return 2;
}

}  // namespace

int main(int count, char** arguments) {
    std::uint64_t within = 0;
    std::optional<std::uint64_t> seeds;
    std::optional<std::uint64_t> seed;
    bool shown = false;
    for (int i = 1; i < count; ++i) {
        std::string_view const a = arguments[i];
        if (a == "--trace") {
            shown = true;
            continue;
        }
        if (i + 1 == count) return usage();
        std::uint64_t const n = std::strtoull(arguments[++i], nullptr, 10);
        if (a == "--seeds") {
            seeds = n;
        } else if (a == "--caught-within") {
            within = n;
        } else if (a == "--seed") {
            seed = n;
        } else {
            return usage();
        }
    }
    if (within > 0) return is_caught(within) ? EXIT_SUCCESS : EXIT_FAILURE;
    if (seeds == 0U || (!seeds && !seed)) return usage();
    if (seeds && shown) {  // of several processes at once
        std::fprintf(stderr, "simulate: --trace is for one run, --seed S\n");
        return 2;
    }
    bool const well = seeds ? run_in_processes(seed.value_or(1), *seeds) : run_one(*seed, shown);
    return well ? EXIT_SUCCESS : EXIT_FAILURE;
}
