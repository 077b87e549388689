// What it costs to record a latency, and to ask for a quantile, against the two usual ways: count
// into a few fixed buckets, which then cannot answer to within 1 %, or keep every sample, which
// is the cheapest to record, needs memory without end, and pays when it is asked.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "../support/ratio.hpp"
#include "rondo/core/histogram.hpp"

namespace {

using rondo::bench::ns_per_operation;

constexpr std::size_t sample_count = 1'000'000;

// Log-normal around 200 us, like latencies.
std::vector<std::uint64_t> make_samples() {
    std::mt19937_64 random(1);
    std::lognormal_distribution<double> latency(std::log(200e3), 1.0);
    std::vector<std::uint64_t> samples(sample_count);
    for (std::uint64_t& sample : samples) {
        sample = static_cast<std::uint64_t>(latency(random));
    }
    return samples;
}

// The default bounds of Prometheus clients (5 ms to 10 s), here from 5 us to 10 ms.
class fixed_buckets {
  public:
    void record(std::uint64_t value) {
        ++counts_[static_cast<std::size_t>(std::ranges::lower_bound(bounds_, value) -
                                           bounds_.begin())];
        sum_ += value;
    }

  private:
    static constexpr std::array<std::uint64_t, 11> bounds_{
        5'000,   10'000,    25'000,    50'000,    100'000,   250'000,
        500'000, 1'000'000, 2'500'000, 5'000'000, 10'000'000};
    std::array<std::uint64_t, bounds_.size() + 1> counts_{};
    std::uint64_t sum_ = 0;
};

void bench_record(std::vector<std::uint64_t> const& samples) {
    rondo::histogram ours;
    fixed_buckets fixed;
    std::vector<std::uint64_t> all;
    all.reserve(sample_count);
    rondo::bench::compare("core", "histogram_record",
                          {"rondo",
                           [&] {
                               return ns_per_operation(sample_count, [&] {
                                   for (std::uint64_t sample : samples) {
                                       ours.record(sample);
                                       benchmark::ClobberMemory();
                                   }
                               });
                           }},
                          {{"fixed_buckets",
                            [&] {
                                return ns_per_operation(sample_count, [&] {
                                    for (std::uint64_t sample : samples) {
                                        fixed.record(sample);
                                        benchmark::ClobberMemory();
                                    }
                                });
                            }},
                           {"vector_push_back", [&] {
                                all.clear();
                                return ns_per_operation(sample_count, [&] {
                                    for (std::uint64_t sample : samples) {
                                        all.push_back(sample);
                                        benchmark::ClobberMemory();
                                    }
                                });
                            }}});
    benchmark::DoNotOptimize(ours);
    benchmark::DoNotOptimize(fixed);
}

void bench_quantile(std::vector<std::uint64_t> const& samples) {
    rondo::histogram ours;
    for (std::uint64_t sample : samples) {
        ours.record(sample);
    }
    rondo::bench::compare("core", "histogram_p99_of_1e6",
                          {"rondo",
                           [&] {
                               return ns_per_operation(100, [&] {
                                   for (int i = 0; i < 100; ++i) {
                                       std::uint64_t p99 = ours.quantile(0.99);
                                       benchmark::DoNotOptimize(p99);
                                   }
                               });
                           }},
                          {{"nth_element", [&] {
                                std::vector<std::uint64_t> all = samples;
                                return ns_per_operation(1, [&] {
                                    auto const p99 = all.begin() + sample_count * 99 / 100;
                                    std::ranges::nth_element(all, p99);
                                    benchmark::DoNotOptimize(*p99);
                                });
                            }}});
}

}  // namespace

int main() {
    std::vector<std::uint64_t> const samples = make_samples();
    bench_record(samples);
    bench_quantile(samples);
}
