// The access log of a gateway that runs: a line for each request, however it ended.
#include "rondo/access_log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "forwarding.hpp"
#include "held_upstream.hpp"
#include "running.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {
namespace {

using namespace std::chrono_literals;
using test::scripted_server;
using test::wire;

std::string const logging = "[gateway]\naccess_log = 'json'\n";

// The line of that target; "" if there is none.
std::string line_of(std::string const& log, std::string_view target) {
    std::string const mark = "\"target\":\"" + std::string{target} + "\"";
    std::size_t const at = log.find(mark);
    if (at == std::string::npos) return "";
    std::size_t const begin = log.rfind('\n', at) + 1;
    return log.substr(begin, log.find('\n', at) - begin);
}
bool has(std::string const& line, std::string_view part) {
    return line.find(part) != std::string::npos;
}
double number_in(std::string const& line, std::string_view name) {
    std::string const mark = "\"" + std::string{name} + "\":";
    std::size_t const at = line.find(mark);
    return at == std::string::npos ? -1 : std::stod(line.substr(at + mark.size()));
}

TEST(AccessLogOfGateway, SaysWhoseARequestWasHowLongItWaitedAndWhatCameBack) {
    testing::internal::CaptureStdout();
    {
        held_upstream up;
        running r{logging +
                  "[admission]\nmax_in_flight = 1\nmax_queued = 1\nwhen_full = 'reject'\n"
                  "[tenants]\nkey = ['header:X-Tenant']\ntrusted = ['127.0.0.1']\n"
                  "[admin]\nlisten = '127.0.0.1:0'\n" +
                  forwarding_to("'" + up.address() + "'")};
        wire first = r.connect();
        first.send(get("/first", "acme"));
        up.await_request();
        wire second = r.connect();
        second.send(
            "GET /second HTTP/1.1\r\nHost: h\r\nX-Tenant: zeta\r\nX-Request-Id: id-2\r\n"
            "Connection: close\r\n\r\n");
        while (!has(body_of(r.ask_admin("/metrics")), "\nrondo_admission_queued 1\n")) {
            std::this_thread::yield();
        }
        EXPECT_EQ(status_of(r.ask("/third", "X-Tenant: third\r\n")), "503");
        up.let_go(2);
        EXPECT_EQ(body_of(first.read_to_end()), "ok");
        EXPECT_EQ(body_of(second.read_to_end()), "ok");
    }
    std::string const log = testing::internal::GetCapturedStdout();
    std::string const first = line_of(log, "/first");
    EXPECT_TRUE(has(first, "\"client\":\"127.0.0.1\",\"method\":\"GET\"")) << log;
    EXPECT_TRUE(has(first, "\"status\":200,\"bytes\":2,")) << log;
    EXPECT_TRUE(has(first, "\"tenant\":\"acme\"")) << log;
    EXPECT_EQ(number_in(first, "wait_ms"), 0) << log;
    std::string const second = line_of(log, "/second");
    EXPECT_TRUE(has(second, "\"tenant\":\"zeta\"")) << log;
    EXPECT_TRUE(has(second, "\"request_id\":\"id-2\"")) << log;
    EXPECT_GT(number_in(second, "wait_ms"), 0) << log;
    EXPECT_LE(number_in(second, "wait_ms"), number_in(second, "duration_ms")) << log;
    std::string const third = line_of(log, "/third");
    EXPECT_TRUE(has(third, "\"status\":503") && has(third, "\"refused\":\"full\"")) << log;
}

// What the connection answers for a handler that could not.
TEST(AccessLogOfGateway, HasTheStatusOfAnAnswerThatNoBackendGave) {
    testing::internal::CaptureStdout();
    {
        scripted_server up{[](wire& w) { (void)w.read_to_end(); }};
        std::string const patient = logging + forwarding_to(quoted(up));
        running r{patient};
        wire bad = r.connect();
        bad.send("POST /bad HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n");
        EXPECT_EQ(status_of(bad.read_to_end()), "400");
        wire gone = r.connect();
        gone.send("POST /gone HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nx");
        gone.end_sending();
        EXPECT_EQ(gone.read_to_end(), "");
        // Not before: who is held up between sending and leaving would be late by itself.
        ASSERT_TRUE(r.reload(patient + "timeouts = { idle = '50ms' }\n"));
        wire slow = r.connect();
        slow.send("POST /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nx");
        EXPECT_EQ(status_of(slow.read_to_end()), "408");
    }
    std::string const log = testing::internal::GetCapturedStdout();
    EXPECT_EQ(number_in(line_of(log, "/bad"), "status"), 400) << log;
    EXPECT_EQ(number_in(line_of(log, "/slow"), "status"), 408) << log;
    EXPECT_EQ(number_in(line_of(log, "/gone"), "status"), 0) << log;
}

TEST(AccessLogOfGateway, HasThePathThatCouldBeReadAsTwo) {
    testing::internal::CaptureStdout();
    {
        scripted_server up{[](wire& w) { (void)w.read_to_end(); }};
        running r{logging +
                  "[[server]]\nlisten = '127.0.0.1:0'\nmatch = [ { uri = '/a', forward = " +
                  quoted(up) + " } ]\n"};
        EXPECT_EQ(status_of(r.ask("/a/../b")), "400");
        EXPECT_EQ(status_of(r.ask("/b/../c")), "404");
    }
    std::string const log = testing::internal::GetCapturedStdout();
    EXPECT_EQ(number_in(line_of(log, "/a/../b"), "status"), 400) << log;
    EXPECT_EQ(number_in(line_of(log, "/b/../c"), "status"), 404) << log;
}

TEST(AccessLogOfGateway, HasALineForWhatCouldNotBeUnderstood) {
    testing::internal::CaptureStdout();
    {
        scripted_server up{always(ok)};
        std::string const patient = logging + forwarding_to(quoted(up));
        running r{patient};
        wire bad = r.connect();
        bad.send("GET / HTTP/1.1\r\nHost: h\r\nX : 1\r\n\r\n");
        EXPECT_EQ(status_of(bad.read_to_end()), "400");
        wire slow = r.connect();
        slow.send("GET /before HTTP/1.1\r\nHost: h\r\n\r\n");
        EXPECT_EQ(body_of(slow.read_message()), "ok");
        // Not before: who is held up between connecting and sending would be late by itself.
        ASSERT_TRUE(r.reload(patient + "timeouts = { header = '50ms' }\n"));
        slow.send("GET / HT");
        EXPECT_EQ(status_of(slow.read_to_end()), "408");
        EXPECT_EQ(r.connect().read_to_end(), "");  // who says nothing has asked for nothing
    }
    std::string const log = testing::internal::GetCapturedStdout();
    EXPECT_EQ(std::ranges::count(log, '\n'), 3) << log;
    EXPECT_EQ(number_in(line_of(log, "/before"), "status"), 200) << log;
    EXPECT_TRUE(
        has(log, R"("client":"127.0.0.1","method":"","target":"","status":400,"bytes":32,)"))
        << log;
    EXPECT_TRUE(has(log, R"("refused":"malformed","reason":"there is a space before a colon"})"))
        << log;
    EXPECT_TRUE(has(log, R"("refused":"too_slow","reason":"the header did not come in time"})"))
        << log;
}

TEST(AccessLog, OfWhatCouldNotBeUnderstoodHasNoMethod) {
    access_record r;
    r.time = std::chrono::system_clock::time_point{1'767'323'045'678ms};
    r.client = "192.0.2.1";
    r.status = 400;
    r.refused = "malformed";
    r.reason = "there is no Host";
    EXPECT_EQ(to_text(r),
              "2026-01-02T03:04:05.678Z 192.0.2.1 \"-\" 400 0B 0.0ms refused=malformed "
              "reason=\"there is no Host\"");
}

}  // namespace
}  // namespace rondo::gateway
