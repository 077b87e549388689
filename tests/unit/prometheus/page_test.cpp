// A page made by hand.
#include "rondo/prometheus/page.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "rondo/core/histogram.hpp"

namespace rondo::prometheus {
namespace {

using namespace std::chrono_literals;

TEST(PrometheusPage, HasFamiliesInTheOrderInWhichTheyWereMade) {
    page p;
    p.gauge("b_now", "How it is.").add(0.5);
    p.counter("a_total", "What was.").add(2, {{"who", "say \"hi\"\\\n"}});
    EXPECT_EQ(p.text(),
              "# HELP b_now How it is.\n# TYPE b_now gauge\nb_now 0.5\n"
              "# HELP a_total What was.\n# TYPE a_total counter\n"
              "a_total{who=\"say \\\"hi\\\"\\\\\\n\"} 2\n");
}

TEST(PrometheusPage, GivesTheSameFamilyForTheSameName) {
    page p;
    p.counter("a_total", "What was.").add(1, {{"n", "1"}});
    p.counter("a_total", "What was.").add(2, {{"n", "2"}});
    EXPECT_EQ(p.text(),
              "# HELP a_total What was.\n# TYPE a_total counter\n"
              "a_total{n=\"1\"} 1\na_total{n=\"2\"} 2\n");
}

TEST(PrometheusPage, ShowsNanosecondsAsSeconds) {
    histogram h;
    h.record(1ms);
    h.record(2s);
    page p;
    p.times("t_seconds", "How long.").add(h, {{"s", "x"}});
    std::string const text = p.text();
    EXPECT_NE(text.find("t_seconds_count{s=\"x\"} 2\n"), std::string::npos) << text;
    EXPECT_NE(text.find("t_seconds_sum{s=\"x\"} 2.001\n"), std::string::npos) << text;
    EXPECT_NE(text.find("t_seconds_bucket{s=\"x\",le=\"0.001048575\"} 1\n"), std::string::npos);
    EXPECT_NE(text.find("t_seconds_bucket{s=\"x\",le=\"+Inf\"} 2\n"), std::string::npos);
}

}  // namespace
}  // namespace rondo::prometheus
