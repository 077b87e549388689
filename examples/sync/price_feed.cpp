// A price feed: one sender, three subscribers. The attentive one sees every price, the late one
// those since it came, the slow one learns how many it has missed and goes on with what is left.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/broadcast.hpp"

namespace {

namespace broadcast = rondo::broadcast;

struct seen {
    int prices = 0;
    std::uint64_t missed = 0;
    int last = 0;
};

// [follow]
rondo::task<seen> follow(broadcast::receiver<int> feed, int turns_between) {
    seen all;
    for (;;) {
        auto const price = co_await feed.recv();
        if (price) {
            ++all.prices;
            all.last = *price;
        } else if (price.error().why == broadcast::recv_failure::lagged) {
            all.missed += price.error().missed;
        } else {
            co_return all;  // the feed has ended
        }
        for (int i = 0; i < turns_between; ++i) co_await rondo::yield();
    }
}
// [/follow]

rondo::task<bool> run() {
    rondo::environment const& here = co_await rondo::this_environment();
    auto [feed, first] = broadcast::channel<int>(8);
    auto attentive = spawn(*here.where, follow(std::move(first), 0));
    auto slow = spawn(*here.where, follow(feed.subscribe(), 3));
    for (int price = 1; price <= 50; ++price) {
        (void)feed.send(price);
        co_await rondo::yield();
    }
    auto late = spawn(*here.where, follow(feed.subscribe(), 0));
    for (int price = 51; price <= 100; ++price) {
        (void)feed.send(price);
        co_await rondo::yield();
    }
    {
        auto const ended = std::move(feed);
    }
    auto const a = co_await attentive.join();
    auto const s = co_await slow.join();
    auto const l = co_await late.join();
    std::printf("attentive: %3d prices, missed %llu\n", a->prices,
                static_cast<unsigned long long>(a->missed));
    std::printf("late:      %3d prices, missed %llu\n", l->prices,
                static_cast<unsigned long long>(l->missed));
    std::printf("slow:      %3d prices, missed %llu\n", s->prices,
                static_cast<unsigned long long>(s->missed));
    bool const complete = a->prices == 100 && a->missed == 0 && l->prices == 50 && l->missed == 0;
    bool const accounted =
        s->missed > 0 && static_cast<std::uint64_t>(s->prices) + s->missed == 100;
    co_return complete&& accounted && s->last == 100;
}

}  // namespace

int main() { return rondo::block_on(run()) ? EXIT_SUCCESS : EXIT_FAILURE; }
