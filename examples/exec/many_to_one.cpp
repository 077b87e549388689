// Two tasks send numbers, a third adds them up: what README.md shows as a whole program.
// [program]
#include <chrono>
#include <cstdio>
#include <utility>

#include "rondo/core/with_timeout.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/sync/mpsc.hpp"

using namespace std::chrono_literals;

rondo::task<void> produce(rondo::mpsc::sender<int> to, int first) {
    for (int i = first; i < first + 100; ++i) (void)co_await to.send(i);  // waits for room
}

rondo::task<int> add_up(rondo::mpsc::receiver<int> from) {
    int sum = 0;
    while (auto const number = co_await from.recv()) sum += *number;
    co_return sum;  // all senders are gone
}

int main() {
    rondo::runtime rt;
    auto [to, from] = rondo::mpsc::channel<int>(8);
    rt.spawn(produce(to, 1)).detach();
    rt.spawn(produce(std::move(to), 101)).detach();
    auto const sum = rt.block_on(rondo::with_timeout(add_up(std::move(from)), 5s));
    std::printf("%d\n", sum.value_or(-1));
    return sum == 20100 ? 0 : 1;
}
// [/program]
