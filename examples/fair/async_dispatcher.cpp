// Calls to a slow service, at most four at a time, whoever asks: a dispatcher over any executor.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "rondo/core/block_on.hpp"
#include "rondo/core/executor.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/fair/dispatcher.hpp"

namespace {

using namespace std::chrono_literals;

using queue = rondo::fair::scheduler<int, std::string>;

struct seen {
    std::size_t now = 0;
    std::size_t most = 0;
    std::map<std::string, int> answered;
};

rondo::task<void> call_service(queue::task call, seen* all) {
    all->most = std::max(all->most, ++all->now);
    co_await rondo::sleep_for(2ms);  // the service thinks
    --all->now;
    ++all->answered[call.tenant];
}

// [dispatcher]
rondo::task<void> serve(queue* calls, seen* all) {
    rondo::executor& here = *rondo::executor::current();
    auto const call = [all](queue::task next) { return call_service(std::move(next), all); };
    rondo::fair::dispatcher<int, std::string> four_at_a_time{*calls, here, 4, call};

    for (int i = 0; i < 40; ++i) (void)calls->enqueue("crawler", i);
    for (int i = 0; i < 4; ++i) (void)calls->enqueue("person", i);
    co_await rondo::sleep_for(8ms);
    std::printf("after 8 ms the person has %d of 4 answers, the crawler %d of 40\n",
                all->answered["person"], all->answered["crawler"]);

    co_await four_at_a_time.drain();  // nothing new; what was accepted is run
}
// [/dispatcher]

}  // namespace

int main() {
    rondo::fair::config<std::string> config;
    config.quantum = 1;
    queue calls{config};
    seen all;
    rondo::block_on(serve(&calls, &all));
    std::printf("at the end %d and %d, never more than %zu in flight\n", all.answered["person"],
                all.answered["crawler"], all.most);
    bool const right =
        all.answered["person"] == 4 && all.answered["crawler"] == 40 && all.most == 4;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
