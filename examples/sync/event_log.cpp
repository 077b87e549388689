// Several workers report to one log through an unbounded channel: a report never makes a worker
// wait. The log writes in batches, and ends by itself when the last worker is gone.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/task.hpp"
#include "rondo/sync/mpsc.hpp"

namespace {

namespace mpsc = rondo::mpsc;

struct event {
    int worker;
    int number;
};

// [log]
rondo::task<std::vector<event>> keep_log(mpsc::unbounded_receiver<event> events) {
    std::vector<event> written;
    std::vector<event> batch;
    for (;;) {
        batch.clear();
        auto const some = co_await events.recv_many(batch, 64);
        if (!some) co_return written;  // every worker is gone, and all they sent is written
        written.insert(written.end(), batch.begin(), batch.end());
    }
}

void work(mpsc::unbounded_sender<event> const& log, int worker) {
    for (int i = 0; i < 1000; ++i) (void)log.send({worker, i});
}
// [/log]

}  // namespace

int main() {
    auto [tx, rx] = mpsc::unbounded<event>();
    std::vector<std::jthread> workers;
    for (int w = 0; w < 3; ++w) workers.emplace_back([log = tx, w] { work(log, w); });
    {
        auto const ours = std::move(tx);  // only the workers send
    }
    std::vector<event> const log = rondo::block_on(keep_log(std::move(rx)));

    std::map<int, int> next;
    bool in_order = true;
    for (event const& e : log) in_order = in_order && e.number == next[e.worker]++;
    std::printf("%zu events of %zu workers, each worker's in its order: %s\n", log.size(),
                next.size(), in_order ? "yes" : "no");
    return in_order && log.size() == 3000 ? EXIT_SUCCESS : EXIT_FAILURE;
}
