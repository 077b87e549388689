// A table that many look up and few change. A writer waits for the readers before it and is not
// overtaken by those after it; having written, it downgrades and reads on what it wrote while the
// others come in.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/rwlock.hpp"

namespace {

class router {
  public:
    // [read]
    rondo::task<void> look_up(std::string path) {
        auto const routes = co_await routes_.read();
        most_at_a_time_ = std::max(most_at_a_time_, ++reading_);
        co_await rondo::yield();  // the others who read are in meanwhile
        auto const route = routes->find(path);
        found_.push_back(route == routes->end() ? "nothing" : route->second);
        --reading_;
    }
    // [/read]

    // [write]
    rondo::task<std::size_t> add(std::string path, std::string to) {
        auto writing = co_await routes_.write();
        writing->insert_or_assign(std::move(path), std::move(to));
        auto const reading = std::move(writing).downgrade();  // nobody writes in between
        co_await rondo::yield();
        co_return reading->size();
    }
    // [/write]

    rondo::task<std::size_t> run() {
        rondo::environment const& here = co_await rondo::this_environment();
        std::vector<rondo::join_handle<void>> readers;
        auto const look_up_thrice = [&] {
            for (int i = 0; i < 3; ++i) readers.push_back(spawn(*here.where, look_up("/shop")));
        };
        look_up_thrice();
        auto writer = spawn(*here.where, add("/shop", "shop"));
        look_up_thrice();
        for (auto& reader : readers) (void)co_await reader.join();
        auto const size = co_await writer.join();
        co_return size.value();
    }

    bool report() const {
        for (std::string const& route : found_) std::printf("/shop leads to %s\n", route.c_str());
        std::printf("%d read at a time\n", most_at_a_time_);
        std::vector<std::string> const expected{"nothing", "nothing", "nothing",
                                                "shop",    "shop",    "shop"};
        return found_ == expected && most_at_a_time_ == 3;
    }

  private:
    using table = std::map<std::string, std::string>;

    rondo::rwlock<table> routes_{table{{"/", "index"}}};
    int reading_ = 0;
    int most_at_a_time_ = 0;
    std::vector<std::string> found_;
};

}  // namespace

int main() {
    router r;
    std::size_t const size = rondo::block_on(r.run());
    return r.report() && size == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
