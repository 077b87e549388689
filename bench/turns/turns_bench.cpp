// Tenants before an upstream that can do so much and no more: what quiet ones get beside a noisy
// one, through a gateway with turns (rondo), the same one without (fifo), nginx and HAProxy.
//
//   turns_bench [beginning of a scenario or of a side ...]       all without
//
// The upstream has 32 slots; a request takes 10 ms there on average (exponential, fixed seed), so
// it can do 3200 a second. 20 quiet tenants offer a fifth of that together; one noisy tenant offers
// 100 or 1000 times what each of them does. Arrivals are open loop (load.hpp). Generator, gateway
// and upstream are processes of their own; a run takes RONDO_BENCH_SECONDS (5).
//
// Limits         of all sides alike, as far as they have them: 36 requests are passed on at a time,
//                four more than there are slots, so that none is idle while the next one is on its
//                way; 240 wait, which is 75 ms of what the upstream can do: enough for bursts, and
//                little enough to be gone 100 ms after one. nginx: a rate for each tenant, an
//                even part of the capacity, and its part of the 240 as burst. HAProxy: who waits
//                longer than 75 ms is refused.
//
//   alone               the quiet load by itself
//   hot_100, hot_1000   with the noisy tenant
//   over_2, over_10     21 tenants alike, 2 and 10 times too much, with deadlines of 250 ms;
//                       goodput is what was answered in time, of what the upstream itself did in as
//                       many seconds with the same seed, asked directly by 64 clients, which is
//                       printed first
//   deadlines           as over_2, with deadlines of 25 ms, a third of the line: how many were told
//                       that theirs had passed, and how late; of ours, which alone know deadlines
//   spike               the quiet load, and for half a second 10 times what the upstream can do, of
//                       all 21 tenants; it has settled when of the 64 quiet requests that follow
//                       (0.1 s) at most one takes longer than 92 ms, twice the p99 of the service
//   evicted             one tenant has all places and all of the line, and another sends a request
//                       on a new connection, 1000 times: how long after that the one has its
//                       answer whose place it takes; of ours with turns, which alone evicts, and
//                       the last one, as it leaves all places taken
//
//   turns hot_100 rondo quiet_p50=..ms quiet_p99=..ms worst_tenant_p99=..ms refused_quiet=..
//         served=../s refusal_p50=..ms refusal_p99=..ms evicted=.. eviction_p99=..ms
//         unanswered=.. late_p99=..ms connections=.. peak=..MB bound=..MB cpu=..
//
// Times are the client's. late_p99 is how late the generator itself was in sending: a line with
// more than 2 ms says that the machine was the limit. peak and cpu (of one processor) are those of
// the gateway's processes during the run; bound is what docs/gateway.md says that ours takes, with
// the most connections that it had so far. A refusal is an answer with a status to who was turned
// away on arrival; those evicted had been in line, and were turned away when another needed the
// place: their time is mostly that in line, and what it takes to tell them is told_p99 of evicted.
// Who gets no answer at all within 2 s after the end of a run is unanswered. refused_quiet has
// those of the quiet, of all three kinds.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "events.hpp"
#include "load.hpp"
#include "rondo/core/histogram.hpp"
#include "sides.hpp"
#include "support/child_process.hpp"
#include "upstream.hpp"

namespace {

using namespace rondo;
using namespace rondo::bench;
using namespace std::chrono_literals;

constexpr std::size_t quiet_tenants = 20;
constexpr side_terms terms{
    .slots = 32, .in_flight = 36, .queued = 240, .capacity = 3200, .tenants = quiet_tenants + 1};
constexpr double quiet_rate = terms.capacity * 0.2 / quiet_tenants;
constexpr clock::duration service = 10ms;
constexpr clock::duration settled = 92ms;
constexpr double late_ms = 2;

double seconds_of_a_run() {
    char const* const set = std::getenv("RONDO_BENCH_SECONDS");
    return set != nullptr ? std::atof(set) : 5.0;
}

double ms(clock::duration d) { return std::chrono::duration<double, std::milli>{d}.count(); }
double quantile_ms(histogram const& h, double q) {
    return h.empty() ? 0.0 : static_cast<double>(h.quantile(q)) / 1e6;
}

// --- loads -------------------------------------------------------------------------------------

std::vector<tenant_load> quiet_and(double noisy_times) {
    std::vector<tenant_load> all;
    for (std::size_t i = 0; i < quiet_tenants; ++i) {
        all.push_back({"quiet" + std::to_string(i), quiet_rate});
    }
    if (noisy_times > 0) all.push_back({"noisy", quiet_rate * noisy_times});
    return all;
}

std::vector<tenant_load> alike(double times) {
    std::vector<tenant_load> all = quiet_and(1);
    for (tenant_load& t : all) t.rate = terms.capacity * times / static_cast<double>(all.size());
    return all;
}

// --- what became of them -----------------------------------------------------------------------

struct findings {
    histogram quiet, refusals, evictions;
    histogram late_504;  // after the deadline
    std::vector<histogram> of_tenant{quiet_tenants + 1};
    std::uint64_t served = 0, in_time = 0, refused_quiet = 0, unanswered = 0;
    double worst_ms = 0;

