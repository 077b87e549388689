// A pipeline with bounded channels: a fast producer, a slow consumer, and never more than a few
// items between them. The last stage reserves its room before it computes, so that nothing is
// computed that cannot be passed on; and one stage that gives up in time gets its item back.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/mpsc.hpp"

namespace {

using namespace std::chrono_literals;
namespace mpsc = rondo::mpsc;

struct report {
    long sum = 0;
    std::size_t most_waiting = 0;
};

// [stages]
rondo::task<void> produce(mpsc::sender<int> to) {
    for (int i = 1; i <= 1000; ++i) (void)co_await to.send(i);  // waits while there is no room
}

rondo::task<void> square(mpsc::receiver<int> from, mpsc::sender<long> to) {
    for (;;) {
        auto room = co_await to.reserve();
        if (!room) break;  // nobody wants results any more
        auto const item = co_await from.recv();
        if (!item) break;  // the producer is done
        (void)room->send(long{*item} * *item);
    }
}

rondo::task<report> consume(mpsc::receiver<long> from) {
    report r;
    for (;;) {
        r.most_waiting = std::max(r.most_waiting, from.len());
        auto const item = co_await from.recv();
        if (!item) co_return r;
        r.sum += *item;
        co_await rondo::yield();  // slower than the others
    }
}
// [/stages]

rondo::task<bool> run() {
    rondo::environment const& here = co_await rondo::this_environment();
    auto [items, items_end] = mpsc::channel<int>(8);
    auto [squares, squares_end] = mpsc::channel<long>(4);
    auto producer = spawn(*here.where, produce(std::move(items)));
    auto middle = spawn(*here.where, square(std::move(items_end), std::move(squares)));
    report const r = co_await consume(std::move(squares_end));
    (void)co_await producer.join();
    (void)co_await middle.join();

    auto [late, closed_counter] = mpsc::channel<int>(1);
    (void)late.try_send(1);
    auto const refused = co_await late.send_for(2, 1ms);
    std::printf("sum of squares %ld, never more than %zu waited; item %d came back\n", r.sum,
                r.most_waiting, refused.error().value);
    co_return r.sum == 333833500 && r.most_waiting <= 4 && refused.error().value == 2;
}

}  // namespace

int main() { return rondo::block_on(run()) ? EXIT_SUCCESS : EXIT_FAILURE; }
