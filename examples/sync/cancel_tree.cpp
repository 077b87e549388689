// A crawler with a token for each site under one for the whole: a site is given up alone, and the
// end of the whole reaches all that are left.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "rondo/core/block_on.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/sync/cancellation.hpp"

namespace {

using namespace std::chrono_literals;

// [cancellation]
rondo::task<int> crawl(std::string site) {
    int pages = 0;
    while (pages < 3) {
        co_await rondo::sleep_for(1ms);
        std::printf("%s: page %d\n", site.c_str(), ++pages);
    }
    co_await rondo::sleep_for(1h);  // the fourth never comes
    co_return pages;
}

rondo::task<bool> crawl_until_given_up(rondo::cancellation_token until, std::string site) {
    auto const pages = co_await until.run_until_cancelled(crawl(site));
    std::printf("%s was %s\n", site.c_str(), pages ? "crawled" : "given up");
    co_return !pages.has_value();
}

rondo::task<void> supervise(rondo::cancellation_token all, rondo::cancellation_token slow) {
    co_await rondo::sleep_for(2ms);
    slow.cancel();                       // one of them
    auto const ends = all.drop_guard();  // and when this task ends, the others
    co_await rondo::sleep_for(10ms);
}

rondo::task<bool> run() {
    rondo::cancellation_token const all;
    rondo::cancellation_token const a = all.child_token(), b = all.child_token();
    auto const [first, second, none] =
        co_await rondo::when_all(crawl_until_given_up(a, "a.example"),
                                 crawl_until_given_up(b, "b.example"), supervise(all, a));
    co_return first&& second&& all.is_cancelled();
}
// [/cancellation]

}  // namespace

int main() { return rondo::block_on(run()) ? EXIT_SUCCESS : EXIT_FAILURE; }