    findings(outcome const& o, load const& l) {
        clock::duration const end =
            std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>{l.seconds});
        for (outcome::one const& r : o.all) {
            bool const is_quiet = r.tenant < quiet_tenants;
            if (r.status == 200) {
                // What is answered after the end was not done in these seconds.
                bool const within = r.due + r.took <= end;
                if (within) ++served;
                if (within && r.took <= l.patience) ++in_time;
                of_tenant[r.tenant].record(r.took);
                continue;
            }
            if (is_quiet) ++refused_quiet;
            if (r.status == 504) late_504.record(std::max(r.took - l.patience, 0ns));
            if (r.status == 0) {
                ++unanswered;
            } else {
                (r.evicted ? evictions : refusals).record(r.took);
            }
        }
        for (std::size_t i = 0; i < quiet_tenants; ++i) {
            quiet.merge(of_tenant[i]);
            worst_ms = std::max(worst_ms, quantile_ms(of_tenant[i], 0.99));
        }
    }
};

class measurement {
  public:
    measurement(std::string const& name, side& at, std::uint16_t upstream, double could_a_second)
        : name_(name), at_(at), upstream_(upstream), could_(could_a_second) {}

    void run(std::string_view scenario) {
        double const seconds = seconds_of_a_run();
        (void)at_.take_usage();
        (void)ask_once(upstream_, "/again");
        if (scenario == "alone") quiet(scenario, {quiet_and(0), seconds});
        if (scenario == "hot_100") quiet(scenario, {quiet_and(100), seconds});
        if (scenario == "hot_1000") quiet(scenario, {quiet_and(1000), seconds});
        if (scenario == "over_2") over(scenario, {alike(2), seconds, 250ms});
        if (scenario == "over_10") over(scenario, {alike(10), seconds, 250ms});
        if (scenario == "deadlines" && is_ours()) deadlines(scenario, {alike(2), seconds, 25ms});
        if (scenario == "spike") spike(scenario);
        if (scenario == "evicted" && name_ == "rondo") evicted(scenario);
    }

  private:
    void quiet(std::string_view scenario, load const& l) {
        outcome const o = offer(at_.port(), l);
        findings const f{o, l};
        begin_line(scenario);
        std::printf("quiet_p50=%.1fms quiet_p99=%.1fms worst_tenant_p99=%.1fms refused_quiet=%llu",
                    quantile_ms(f.quiet, 0.5), quantile_ms(f.quiet, 0.99), f.worst_ms,
                    static_cast<unsigned long long>(f.refused_quiet));
        end_line(o, f, l);
    }

    void over(std::string_view scenario, load const& l) {
        outcome const o = offer(at_.port(), l);
        findings const f{o, l};
        begin_line(scenario);
        std::printf("goodput=%.1f%%", 100 * static_cast<double>(f.in_time) / (could_ * l.seconds));
        end_line(o, f, l);
    }

    void deadlines(std::string_view scenario, load const& l) {
        outcome const o = offer(at_.port(), l);
        findings const f{o, l};
        begin_line(scenario);
        std::printf("expired=%llu expired_late_p50=%.2fms expired_late_p99=%.2fms",
                    static_cast<unsigned long long>(f.late_504.count()),
                    quantile_ms(f.late_504, 0.5), quantile_ms(f.late_504, 0.99));
        end_line(o, f, l);
    }

    void spike(std::string_view scenario) {
        constexpr double begins = 1.0;
        constexpr double ends = 1.5;
        load l{alike(1), 3.0};
        l.times = [](double t) { return t >= begins && t < ends ? 10.0 : 0.2; };
        outcome o = offer(at_.port(), l);
        findings const f{o, l};
        begin_line(scenario);
        clock::duration const at = settles(o, 1500ms);
        if (at == clock::duration::max()) {
            std::printf("settled_after=never");
        } else {
            std::printf("settled_after=%.0fms", ms(at));
        }
        end_line(o, f, l);
    }

