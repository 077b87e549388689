// The page that a scraper gets: its names, its numbers, and what Prometheus itself says of it.
#include "rondo/prometheus/fair.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "rondo/fair/scheduler.hpp"
#include "support/child_process.hpp"
#include "support/manual_loop.hpp"

namespace rondo::prometheus {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;

using queue = fair::scheduler<int, std::string>;

fair::config<std::string> small(manual_loop& loop) {
    fair::config<std::string> c;
    c.time = &loop.timers();
    c.max_global = 4;
    c.max_per_tenant = 3;
    return c;
}

// One of everything.
void keep_busy(queue& q, manual_loop& loop) {
    for (int i = 0; i < 4; ++i) (void)q.enqueue("acme", i, {.cost = 5});  // one is refused
    auto const cancelled = q.enqueue_with_handle("say \"hi\"\\", 0);
    ASSERT_TRUE(cancelled);
    (void)q.enqueue("late", 0);  // no room in all
    (void)q.cancel(*cancelled);
    (void)q.enqueue("late", 0, {.deadline = loop.now() + 1ms});
    loop.pass(2ms);
    (void)q.try_dequeue();
}

bool has_line(std::string const& page, std::string_view line) {
    return ("\n" + page).find("\n" + std::string{line} + "\n") != std::string::npos;
}

TEST(PrometheusFair, EveryCounterIsThereWithItsValue) {
    manual_loop loop;
    queue q{small(loop)};
    keep_busy(q, loop);
    std::string const page = text({report(q)});
    for (std::string_view const line :
         {"rondo_fair_enqueued_total 5", "rondo_fair_dequeued_total 1",
          "rondo_fair_expired_total 1", "rondo_fair_cancelled_total 1",
          "rondo_fair_evicted_total 0", "rondo_fair_displaced_total 0",
          "rondo_fair_returned_total 0", "rondo_fair_dropped_total 2",
          "rondo_fair_rejected_total{reason=\"global\"} 1",
          "rondo_fair_rejected_total{reason=\"tenant\"} 1",
          "rondo_fair_rejected_total{reason=\"timeout\"} 0",
          "rondo_fair_rejected_total{reason=\"closed\"} 0", "rondo_fair_queued 2",
          "rondo_fair_capacity 4", "rondo_fair_tenants_active 1",
          "rondo_fair_queue_time_seconds_count 1", "rondo_fair_queue_time_seconds_sum 0.002",
          "rondo_fair_tenant_served_cost{tenant=\"acme\"} 5",
          "rondo_fair_tenant_served_cost{tenant=\"other\"} 0"}) {
        EXPECT_TRUE(has_line(page, line)) << line << "\nis not in\n" << page;
    }
}

TEST(PrometheusFair, BucketsHoldWhatIsNotAboveThemAndQuantilesAreInSeconds) {
    manual_loop loop;
    auto c = small(loop);
    c.max_global = c.max_per_tenant = 100;
    queue q{std::move(c)};
    for (auto const wait : {1'023ns, 1'024ns, 5'000'000ns, 90'000'000'000ns}) {
        ASSERT_TRUE(q.enqueue("a", 0));
        loop.pass(wait);
        ASSERT_TRUE(q.try_dequeue());
    }
    std::string const page = text({report(q)});
    for (std::string_view const line :
         {"rondo_fair_queue_time_seconds_bucket{le=\"1.023e-06\"} 1",
          "rondo_fair_queue_time_seconds_bucket{le=\"2.047e-06\"} 2",
          "rondo_fair_queue_time_seconds_bucket{le=\"0.016777215\"} 3",
          "rondo_fair_queue_time_seconds_bucket{le=\"+Inf\"} 4",
          "rondo_fair_queue_time_quantile_seconds{q=\"0.99\"} 90"}) {
        EXPECT_TRUE(has_line(page, line)) << line << "\nis not in\n" << page;
    }
}

TEST(PrometheusFair, SeveralSchedulersShareAFamilyAndAreToldApartByName) {
    manual_loop loop;
    queue one{small(loop)};
    fair::scheduler<int, std::tuple<int, std::string>> two;
    ASSERT_TRUE(two.enqueue({7, "upload"}, 0));
    ASSERT_TRUE(two.try_dequeue());
    std::string const page = text({report(one, "one"), report(two, "two")});
    EXPECT_TRUE(has_line(page, "rondo_fair_dequeued_total{scheduler=\"one\"} 0"));
    EXPECT_TRUE(has_line(page, "rondo_fair_dequeued_total{scheduler=\"two\"} 1"));
    EXPECT_TRUE(
        has_line(page, "rondo_fair_tenant_served_cost{scheduler=\"two\",tenant=\"7/upload\"} 1"));
    EXPECT_EQ(page.find("# TYPE rondo_fair_queued gauge"),
              page.rfind("# TYPE rondo_fair_queued gauge"));
}

TEST(PrometheusFair, ATenantWhoseNameIsOtherIsCountedWithTheOthers) {
    manual_loop loop;
    queue q{small(loop)};
    ASSERT_TRUE(q.enqueue("other", 0, {.cost = 3}));
    ASSERT_TRUE(q.enqueue("acme", 0, {.cost = 2}));
    while (q.try_dequeue()) {
    }
    std::string const page = text({report(q)});
    EXPECT_TRUE(has_line(page, "rondo_fair_tenant_served_cost{tenant=\"acme\"} 2"));
    EXPECT_TRUE(has_line(page, "rondo_fair_tenant_served_cost{tenant=\"other\"} 3"));
}

TEST(PrometheusFair, EmptyPartsOfAKeyAreShown) {
    fair::scheduler<int, std::tuple<std::string, std::string>> q;
    ASSERT_TRUE(q.enqueue({"", "x"}, 0));
    ASSERT_TRUE(q.enqueue({"x", ""}, 0));
    while (q.try_dequeue()) {
    }
    std::string const page = text({report(q)});
    EXPECT_TRUE(has_line(page, "rondo_fair_tenant_served_cost{tenant=\"/x\"} 1")) << page;
    EXPECT_TRUE(has_line(page, "rondo_fair_tenant_served_cost{tenant=\"x/\"} 1")) << page;
}

TEST(PrometheusFair, PartsOfAKeyMayHaveParts) {
    using place = std::pair<int, std::string>;
    fair::scheduler<int, std::tuple<place, std::string>> routes;
    ASSERT_TRUE(routes.enqueue({{1, "a"}, "x"}, 0));
    ASSERT_TRUE(routes.try_dequeue());
    std::string const of_routes = text({report(routes)});
    EXPECT_TRUE(has_line(of_routes, "rondo_fair_tenant_served_cost{tenant=\"1/a/x\"} 1"));
    fair::scheduler<int, std::pair<place, std::tuple<int, place>>> nested;
    ASSERT_TRUE(nested.enqueue({{1, "a"}, {2, {3, "b"}}}, 0));
    ASSERT_TRUE(nested.try_dequeue());
    std::string const of_nested = text({report(nested)});
    EXPECT_TRUE(has_line(of_nested, "rondo_fair_tenant_served_cost{tenant=\"1/a/2/3/b\"} 1"));
}

TEST(PrometheusFair, TenantsThatLookAlikeAreCountedTogether) {
    fair::scheduler<int, std::pair<std::string, std::string>> q;
    ASSERT_TRUE(q.enqueue({"a/b", "c"}, 0, {.cost = 2}));
    ASSERT_TRUE(q.enqueue({"a", "b/c"}, 0, {.cost = 3}));
    ASSERT_TRUE(q.enqueue({"\xe9", ""}, 0, {.cost = 4}));
    ASSERT_TRUE(q.enqueue({"\xc3\xa9", ""}, 0, {.cost = 5}));
    while (q.try_dequeue()) {
    }
    std::string const page = text({report(q)});
    EXPECT_TRUE(has_line(page, "rondo_fair_tenant_served_cost{tenant=\"a/b/c\"} 5")) << page;
    EXPECT_TRUE(has_line(page, "rondo_fair_tenant_served_cost{tenant=\"\xc3\xa9/\"} 9")) << page;
}

TEST(PrometheusFair, EveryFamilyIsDescribedAndNoOther) {
    manual_loop loop;
    queue q{small(loop)};
    keep_busy(q, loop);
    std::istringstream page{text({report(q)})};
    std::size_t families = 0;
    std::ifstream in{SOURCES "/docs/fair.md"};
    std::string const described{std::istreambuf_iterator<char>{in}, {}};
    for (std::string line; std::getline(page, line);) {
        if (!line.starts_with("# TYPE ")) continue;
        std::istringstream words{line.substr(7)};
        std::string name;
        std::string type;
        words >> name >> type;
        std::string const row = "\n| `" + name + "` | " + type + " |";
        EXPECT_NE(described.find(row), std::string::npos) << row;
        ++families;
    }
    std::size_t rows = 0;
    for (std::size_t at = 0; (at = described.find("\n| `rondo_", at)) != std::string::npos; ++at) {
        ++rows;
    }
    EXPECT_EQ(rows, families);
}

TEST(PrometheusFair, PromtoolFindsNothingWrongWithThePage) {
    std::string const promtool = RONDO_PROMTOOL;
    ASSERT_FALSE(promtool.empty()) << "promtool is missing: ./dev setup installs it (prometheus)";
    manual_loop loop;
    queue q{small(loop)};
    keep_busy(q, loop);
    test::scratch_directory const in;
    std::string const file = in.write("page", text({report(q, "one"), report(q, "two")})).string();
    std::string const said = file + ".said";
    int const status =
        std::system((promtool + " check metrics <" + file + " >" + said + " 2>&1").c_str());
    std::stringstream what;
    what << std::ifstream{said}.rdbuf();
    EXPECT_EQ(status, 0) << what.str();
    EXPECT_EQ(what.str(), "");
}

}  // namespace
}  // namespace rondo::prometheus
