// What it costs to enqueue a task and to deliver it: one pair, in ns.
//
//   fill_drain_<n>        1e6 tasks of n tenants enqueued, then all of them delivered
//   interleaved_<n>       one enqueued, one delivered, n tenants in turn; at most one is queued
//   live_<m>_<n>          the same with m tasks of n tenants queued all the time
//   shards_<s>            as fill_drain_10000, with so many shards
//   threads_<p>x<c>_<s>   p producers and c consumers, 1000 tenants, s shards, at most 1024 queued
//
// Costs are 1, the quantum is 10, and there are no deadlines. The peers know neither limits per
// tenant nor time; the scheduler reads the clock twice for each pair, for the time in the queue.
// A peer `tenants_100` or `live_1000` is the scheduler itself with so many, and `hand_over` what is
// left of it when nothing is decided (queues.hpp): the least that a task can cost.
//
// With arguments, only workloads whose names begin with one of them.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../support/ratio.hpp"
#include "queues.hpp"

namespace {

using namespace rondo::bench;

constexpr std::size_t rounds = 5;

template <class Queue>
double fill_drain(std::size_t tenants, std::size_t shards = 1) {
    constexpr std::size_t tasks = 1'000'000;
    Queue q{tasks, shards};
    return ns_per_operation(tasks, [&] {
        for (std::uint64_t i = 0; i < tasks; ++i) q.put({i % tenants, i});
        for (std::size_t i = 0; i < tasks; ++i) {
            if (!q.take()) std::abort();
        }
    });
}

template <class Queue>
double live(std::size_t queued, std::size_t tenants) {
    constexpr std::size_t tasks = 300'000;
    Queue q{queued + 1024, 1};  // room to spare: what a full queue costs, threads_ tells
    for (std::uint64_t i = 0; i < queued; ++i) q.put({i % tenants, i});
    return ns_per_operation(tasks, [&] {
        for (std::uint64_t i = 0; i < tasks; ++i) {
            q.put({i % tenants, i});
            if (!q.take()) std::abort();
        }
    });
}

template <class Queue>
double threads(std::size_t producers, std::size_t consumers, std::size_t shards) {
    constexpr std::size_t in_all = 200'000;
    Queue q{1024, shards};
    std::size_t const each = in_all / producers;
    return ns_per_operation(each * producers, [&] {
        std::vector<std::jthread> taking;
        for (std::size_t c = 0; c < consumers; ++c) {
            taking.emplace_back([&q] {
                while (q.take_or_wait()) {
                }
            });
        }
        {
            std::vector<std::jthread> putting;
            for (std::size_t p = 0; p < producers; ++p) {
                putting.emplace_back([&q, each] {
                    for (std::uint64_t i = 0; i < each; ++i) q.put_or_wait({i % 1000, i});
                });
            }
        }
        q.close();
    });
}

class bench {
  public:
    explicit bench(std::span<char*> beginnings) : beginnings_(beginnings) {}

    bool measured() const { return measured_; }
    void one_thread();
    void many_threads();

  private:
    void compare(std::string const& name, contender const& ours,
                 std::vector<contender> const& peers) {
        bool chosen = beginnings_.empty();
        for (std::string_view const b : beginnings_) chosen = chosen || name.starts_with(b);
        if (!chosen) return;
        rondo::bench::compare("fair", name.c_str(), ours, peers, rounds);
        measured_ = true;
    }
    void compare_threads(std::size_t producers, std::size_t consumers, std::size_t shards);

    std::span<char*> beginnings_;
    bool measured_ = false;
};

void bench::one_thread() {
    for (std::size_t const n : {1U, 100U, 10'000U, 1'000'000U}) {
        compare("fill_drain_" + std::to_string(n),
                {"rondo", [n] { return fill_drain<fair_queue>(n); }},
                {{"hand_over", [n] { return fill_drain<hand_over_queue>(n); }},
                 {"fifo", [n] { return fill_drain<fifo_queue>(n); }},
                 {"mutex_map_drr", [n] { return fill_drain<paper_queue>(n); }}});
    }
    for (std::size_t const n : {1U, 100U, 10'000U}) {
        compare("interleaved_" + std::to_string(n),
                {"rondo", [n] { return live<fair_queue>(0, n); }},
                {{"hand_over", [n] { return live<hand_over_queue>(0, n); }},
                 {"fifo", [n] { return live<fifo_queue>(0, n); }},
                 {"mutex_map_drr", [n] { return live<paper_queue>(0, n); }}});
    }
    compare("live_20000_10000", {"rondo", [] { return live<fair_queue>(20'000, 10'000); }},
            {{"tenants_100", [] { return live<fair_queue>(20'000, 100); }},
             {"mutex_map_drr", [] { return live<paper_queue>(20'000, 10'000); }}});
    compare("live_1000000_100", {"rondo", [] { return live<fair_queue>(1'000'000, 100); }},
            {{"live_1000", [] { return live<fair_queue>(1'000, 100); }},
             {"mutex_map_drr", [] { return live<paper_queue>(1'000'000, 100); }}});
    for (std::size_t const s : {4U, 16U}) {
        compare("shards_" + std::to_string(s),
                {"rondo", [s] { return fill_drain<fair_queue>(10'000, s); }},
                {{"one_shard", [] { return fill_drain<fair_queue>(10'000); }}});
    }
}

void bench::many_threads() {
    for (std::size_t const n : {1U, 2U, 4U}) {
        for (std::size_t const shards : {1U, 4U, 16U}) compare_threads(n, n, shards);
    }
    compare_threads(4, 1, 1);
    compare_threads(1, 4, 1);
}

void bench::compare_threads(std::size_t producers, std::size_t consumers, std::size_t shards) {
    compare("threads_" + std::to_string(producers) + "x" + std::to_string(consumers) + "_" +
                std::to_string(shards),
            {"rondo", [=] { return threads<fair_queue>(producers, consumers, shards); }},
            {{"hand_over", [=] { return threads<hand_over_queue>(producers, consumers, 1); }},
             {"fifo", [=] { return threads<fifo_queue>(producers, consumers, 1); }},
             {"mutex_map_drr", [=] { return threads<paper_queue>(producers, consumers, 1); }}});
}

}  // namespace

int main(int argc, char** argv) {
    bench all{std::span{argv, static_cast<std::size_t>(argc)}.subspan(1)};
    all.one_thread();
    all.many_threads();
    if (all.measured()) return EXIT_SUCCESS;
    std::puts("no workload begins so");
    return EXIT_FAILURE;
}