    void evicted(std::string_view scenario) {
        histogram const told = evict(at_.port(), terms.in_flight + terms.queued, 1000);
        begin_line(scenario);
        std::printf("evicted=%llu told_p50=%.2fms told_p99=%.2fms\n",
                    static_cast<unsigned long long>(told.count()), quantile_ms(told, 0.5),
                    quantile_ms(told, 0.99));
    }

    // How long after the end of the spike.
    static clock::duration settles(outcome& o, clock::duration end) {
        constexpr std::size_t window = 64;
        std::ranges::sort(o.all, {}, &outcome::one::due);
        auto const late = [](outcome::one const& r) { return r.status != 200 || r.took > settled; };
        for (auto first = std::ranges::lower_bound(o.all, end, {}, &outcome::one::due);
             o.all.end() - first >= static_cast<std::ptrdiff_t>(window); ++first) {
            if (std::count_if(first, first + window, late) <= 1) return first->due - end;
        }
        return clock::duration::max();
    }

    void begin_line(std::string_view scenario) const {
        std::printf("turns %.*s %s ", static_cast<int>(scenario.size()), scenario.data(),
                    name_.c_str());
    }
    void end_line(outcome const& o, findings const& f, load const& l) {
        side::usage const u = at_.take_usage();
        double const late = quantile_ms(o.lateness, 0.99);
        std::printf(
            " served=%.0f/s refusal_p50=%.2fms refusal_p99=%.2fms evicted=%llu eviction_p99=%.2fms "
            "unanswered=%llu late_p99=%.2fms connections=%zu peak=%.0fMB",
            static_cast<double>(f.served) / l.seconds, quantile_ms(f.refusals, 0.5),
            quantile_ms(f.refusals, 0.99), static_cast<unsigned long long>(f.evictions.count()),
            quantile_ms(f.evictions, 0.99), static_cast<unsigned long long>(f.unanswered), late,
            o.connections, u.peak_mb);
        connections_ = std::max(connections_, o.connections);
        if (is_ours()) std::printf(" bound=%.0fMB", 12 + static_cast<double>(connections_) / 64);
        std::printf(" cpu=%.0f%%%s\n", 100 * u.cpu_seconds / l.seconds,
                    late > late_ms ? " (the generator was late: the machine is the limit)" : "");
        std::fflush(stdout);
    }

    bool is_ours() const { return name_ == "rondo" || name_ == "fifo"; }

    std::string name_;
    side& at_;
    std::uint16_t upstream_;
    double could_;
    std::size_t connections_ = 0;  // the most so far
};

// Which of these are asked for: those that an argument begins; all, if none is begun.
std::vector<std::string> chosen(std::vector<std::string> const& all, int argc, char** argv) {
    std::vector<std::string> some;
    for (std::string const& name : all) {
        for (int i = 1; i < argc; ++i) {
            if (name.starts_with(argv[i])) {
                some.push_back(name);
                break;
            }
        }
    }
    return some.empty() ? all : some;
}

bool known(std::string_view word, std::vector<std::string> const& scenarios) {
    auto const begins = [&](std::string const& name) { return name.starts_with(word); };
    return std::ranges::any_of(scenarios, begins) || std::ranges::any_of(side::names(), begins);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view{argv[1]} == "upstream") {
        serve_upstream(static_cast<std::uint16_t>(std::atoi(argv[2])), {terms.slots, service});
    }
    std::vector<std::string> const scenarios{"alone",   "hot_100",   "hot_1000", "over_2",
                                             "over_10", "deadlines", "spike",    "evicted"};
    for (int i = 1; i < argc; ++i) {
        if (known(argv[i], scenarios)) continue;
        std::printf("turns: there is no %s\n", argv[i]);
        return EXIT_FAILURE;
    }
    allow_many_files();
    std::uint16_t const port = free_port();
    test::child_process const upstream{{"/proc/self/exe", "upstream", std::to_string(port)}};
    if (!listens(port)) return EXIT_FAILURE;
    (void)ask_once(port, "/again");
    double const seconds = seconds_of_a_run();
    double const could = static_cast<double>(saturate(port, 64, seconds)) / seconds;
    std::printf("turns capacity upstream served=%.0f/s\n", could);
    for (std::string const& name : chosen(side::names(), argc, argv)) {
        auto const at = side::start(name, terms, port);
        if (at == nullptr) continue;
        measurement m{name, *at, port, could};
        for (std::string const& s : chosen(scenarios, argc, argv)) m.run(s);
    }
    return EXIT_SUCCESS;
}
