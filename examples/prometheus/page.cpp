// The page that a scraper of Prometheus gets of a scheduler.
#include <cstdio>
#include <string>

#include "rondo/fair/scheduler.hpp"
#include "rondo/prometheus/fair.hpp"

int main() {
    rondo::fair::scheduler<int, std::string> uploads;
    for (int i = 0; i < 30; ++i) {
        if (!uploads.enqueue(i % 3 == 0 ? "acme" : "initech", i, {.cost = 2})) return 1;
    }
    for (int i = 0; i < 20; ++i) {
        if (!uploads.try_dequeue()) return 1;
    }
    std::string const page =
        rondo::prometheus::text({rondo::prometheus::report(uploads, "uploads")});
    std::fputs(page.c_str(), stdout);
    return page.contains("rondo_fair_queued{scheduler=\"uploads\"} 10\n") ? 0 : 1;
}
