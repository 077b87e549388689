// Admission: by hand and with a clock of the test's, then with real connections.
#include "rondo/http/admission.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <expected>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/http/tenant_ledger.hpp"
#include "rondo/sync/notify.hpp"
#include "rondo/sync/semaphore.hpp"
#include "support/manual_loop.hpp"
#include "wire.hpp"

namespace rondo::http {
namespace {

using namespace std::chrono_literals;
using test::body_in;
using test::manual_loop;
using test::served;
using test::status_in;
using test::wire;

admission_settings room_for(std::size_t in_flight) {
    admission_settings s;
    s.limits.max_in_flight = in_flight;
    s.tenants.key = {*parse_tenant_key("header:x-tenant"), *parse_tenant_key("address")};
    s.tenants.trusted = {*parse_network("127.0.0.0/8")};
    return s;
}

std::optional<tenant_figures> of(admission const& a, std::string_view tenant) {
    for (tenant_figures& f : a.tenants()) {
        if (f.tenant == tenant) return std::move(f);
    }
    return std::nullopt;
}

// --- by hand ---------------------------------------------------------------------------------

struct caller {
    std::optional<std::expected<admission::stay, refused>> got;
    time_point at{};

    bool waits() const { return !got.has_value(); }
    bool in() const { return got && got->has_value(); }
};

class AdmissionByHand : public testing::Test {
  public:
    manual_loop loop;
    notify leaves;

