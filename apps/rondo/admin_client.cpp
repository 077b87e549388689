#include "admin_client.hpp"

#include <utility>

#include "rondo/exec/runtime.hpp"
#include "rondo/http/client.hpp"
#include "route_table.hpp"

namespace rondo::gateway {

namespace {

using reply = std::expected<admin_reply, no_answer>;

// A reload looks names up, which takes its time.
constexpr clock::duration patience = std::chrono::seconds{60};
// A page that is not renewed shows what was: nobody should take it for what is.
constexpr clock::duration patience_between_events = std::chrono::seconds{10};
// Whoever is there need not be a gateway. Two minutes of a thousand backends are some 25 MB.
constexpr std::size_t longest = std::size_t{64} << 20U;

no_answer why(admin_target const& whom, http::failure const& f) {
    using enum http::failure_kind;
    bool const ended = f.kind == refused || f.kind == closed;
    return {"no answer from " + to_string(whom.at) + ": " + f.reason,
            ended && f.source == http::party::upstream, f.kind == timed_out};
}

struct question {
    std::string verb;
    std::string path;
    event_reader* events = nullptr;  // null: there is one answer, which ends
};

task<reply> call(http::client* c, admin_target const* whom, question const* q) {
    auto connected = co_await c->connect(whom->at);
    if (!connected) co_return std::unexpected{why(*whom, connected.error())};
    http::call over{std::move(*connected)};
    over.head().line(q->verb, q->path);
    over.head().add("host", to_string(whom->at));
    over.head().add("x-rondo-command", "1");
    if (!whom->token.empty()) over.head().add("authorization", "Bearer " + whom->token);
    auto const sent = co_await over.finish();
    if (!sent) co_return std::unexpected{why(*whom, sent.error())};
    auto const head = co_await over.read_head();
    if (!head) co_return std::unexpected{why(*whom, head.error())};
    admin_reply all{.status = (*head)->status, .body = ""};
    bool const streamed = q->events != nullptr && all.status == 200;
    for (;;) {
        auto const piece = co_await over.read();
        if (!piece) co_return std::unexpected{why(*whom, piece.error())};
        if (piece->empty()) break;
        if (streamed && !q->events->take(*piece)) break;
        if (!streamed) all.body += *piece;
        if (all.body.size() + (streamed ? q->events->pending() : 0) > longest) {
            co_return std::unexpected{
                no_answer{"what " + to_string(whom->at) + " says has no end"}};
        }
    }
    co_return all;
}

task<reply> on_worker(runtime* rt, http::client* c, admin_target const* whom, question const* q) {
    auto calling = rt->spawn_pinned(call(c, whom, q));
    auto done = co_await calling.join();
    if (!done) co_return std::unexpected{no_answer{"it was stopped"}};
    co_return *std::move(done);
}

reply put(question const& q, admin_target const& whom, clock::duration patience_for_it) {
    runtime::options one;
    one.workers = 1;
    runtime rt{one};
    http::client_options o;
    o.response_timeout = patience_for_it;
    http::client c{rt, o};
    return rt.block_on(on_worker(&rt, &c, &whom, &q));
}

}  // namespace

reply ask(admin_target const& whom, std::string_view verb, std::string_view path) {
    return put({.verb = std::string{verb}, .path = std::string{path}}, whom, patience);
}

reply watch(admin_target const& whom, std::string_view path, event_reader::taker take) {
    event_reader events{std::move(take)};
    return put({.verb = "GET", .path = std::string{path}, .events = &events}, whom,
               patience_between_events);
}

}  // namespace rondo::gateway
