// Two tasks send numbers, a third adds them up: what README.md shows as a whole program.
// [program]
#include <chrono>
#include <cstdio>
#include <utility>

#include "rondo/core/with_timeout.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/sync/mpsc.hpp"

using namespace std::chrono_literals;
namespace mpsc = rondo::mpsc;

rondo::task<void> produce(mpsc::sender<int> to, int first) {
    for (int i = first; i < first + 100; ++i) (void)co_await to.send(i);  // waits for room
}

rondo::task<int> add_up(mpsc::receiver<int> from) {
    for (int sum = 0;;) {
        auto const number = co_await from.recv();
        if (!number) co_return sum;  // all senders are gone
        sum += *number;
    }
}

int main() {
    rondo::runtime rt{{.workers = 2}};
    auto [to, from] = mpsc::channel<int>(8);
    auto const low = rt.spawn(produce(to, 1));
    auto const high = rt.spawn(produce(std::move(to), 101));
    auto const sum = rt.block_on(rondo::with_timeout(add_up(std::move(from)), 5s));
    std::printf("%d\n", sum.value_or(-1));
    return sum == 20100 ? 0 : 1;
}
// [/program]
