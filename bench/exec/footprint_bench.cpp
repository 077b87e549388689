// What a runtime costs that does nothing: memory of a million tasks that wait, CPU of ten idle
// seconds.
//
//   fact exec live_task bytes=<n> tasks=1000000
//   fact exec idle cpu_ms=<n> seconds=10 workers=2
#include <malloc.h>
#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

#include "rondo/core/this_task.hpp"
#include "rondo/exec/runtime.hpp"

namespace {

using namespace std::chrono_literals;

std::size_t bytes_in_use() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

double cpu_ms() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    auto const ms = [](timeval t) {
        return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
    };
    return ms(used.ru_utime) + ms(used.ru_stime);
}

rondo::task<void> wait_for_long() { co_await rondo::sleep_for(24h); }

rondo::task<void> nothing() { co_return; }

void live_tasks() {
    constexpr std::size_t count = 1'000'000;
    rondo::runtime rt{{.workers = 2}};
    std::size_t const before = bytes_in_use();
    for (std::size_t i = 0; i < count; ++i) rt.spawn(wait_for_long()).detach();
    while (rt.measure().outside != 0) std::this_thread::sleep_for(10ms);
    std::printf("fact exec live_task bytes=%zu tasks=%zu\n", (bytes_in_use() - before) / count,
                rt.measure().tasks);
}

void idle() {
    constexpr int seconds = 10;
    rondo::runtime rt{{.workers = 2}};
    rt.block_on(nothing());
    std::this_thread::sleep_for(100ms);  // until the workers have gone to sleep
    double const before = cpu_ms();
    std::this_thread::sleep_for(std::chrono::seconds{seconds});
    std::printf("fact exec idle cpu_ms=%.2f seconds=%d workers=2\n", cpu_ms() - before, seconds);
}

}  // namespace

int main() {
    live_tasks();
    idle();
}