    static task<void> never() {
        notify nobody;
        co_await nobody.notified();
    }
    static task<void> until(notify* n) { co_await n->notified(); }
    static task<void> ask(admission* at, admission::request r, caller* c, task<void> gone,
                          manual_loop* by) {
        auto got = co_await at->admit(std::move(r), std::move(gone));
        c->at = by->now();
        c->got.emplace(std::move(got));
    }
    void come(admission& at, caller& c, std::string tenant, clock::duration patience = 1h) {
        admission::request r;
        r.tenant = std::move(tenant);
        r.deadline = loop.now() + patience;
        spawn(loop, ask(&at, std::move(r), &c, never(), &loop)).detach();
        loop.run_ready();
    }
};

TEST_F(AdmissionByHand, LetsInWhoFindsRoomAndNotesWhoItWas) {
    admission a{room_for(1), 1, 8, &loop.timers()};
    caller one;
    caller two;
    come(a, one, "acme");
    come(a, two, "zeta");
    EXPECT_TRUE(one.in());
    EXPECT_TRUE(two.waits());
    EXPECT_EQ(of(a, "acme")->in_flight, 1U);
    EXPECT_EQ(of(a, "zeta")->queued, 1U);
    loop.advance(3ms);
    one.got.reset();
    loop.run_ready();
    ASSERT_TRUE(two.in());
    EXPECT_EQ((*two.got)->waited(), 3ms);
    EXPECT_EQ(of(a, "acme")->in_flight, 0U);
    EXPECT_EQ(of(a, "zeta")->queued, 0U);
    EXPECT_EQ(of(a, "zeta")->admitted, 1U);
    EXPECT_NEAR(static_cast<double>(of(a, "zeta")->waits.quantile(0.5) / 1us), 3000, 600);
}

TEST_F(AdmissionByHand, TellsAtTheDeadlineAndNotWhenTheTurnComes) {
    admission a{room_for(1), 1, 8, &loop.timers()};
    caller in;
    caller late;
    come(a, in, "acme");
    time_point const came = loop.now();
    come(a, late, "zeta", 250ms);
    loop.advance(1s);
    ASSERT_FALSE(late.waits());
    EXPECT_EQ(late.got->error(), refused::expired);
    EXPECT_EQ(late.at, came + 250ms);
    EXPECT_EQ(of(a, "zeta")->expired, 1U);
    EXPECT_EQ(a.stats().queued, 0U);
}

TEST_F(AdmissionByHand, TellsSoLongBeforeTheDeadlineAsAnAnswerTakes) {
    auto s = room_for(1);
    s.deadline_reserve = 80ms;
    admission a{s, 1, 8, &loop.timers()};
    caller in;
    caller late;
    caller hopeless;
    caller patient;
    come(a, in, "acme", 10ms);  // there is room: nobody is refused for what may be
    EXPECT_TRUE(in.in());
    time_point const came = loop.now();
    come(a, late, "zeta", 250ms);
    come(a, hopeless, "zeta", 80ms);
    come(a, patient, "zeta", clock::duration::max() - loop.now().time_since_epoch());
    loop.advance(1s);
    EXPECT_EQ(late.got->error(), refused::expired);
    EXPECT_EQ(late.at, came + 170ms);
    EXPECT_EQ(hopeless.got->error(), refused::expired);
    EXPECT_EQ(hopeless.at, came);
    EXPECT_TRUE(patient.waits());
    in.got.reset();
    loop.run_ready();
    EXPECT_TRUE(patient.in());
}

TEST_F(AdmissionByHand, AWaitThatIsTooLongIsNotTheFaultOfADeadline) {
    auto s = room_for(1);
    s.limits.max_wait = 20ms;
    admission a{s, 1, 8, &loop.timers()};
    caller in;
    caller late;
    come(a, in, "acme");
    come(a, late, "zeta", 250ms);
    loop.advance(20ms);
    ASSERT_FALSE(late.waits());
    EXPECT_EQ(late.got->error(), refused::waited_too_long);
}

TEST_F(AdmissionByHand, WhoHasGoneLeavesTheLine) {
    admission a{room_for(1), 1, 8, &loop.timers()};
    caller in;
    caller gone;
    caller next;
    come(a, in, "acme");
    admission::request r;
    r.tenant = "zeta";
    spawn(loop, ask(&a, std::move(r), &gone, until(&leaves), &loop)).detach();
    loop.run_ready();
    come(a, next, "other");
    leaves.notify_one();
    loop.run_ready();
    ASSERT_FALSE(gone.waits());
    EXPECT_EQ(gone.got->error(), refused::gone);
    EXPECT_EQ(of(a, "zeta")->gone, 1U);
    in.got.reset();
    loop.run_ready();
    EXPECT_TRUE(next.in());
}

TEST_F(AdmissionByHand, SlowRequestsPayForTheTimeTheyTake) {
    auto s = room_for(1);
    s.cost = cost_by::measured;
    admission a{s, 1, 1, &loop.timers()};
    caller first;
    come(a, first, "-");
    std::vector<caller> slow(10);
    std::vector<caller> quick(40);
    for (caller& c : slow) come(a, c, "slow");
    for (caller& c : quick) come(a, c, "quick");
    first.got.reset();
    std::size_t slow_ones = 0;
    for (int turn = 0; turn < 30; ++turn) {
        loop.run_ready();
        for (caller& c : slow) {
            if (!c.in()) continue;
            ++slow_ones;
            loop.advance(9ms);
            c.got.reset();
            c.got.emplace(std::unexpect, refused::gone);
        }
        for (caller& c : quick) {
            if (!c.in()) continue;
            c.got.reset();
            c.got.emplace(std::unexpect, refused::gone);
        }
    }
    EXPECT_GE(slow_ones, 2U);
    EXPECT_LE(slow_ones, 4U);  // of 30 turns: it takes ten times as long
    a.reconfigure(room_for(100));
    loop.run_ready();
}

TEST_F(AdmissionByHand, SettingsThatCannotBeChangeNothing) {
    admission a{room_for(1), 1, 8, &loop.timers()};
    caller in;
    come(a, in, "zeta");
    EXPECT_TRUE(in.in());
    auto s = room_for(7);
    s.default_weight = 0;
    EXPECT_THROW(a.reconfigure(s), std::invalid_argument);
    EXPECT_EQ(a.stats().max_in_flight, 1U);
    in.got.reset();
}

TEST_F(AdmissionByHand, WithoutTurnsItIsFirstInFirstOut) {
    auto s = room_for(1);
    s.turns = false;
    admission a{s, 1, 8, &loop.timers()};
    caller in;
    come(a, in, "noisy");
    std::vector<caller> noisy(5);
    for (caller& c : noisy) come(a, c, "noisy");
    caller quiet;
    come(a, quiet, "quiet");
    in.got.reset();
    for (caller& c : noisy) {
        loop.run_ready();
        EXPECT_TRUE(c.in());
        EXPECT_TRUE(quiet.waits());
        c.got.reset();
    }
    loop.run_ready();
    EXPECT_TRUE(quiet.in());
    EXPECT_EQ(of(a, "noisy")->admitted, 6U);
}

TEST_F(AdmissionByHand, WithoutTurnsThereIsNoLimitOfATenant) {
    for (fair::backpressure const policy :
         {fair::backpressure::evict_longest, fair::backpressure::drop_oldest,
          fair::backpressure::drop_newest, fair::backpressure::reject}) {
        auto s = room_for(4);
        s.turns = false;
        s.limits.max_in_flight_per_tenant = 2;
        s.limits.max_queued = 3;
        s.limits.max_queued_per_tenant = 1;
        s.limits.when_full = policy;
        admission a{s, 1, 8, &loop.timers()};
        std::vector<caller> in(4);
        for (caller& c : in) come(a, c, "acme");
        for (caller const& c : in) EXPECT_TRUE(c.in());
        std::vector<caller> waiting(3);
        for (caller& c : waiting) come(a, c, "acme");
        for (caller const& c : waiting) EXPECT_TRUE(c.waits());
        caller more;
        come(a, more, "zeta");
        // Nobody is told that it is its own fault.
        int refusals = 0;
        for (caller const* const c : {&waiting[0], &waiting[1], &waiting[2], &more}) {
            if (c->waits()) continue;
            ++refusals;
            ASSERT_FALSE(c->in());
            EXPECT_EQ(c->got->error(), refused::full);
        }
        EXPECT_EQ(refusals, 1);
        a.close();
        loop.run_ready();
    }
}

// --- over connections ------------------------------------------------------------------------

std::string get(std::string_view tenant, std::string_view more = "") {
    return "GET / HTTP/1.1\r\nHost: a\r\nX-Tenant: " + std::string{tenant} + "\r\n" +
           std::string{more} + "\r\n";
}

// A server whose handler waits until it is told to answer.
class behind_admission {
  public:
    explicit behind_admission(admission_settings s)
        : turns_(std::move(s), 2), server_(handler_of(), options()) {}
    ~behind_admission() { go_on.add_permits(1000); }

