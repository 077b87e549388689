// The dashboard in a real Chromium, over real sockets; so real time. Screenshots are kept.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/admin.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/http/admission.hpp"
#include "rondo/http/server.hpp"
#include "rondo/monitor.hpp"
#include "support/chromium.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {
namespace {

using namespace std::chrono_literals;

constexpr char const* hostile = "<script>document.title='owned'</script>";

task<void> nobody_leaves() { co_await sleep_for(1h); }

task<void> visit(http::admission* turns, std::string tenant, int times) {
    for (int i = 0; i < times; ++i) {
        http::admission::request r{.tenant = tenant};
        auto const inside = co_await turns->admit(std::move(r), nobody_leaves());
        EXPECT_TRUE(inside.has_value());
    }
}

// What a gateway could say: more each time.
struct pretended {
    static http::admission_settings settings() {
        http::admission_settings s;
        s.limits.max_in_flight = 32;
        s.weights = {{"cedar", 2}};
        return s;
    }

    static task<std::unique_ptr<readings>> read(pretended* p) {
        std::uint64_t const n = ++p->times;
        co_await visit(&p->turns, "noisy", 40 + static_cast<int>(n % 5) * 6);
        co_await visit(&p->turns, "amber", 14);
        co_await visit(&p->turns, "cedar", 25);
        co_await visit(&p->turns, hostile, 9 + static_cast<int>(n % 3));
        auto r = std::make_unique<readings>();
        r->since = p->since;
        r->config_version = 7;
        r->draining = p->draining.load();
        r->turns = std::make_unique<turns_reading>(p->turns);
        server_reading s{"front", {"127.0.0.1:8080"}, 1024, nullptr, {}};
        s.report = std::make_unique<http::server::report>();
        s.report->totals = {.connections = 41, .accepted = 99, .requests = n * 90, .refused = 0};
        s.report->answers[2] = n * 85;
        s.report->in_flight = 5;  // none of them has a turn just now
        for (std::uint64_t i = 0; i < n * 90; ++i) s.report->times.record((i % 37) * 300us);
        route_table::backend_figures b;
        b.address = {boost::asio::ip::address_v4::loopback(), 9001};
        b.weight = 3;
        b.requests = n * 80;
        b.connections = 4;
        b.failures = 0;
        b.set_aside = false;
        b.route = "/api";
        s.backends.push_back(b);
        b.address.port(9002);
        b.failures = 2;
        b.set_aside = true;
        s.backends.push_back(b);
        r->servers.push_back(std::move(s));
        r->at = clock::now();
        co_return r;
    }

    http::admission turns{settings(), 2};
    time_point since = clock::now() - 90min;
    std::atomic<bool> draining{false};
    std::uint64_t times = 0;
};

class Dashboard : public testing::Test {
  protected:
    Dashboard() {
        EXPECT_TRUE(server.start().has_value());
        watching = rt.spawn(watcher.run());
        url = "http://127.0.0.1:" + std::to_string(server.addresses().at(0).port()) + "/";
    }
    ~Dashboard() override {
        watching->request_stop();
        (void)watching->blocking_join();
        (void)server.blocking_stop(0ms);
    }
    static http::server_options somewhere() {
        http::server_options o;
        o.listen = {{.address = {boost::asio::ip::address_v4::loopback(), 0}}};
        return o;
    }
    static std::filesystem::path shot(std::string const& name) {
        return std::filesystem::path{SCREENSHOTS} / (name + ".png");
    }

