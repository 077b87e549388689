// A table that many look up and few change. A writer waits for the readers before it and is not
// overtaken by those after it; having written, it downgrades and reads on what it wrote while the
// others come in.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/rwlock.hpp"

namespace {

using table = std::map<std::string, std::string>;

struct statistics {
    int reading = 0;
    int most_at_a_time = 0;
    std::vector<std::string> found;
};

// [read]
rondo::task<void> look_up(rondo::rwlock<table>& routes, std::string path, statistics& seen) {
    auto const reading = co_await routes.read();
    seen.most_at_a_time = std::max(seen.most_at_a_time, ++seen.reading);
    co_await rondo::yield();  // the others who read are in meanwhile
    auto const route = reading->find(path);
    seen.found.push_back(route == reading->end() ? "nothing" : route->second);
    --seen.reading;
}
// [/read]

// [write]
rondo::task<std::size_t> add(rondo::rwlock<table>& routes, std::string path, std::string to) {
    auto writing = co_await routes.write();
    writing->insert_or_assign(std::move(path), std::move(to));
    auto const reading = std::move(writing).downgrade();  // nobody writes in between
    co_await rondo::yield();
    co_return reading->size();
}
// [/write]

rondo::task<std::size_t> run(statistics& seen) {
    rondo::environment const& here = co_await rondo::this_environment();
    rondo::rwlock<table> routes{table{{"/", "index"}}};
    std::vector<rondo::join_handle<void>> readers;
    auto const look_up_thrice = [&] {
        for (int i = 0; i < 3; ++i) {
            readers.push_back(spawn(*here.where, look_up(routes, "/shop", seen)));
        }
    };
    look_up_thrice();
    auto writer = spawn(*here.where, add(routes, "/shop", "shop"));
    look_up_thrice();
    for (auto& reader : readers) (void)co_await reader.join();
    auto const size = co_await writer.join();
    co_return size.value();
}

}  // namespace

int main() {
    statistics seen;
    std::size_t const size = rondo::block_on(run(seen));
    for (std::string const& route : seen.found) std::printf("/shop leads to %s\n", route.c_str());
    std::printf("%d read at a time, %zu routes\n", seen.most_at_a_time, size);
    std::vector<std::string> const expected{"nothing", "nothing", "nothing",
                                            "shop",    "shop",    "shop"};
    bool const right = seen.found == expected && seen.most_at_a_time == 3 && size == 2;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