    semaphore go_on{0};
    std::atomic<int> reached{0};

    admission& turns() { return turns_; }
    wire dial() { return server_.dial(); }
    // Until so many requests are inside, or in line.
    void await(std::size_t in_flight, std::size_t queued) {
        for (;;) {
            fair::gate_stats const now = turns_.stats();
            if (now.in_flight == in_flight && now.queued == queued) return;
            std::this_thread::yield();
        }
    }
    // Until so many are at the handler: who is inside may be on its way there.
    void await_reached(int n) {
        while (reached < n) std::this_thread::yield();
    }

  private:
    handler handler_of() {
        return [this](exchange* x) { return answer(this, x); };
    }
    server_options options() {
        server_options o;
        o.layers.push_back(turns_.as_layer());
        return o;
    }
    static task<void> answer(behind_admission* self, exchange* x) {
        ++self->reached;
        auto const told = co_await self->go_on.acquire();
        (void)co_await x->send(told ? "served" : "closed");
    }

    admission turns_;
    served server_;
};

TEST(Admission, RequestsWaitForTheirTurn) {
    behind_admission b{room_for(1)};
    wire one = b.dial();
    one.say(get("acme"));
    b.await(1, 0);
    wire two = b.dial();
    two.say(get("zeta"));
    b.await(1, 1);
    b.await_reached(1);
    EXPECT_EQ(b.reached, 1);
    b.go_on.add_permits(2);
    EXPECT_EQ(body_in(one.hear_message()), "served");
    EXPECT_EQ(body_in(two.hear_message()), "served");
    b.await(0, 0);
}

TEST(Admission, SaysWhyItRefuses) {
    auto s = room_for(1);
    s.limits.max_queued_per_tenant = 1;
    s.limits.max_queued = 2;
    s.limits.when_full = fair::backpressure::reject;
    behind_admission b{std::move(s)};
    wire in = b.dial();
    in.say(get("acme"));
    b.await(1, 0);
    wire waits = b.dial();
    waits.say(get("acme"));
    b.await(1, 1);
    wire tenant_full = b.dial();
    tenant_full.say(get("acme"));
    std::string const many = tenant_full.hear_message();
    EXPECT_EQ(status_in(many), 429);
    EXPECT_NE(many.find("retry-after: 1\r\n"), std::string::npos);
    EXPECT_NE(many.find("too many of your requests"), std::string::npos);
    wire other = b.dial();
    other.say(get("zeta"));
    b.await(1, 2);
    wire full = b.dial();
    full.say(get("third"));
    std::string const unavailable = full.hear_message();
    EXPECT_EQ(status_in(unavailable), 503);
    EXPECT_NE(unavailable.find("retry-after: 1\r\n"), std::string::npos);
    full.say(get("third"));  // the connection goes on
    EXPECT_EQ(status_in(full.hear_message()), 503);
    b.turns().drain();
    wire late = b.dial();
    late.say(get("late"));
    EXPECT_EQ(status_in(late.hear_message()), 503);
    b.turns().close();
    EXPECT_EQ(status_in(waits.hear_message()), 503);
    EXPECT_EQ(status_in(other.hear_message()), 503);
    b.await_reached(1);
    EXPECT_EQ(b.reached, 1);
    EXPECT_EQ(b.turns().stats().rejected_closed, 1U);
    EXPECT_EQ(b.turns().stats().returned, 2U);
}

// That it is told at its deadline, to the tick, is for AdmissionByHand, where time is virtual. Here
// the machine may be busy: not before, and while nobody leaves and who came before waits on.
TEST(Admission, WhoExpiresIsToldInLineAndGetsNoFurther) {
    auto s = room_for(1);
    s.deadline_header = "x-timeout";
    s.deadline_max = 1h;
    behind_admission b{std::move(s)};
    wire in = b.dial();
    in.say(get("acme"));
    b.await(1, 0);
    wire patient = b.dial();
    patient.say(get("zeta", "X-Timeout: 1h\r\n"));
    b.await(1, 1);
    wire late = b.dial();
    time_point const asked = clock::now();
    late.say(get("zeta", "X-Timeout: 30ms\r\n"));
    EXPECT_EQ(status_in(late.hear_message()), 504);
    EXPECT_GE(clock::now() - asked, 30ms);
    b.await(1, 1);
    b.await_reached(1);
    EXPECT_EQ(b.reached, 1);
    b.go_on.add_permits(2);
    EXPECT_EQ(body_in(in.hear_message()), "served");
    EXPECT_EQ(body_in(patient.hear_message()), "served");
    EXPECT_EQ(b.reached, 2);
}

TEST(Admission, AClientThatGoesAwayLeavesTheLine) {
    behind_admission b{room_for(1)};
    wire in = b.dial();
    in.say(get("acme"));
    b.await(1, 0);
    {
        wire gone = b.dial();
        gone.say(get("zeta"));
        b.await(1, 1);
    }
    b.await(1, 0);
    {
        wire gone = b.dial();  // with a body, behind which its end hides
        gone.say("POST / HTTP/1.1\r\nHost: a\r\nX-Tenant: zeta\r\nContent-Length: 9\r\n\r\nsome");
        b.await(1, 1);
    }
    b.await(1, 0);
    // The ledger hears of it a moment after the gate.
    while (of(b.turns(), "zeta")->gone < 2) std::this_thread::yield();
    EXPECT_EQ(of(b.turns(), "zeta")->gone, 2U);
    b.await_reached(1);
    EXPECT_EQ(b.reached, 1);
}

// What a request of that tenant cost, once it has ended.
std::uint64_t cost_of(admission& turns, std::string_view tenant) {
    for (;;) {
        for (tenant_figures const& f : turns.tenants()) {
            if (f.tenant == tenant && f.cost != 0) return f.cost;
        }
        std::this_thread::yield();
    }
}

// Reads the body unless it is asked not to, and answers with 3000 bytes.
task<void> answer_at_length(exchange* x) {
    while (x->head().path != "/unread" && !x->ended()) {
        auto const piece = co_await x->read();
        if (!piece) co_return;
    }
    std::string const answer(3000, 'a');
    (void)co_await x->send(answer);
    if (x->head().path == "/throws") throw std::runtime_error{"no"};
}

TEST(Admission, ByBytesARequestPaysForWhatWasReadAndSentHoweverItIsFramed) {
    auto s = room_for(1);
    s.cost = cost_by::bytes;
    s.bytes_per_cost = 1000;
    admission turns{s, 2};
    served server{answer_at_length,
                  {.layers = {turns.as_layer()}, .on_failure = [](std::exception_ptr) {}}};
    std::string const body(5000, 'b');
    std::string const chunks = "1388\r\n" + body + "\r\n0\r\n\r\n";
    auto const pays = [&](std::string const& tenant, std::string const& target,
                          std::string const& framing_and_body) {
        std::string const request = "POST " + target +
                                    " HTTP/1.1\r\nHost: a\r\nX-Tenant: " + tenant +
                                    "\r\nConnection: close\r\n" + framing_and_body;
        EXPECT_EQ(status_in(server.answer_to(request)), 200) << tenant;
        return cost_of(turns, tenant);
    };
    std::string const by_length = "Content-Length: 5000\r\n\r\n" + body;
    EXPECT_EQ(pays("length", "/", by_length), 1U + 8);
    EXPECT_EQ(pays("chunks", "/", "Transfer-Encoding: chunked\r\n\r\n" + chunks), 1U + 8);
    EXPECT_EQ(pays("unread", "/unread", by_length), 1U + 3);
    EXPECT_EQ(pays("none", "/", "\r\n"), 1U + 3);
    EXPECT_EQ(pays("throws", "/throws", by_length), 1U + 8);
}

TEST(Admission, RefusalsCanBeMapped) {
    auto s = room_for(1);
    s.limits.max_queued = 0;
    s.refuse = [](refusal const& r) {
        refusal_answer a;
        a.status = 418;
        a.reason = "sorry, " + std::string{r.tenant};
        return a;
    };
    behind_admission b{std::move(s)};
    wire in = b.dial();
    in.say(get("acme"));
    b.await(1, 0);
    wire refused = b.dial();
    refused.say(get("zeta"));
    std::string const answer = refused.hear_message();
    EXPECT_EQ(status_in(answer), 418);
    EXPECT_EQ(body_in(answer), "sorry, zeta\n");
    EXPECT_EQ(answer.find("retry-after"), std::string::npos);
}

TEST(Admission, OtherSettingsHoldFromTheNextRequestOn) {
    behind_admission b{room_for(1)};
    wire in = b.dial();
    in.say(get("acme"));
    b.await(1, 0);
    wire waits = b.dial();
    waits.say(get("zeta"));
    b.await(1, 1);
    auto s = room_for(2);
    s.weights = {{"zeta", 7}};
    b.turns().reconfigure(s);
    b.await(2, 0);
    EXPECT_EQ(b.turns().weight_of("zeta"), 7U);
    EXPECT_EQ(b.turns().weight_of("acme"), 1U);
    b.go_on.add_permits(2);
    EXPECT_EQ(body_in(waits.hear_message()), "served");
}

// --- the ledger ------------------------------------------------------------------------------

TEST(TenantLedger, SumsUpWhatWorkersNote) {
    tenant_ledger l{2};
    time_point const now{};
    auto one = l.open(0, "acme", false, now);
    auto two = l.open(1, "acme", true, now);
    two.turn_away(tenant_ledger::end::expired);
    one.leave(5, 8ms);
    auto const all = l.read();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].admitted, 1U);
    EXPECT_EQ(all[0].expired, 1U);
    EXPECT_EQ(all[0].cost, 5U);
    EXPECT_EQ(all[0].took.count(), 1U);
}

