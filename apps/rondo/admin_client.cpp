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

no_answer why(admin_target const& whom, http::failure const& f) {
    using enum http::failure_kind;
    bool const ended = f.kind == refused || f.kind == closed;
    return {"no answer from " + to_string(whom.at) + ": " + f.reason,
            ended && f.source == http::party::upstream};
}

task<reply> call(http::client* c, admin_target const* whom, std::string verb, std::string path) {
    auto connected = co_await c->connect(whom->at);
    if (!connected) co_return std::unexpected{why(*whom, connected.error())};
    http::call over{std::move(*connected)};
    over.head().line(verb, path);
    over.head().add("host", to_string(whom->at));
    over.head().add("x-rondo-command", "1");
    if (!whom->token.empty()) over.head().add("authorization", "Bearer " + whom->token);
    auto const sent = co_await over.finish();
    if (!sent) co_return std::unexpected{why(*whom, sent.error())};
    auto const head = co_await over.read_head();
    if (!head) co_return std::unexpected{why(*whom, head.error())};
    admin_reply all{.status = (*head)->status, .body = ""};
    for (;;) {
        auto const piece = co_await over.read();
        if (!piece) co_return std::unexpected{why(*whom, piece.error())};
        if (piece->empty()) break;
        all.body += *piece;
    }
    co_return all;
}

task<reply> on_worker(runtime* rt, http::client* c, admin_target const* whom, std::string verb,
                      std::string path) {
    auto calling = rt->spawn_pinned(call(c, whom, std::move(verb), std::move(path)));
    auto done = co_await calling.join();
    if (!done) co_return std::unexpected{no_answer{"it was stopped"}};
    co_return *std::move(done);
}

}  // namespace

reply ask(admin_target const& whom, std::string_view verb, std::string_view path) {
    runtime::options one;
    one.workers = 1;
    runtime rt{one};
    http::client_options o;
    o.response_timeout = patience;
    http::client c{rt, o};
    return rt.block_on(on_worker(&rt, &c, &whom, std::string{verb}, std::string{path}));
}

}  // namespace rondo::gateway