    runtime rt;
    pretended source;
    monitor watcher{[this] { return pretended::read(&source); }};
    admin desk{rt, watcher, [this] { return source.draining.load(); }};
    http::server server{rt, somewhere(), [this](http::exchange* x) { return desk.answer(x); }};
    std::optional<join_handle<void>> watching;
    std::string url;
};

std::string text_of(std::string const& id) {
    return "document.getElementById('" + id + "').textContent";
}

TEST_F(Dashboard, ShowsWhatChangesAsTextInLightAndDarkAndOnAPhone) {
    test::chromium browser{RONDO_CHROMIUM};
    browser.open(url);
    browser.look_like(1200, 1150, false, "light");
    ASSERT_TRUE(browser.becomes(text_of("state") + " === 'running'"));
    EXPECT_EQ(browser.evaluate(text_of("config_version")).as_string(), "7");
    EXPECT_EQ(browser.evaluate(text_of("limit")).as_string(), "of 32");
    ASSERT_TRUE(browser.becomes("document.querySelectorAll('#tenants tbody tr').length === 4"));

    // Values change.
    std::string const requests =
        "document.querySelector('#backends tbody tr').cells[6].textContent";
    std::string const before{browser.evaluate(requests).as_string()};
    EXPECT_TRUE(browser.becomes(requests + " !== '" + before + "'"));
    EXPECT_TRUE(browser.becomes("parseFloat(" + text_of("offered") + ") > 0"));
    EXPECT_TRUE(browser.becomes("document.querySelectorAll('#shares path').length > 4"));

    // What a tenant is called stays text.
    EXPECT_TRUE(browser
                    .evaluate("[...document.querySelectorAll('#tenants td:first-child')].some((c) "
                              "=> c.textContent === \"" +
                              std::string{hostile} + "\")")
                    .as_bool());
    EXPECT_EQ(browser.evaluate("document.title").as_string(), "rondo");
    EXPECT_EQ(browser.evaluate("document.querySelectorAll('main script').length").as_int64(), 0);

    // A backend that is set aside is told apart; nothing comes from elsewhere.
    EXPECT_TRUE(browser.evaluate("document.querySelector('#backends .bad') !== null").as_bool());
    EXPECT_TRUE(browser
                    .evaluate("performance.getEntriesByType('resource').every((r) => "
                              "r.name.startsWith(location.origin) || r.name === 'data:,')")
                    .as_bool());

    std::string const paper = "getComputedStyle(document.body).backgroundColor";
    std::string const light{browser.evaluate(paper).as_string()};
    browser.screenshot(shot("light"));
    browser.look_like(1200, 1150, false, "dark");
    EXPECT_TRUE(browser.becomes(paper + " !== '" + light + "'"));
    browser.screenshot(shot("dark"));

    browser.look_like(390, 844, true, "light");
    EXPECT_TRUE(browser.becomes("innerWidth === 390"));
    // Nothing is wider than the phone, and what is left out there is not shown.
    EXPECT_LE(browser.evaluate("document.documentElement.scrollWidth").as_int64(), 390);
    EXPECT_EQ(browser.evaluate("document.querySelector('td.wide').offsetWidth").as_int64(), 0);
    browser.screenshot(shot("phone"));

    source.draining = true;
    EXPECT_TRUE(browser.becomes("!document.getElementById('drain').hidden"));
    EXPECT_EQ(browser.evaluate(text_of("state")).as_string(), "draining");
    EXPECT_EQ(browser.evaluate(text_of("drain")).as_string(),
              "Ending: 41 connections are open, 5 requests are not answered yet.");

    // A tenant that comes late has a shade as soon as one that had it is not shown any more.
    std::string const later =
        "[...'abcdefgh'].forEach((name) => take({tenants: [{name}]})); const full = shade('h');"
        "for (let i = 0; i < remembered; ++i) take({tenants: [{name: 'h'}]});"
        "`${full} ${shade('h')} ${slots.size}`";
    EXPECT_EQ(browser.evaluate("history = []; slots.clear(); " + later).as_string(), "rest s0 1");
}

// A browser asks again by itself only if it gets no answer; one that says no is the end for it.
TEST_F(Dashboard, AsksAgainWhenThereIsNoRoomForIt) {
    std::vector<test::wire> others;
    for (std::size_t i = 0; i < admin::most_watchers; ++i) {
        others.push_back(test::wire::to(server.addresses().at(0).port()));
        others.back().send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        EXPECT_NE(others.back().read_head().find(" 200 "), std::string::npos);
    }
    test::chromium browser{RONDO_CHROMIUM};
    browser.open(url);
    ASSERT_TRUE(browser.becomes(text_of("state") + " === 'no answer'"));
    others.clear();
    EXPECT_TRUE(browser.becomes(text_of("state") + " === 'running'"));
}

}  // namespace
}  // namespace rondo::gateway