TEST(TenantLedger, KeepsNoMoreTenantsThanItMay) {
    tenant_ledger l{1, 3, 1min};
    time_point now{};
    for (int i = 0; i < 10; ++i) l.open(0, std::to_string(i), false, now).leave(1, 1ms);
    EXPECT_EQ(l.read().size(), 4U);  // three, and the others
    now += 2min;
    auto stays = l.open(0, "new", false, now);
    auto const all = l.read();
    EXPECT_EQ(all.size(), 2U);  // those that were idle are forgotten
    stays.leave(1, 1ms);
    for (char const* const name : {"a", "b", "c"}) l.open(0, name, false, now).leave(1, 1ms);
    l.idle_time(1s);
    l.open(0, "d", false, now + 2s).leave(1, 1ms);
    EXPECT_EQ(l.read().size(), 2U);
}

TEST(TenantLedger, ForgetsATenantAtAllWorkersOrAtNone) {
    tenant_ledger l{2, 2, 1min};
    time_point now{};
    for (std::size_t const worker : {0U, 1U}) {
        for (char const* const name : {"acme", "gone"}) {
            l.open(worker, name, false, now).leave(1, 1ms);
        }
    }
    now += 2min;
    l.open(1, "acme", false, now).leave(1, 1ms);  // at one of the two
    l.open(0, "new", false, now).leave(1, 1ms);   // in the place of "gone"
    std::map<std::string, std::uint64_t> admitted;
    for (tenant_figures const& f : l.read()) admitted[f.tenant] = f.admitted;
    EXPECT_EQ(admitted, (std::map<std::string, std::uint64_t>{{"acme", 3}, {"new", 1}}));
}

TEST(WaitTimes, SayQuantilesWithinAFifth) {
    wait_times t;
    for (int ms = 1; ms <= 1000; ++ms) t.record(std::chrono::milliseconds{ms});
    EXPECT_EQ(t.count(), 1000U);
    EXPECT_NEAR(static_cast<double>(t.quantile(0.5) / 1ms), 500, 100);
    EXPECT_NEAR(static_cast<double>(t.quantile(0.99) / 1ms), 990, 198);
    wait_times const before = t;
    t.record(2s);
    EXPECT_EQ(t.since(before).count(), 1U);
    EXPECT_GE(t.since(before).quantile(1), 2s);
    EXPECT_EQ(wait_times{}.quantile(0.5), 0s);
}

}  // namespace
}  // namespace rondo::http
