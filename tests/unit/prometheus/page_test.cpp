// A page made by hand.
#include "rondo/prometheus/page.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

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

TEST(PrometheusPage, ShowsBytesThatAreNotUtf8AsTheCharactersOfTheirNumbers) {
    auto const shown = [](std::string value) {
        page p;
        p.gauge("g", "It.").add(1, {{"v", std::move(value)}});
        std::string const text = p.text();
        std::size_t const begin = text.find('"') + 1;
        return text.substr(begin, text.rfind('"') - begin);
    };
    for (char const* const valid : {"", "plain", "\xc3\xa9t\xc3\xa9", "\xe2\x82\xac",
                                    "\xed\x9f\xbf", "\xf0\x9f\x8e\xa1", "\xf4\x8f\xbf\xbf"}) {
        EXPECT_EQ(shown(valid), valid);
    }
    EXPECT_EQ(shown("caf\xe9"), "caf\xc3\xa9");
    EXPECT_EQ(shown("\xff!"), "\xc3\xbf!");
    EXPECT_EQ(shown("\xe2\x82"), "\xc3\xa2\xc2\x82") << "cut off";
    EXPECT_EQ(shown("\xe2\x82x"), "\xc3\xa2\xc2\x82x");
    EXPECT_EQ(shown("\xc0\xaf"), "\xc3\x80\xc2\xaf") << "longer than it need be";
    EXPECT_EQ(shown("\xe0\x80\xaf"), "\xc3\xa0\xc2\x80\xc2\xaf");
    EXPECT_EQ(shown("\xed\xa0\x80"), "\xc3\xad\xc2\xa0\xc2\x80") << "half of a pair";
    EXPECT_EQ(shown("\xf4\x90\x80\x80"), "\xc3\xb4\xc2\x90\xc2\x80\xc2\x80") << "too large";
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
