// A runtime at work: tasks that spawn tasks, a function that blocks, a deadline, and a clean end.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/this_task.hpp"
#include "rondo/exec/runtime.hpp"

namespace {

using namespace std::chrono_literals;

// [spawn]
rondo::task<long> count_primes(long from, long to) {
    long found = 0;
    for (long n = from; n < to; ++n) {
        bool prime = n > 1;
        for (long d = 2; prime && d * d <= n; ++d) prime = n % d != 0;
        found += prime ? 1 : 0;
        if (n % 1000 == 0) co_await rondo::yield();  // long work lets others have a turn
    }
    co_return found;
}

// Each part may run on another worker.
rondo::task<long> count_in_parts(rondo::runtime* rt, long to, long part) {
    std::vector<rondo::join_handle<long>> parts;
    for (long from = 0; from < to; from += part) {
        parts.push_back(rt->spawn(count_primes(from, from + part)));
    }
    long sum = 0;
    for (auto& p : parts) {
        auto const found = co_await p.join();  // rethrows what the part threw
        sum += found.value_or(0);              // an error if it was stopped
    }
    co_return sum;
}
// [/spawn]

// [blocking]
// A call that blocks goes to a thread that may; the worker does other things meanwhile.
rondo::task<std::string> ask_slow_library(rondo::runtime* rt) {
    auto answer = rt->spawn_blocking([] {
        std::this_thread::sleep_for(5ms);
        return std::string{"an answer"};
    });
    auto const text = co_await answer.get();
    co_return text.value_or("no thread was free");
}
// [/blocking]

rondo::task<void> report_for_ever(int* reports) {
    for (;;) {
        co_await rondo::sleep_for(1ms);
        ++*reports;
    }
}

}  // namespace

int main() {
    rondo::runtime rt{{.workers = 2}};
    long const primes = rt.block_on(count_in_parts(&rt, 100'000, 5'000));
    std::printf("there are %ld primes below 100000\n", primes);
    std::printf("the library gave %s\n", rt.block_on(ask_slow_library(&rt)).c_str());

    int reports = 0;
    rt.spawn_pinned(report_for_ever(&reports)).detach();
    // [end]
    // Asks everything to stop and waits for it, but no longer than this.
    rondo::runtime::still_alive const left = rt.shutdown(10s);
    for (std::string const& origin : left.origins) std::printf("did not end: %s\n", origin.c_str());
    // [/end]
    return primes == 9592 && left.tasks == 0 ? 0 : 1;
}
