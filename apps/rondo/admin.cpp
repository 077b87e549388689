#include "admin.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <array>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "address.hpp"
#include "dashboard.hpp"
#include "rondo/core/when_any.hpp"

namespace rondo::gateway {

namespace {

using http::method;

constexpr std::string_view text_type = "text/plain; charset=utf-8";

task<void> send(http::exchange* x, int status, std::string_view type, std::string body) {
    x->answer().status(status);
    x->answer().add("content-type", type);
    (void)co_await x->send(body);
}

task<void> refuse_method(http::exchange* x, std::string_view allowed) {
    x->answer().add("allow", allowed);
    return send(x, 405, text_type, "Method Not Allowed\n");
}

void add_fields_of_all(http::exchange& x) {
    x.answer().add("cache-control", "no-store");
    x.answer().add("x-content-type-options", "nosniff");
    x.answer().add("referrer-policy", "no-referrer");
    x.answer().add("content-security-policy",
                   "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                   "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
}

// Takes the same time for each guess of the same length.
bool same_secret(std::string_view a, std::string_view b) noexcept {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// The password of "user:password" in base64.
std::optional<std::string> password_of(std::string_view encoded) {
    if (encoded.size() % 4 != 0 || encoded.size() > 1024) return std::nullopt;
    std::vector<unsigned char> plain(encoded.size() / 4 * 3 + 1);
    int const size =
        EVP_DecodeBlock(plain.data(), reinterpret_cast<unsigned char const*>(encoded.data()),
                        static_cast<int>(encoded.size()));
    if (size < 0) return std::nullopt;
    std::string text(plain.begin(), plain.begin() + size);
    // What is filled up with = was decoded to zeros.
    while (!text.empty() && text.back() == '\0') text.pop_back();
    std::size_t const colon = text.find(':');
    if (colon == std::string::npos) return std::nullopt;
    return text.substr(colon + 1);
}

// Whether it was asked for by an address of this machine, over a connection to one: those that
// came by another stay when that is left.
bool asked_here(http::exchange const& x) {
    if (!x.local().address().is_loopback()) return false;
    std::string_view host = x.head().fields.value_or("host", "");
    bool const bracketed = host.starts_with('[');
    std::size_t const end = bracketed ? host.find(']') : host.find(':');
    host = host.substr(0, end);
    if (bracketed) host.remove_prefix(1);
    return is_of_this_machine({.host = std::string{host}});
}

std::string event(std::string_view name, std::string_view data) {
    std::string text = "event: ";
    text += name;
    text += "\ndata: ";
    text += data;
    text += "\n\n";
    return text;
}

std::string history_of(monitor const& m) {
    std::string all = "[";
    for (monitor::text const& t : m.past()) {
        if (all.size() > 1) all += ',';
        all += *t;
    }
    return event("history", all + "]");
}

struct resource {
    std::string_view path;
    std::string_view type;
    std::string_view const* text;
};
constexpr std::array resources{
    resource{"/", "text/html; charset=utf-8", &dashboard::page},
    resource{"/dashboard.css", "text/css; charset=utf-8", &dashboard::style},
    resource{"/dashboard.js", "text/javascript; charset=utf-8", &dashboard::script},
};

}  // namespace

void admin::ask_for(std::string token) {
    std::lock_guard const guard{lock_};
    token_ = std::move(token);
}

bool admin::knows_token(http::exchange const& x, std::string_view token) const {
    std::string_view const shown = x.head().fields.value_or("authorization", "");
    std::size_t const space = shown.find(' ');
    if (space == std::string_view::npos) return false;
    std::string_view const secret = shown.substr(space + 1);
    if (http::same_token(shown.substr(0, space), "bearer")) return same_secret(secret, token);
    if (!http::same_token(shown.substr(0, space), "basic")) return false;
    auto const password = password_of(secret);
    return password && same_secret(*password, token);
}

std::string admin::token() const {
    std::lock_guard const guard{lock_};
    return token_;
}

bool admin::may_look(http::exchange const& x) const {
    std::string const asked_for = token();
    return asked_for.empty() ? asked_here(x) : knows_token(x, asked_for);
}

task<void> admin::answer(http::exchange* x) {
    std::string_view const target = x->head().path;
    std::string_view const path = target.substr(0, target.find('?'));
    add_fields_of_all(*x);
    if (path == "/healthz") return send(x, 200, text_type, "it runs\n");
    if (path == "/readyz") {
        bool const ends = draining_();
        return send(x, ends ? 503 : 200, text_type, ends ? "it ends\n" : "ready\n");
    }
    if (!may_look(*x)) {
        if (token().empty()) {
            return send(x, 403, text_type, "Forbidden: ask for it by an address of this machine\n");
        }
        x->answer().add("www-authenticate", "Basic realm=\"rondo\", charset=\"UTF-8\"");
        return send(x, 401, text_type, "Unauthorized: the token of [admin] is asked for\n");
    }
    if (path == "/reload" || path == "/drain") return answer_command(x, path);
    return answer_reading(x, path);
}

task<void> admin::answer_reading(http::exchange* x, std::string_view path) {
    if (x->head().method != method::get && x->head().method != method::head) {
        co_return co_await refuse_method(x, "GET, HEAD");
    }
    for (resource const& r : resources) {
        if (r.path == path) co_return co_await send(x, 200, r.type, std::string{*r.text});
    }
    if (path == "/metrics") {
        auto const now = co_await monitor_.read();
        std::string body = metrics_of(*now);
        co_return co_await send(x, 200, "text/plain; version=0.0.4; charset=utf-8",
                                std::move(body));
    }
    if (path == "/events") co_return co_await stream(x);
    if (path == "/status") {
        std::string body = co_await monitor_.look();
        co_return co_await send(x, 200, "application/json", std::move(body));
    }
    co_await send(x, 404, text_type, "Not Found\n");
}

task<void> admin::answer_command(http::exchange* x, std::string_view path) {
    if (x->head().method != method::post) co_return co_await refuse_method(x, "POST");
    if (!x->head().fields.has("x-rondo-command")) {
        co_return co_await send(x, 403, text_type, "Forbidden: X-Rondo-Command is missing\n");
    }
    if (path == "/drain") {
        if (!commands_.drain) co_return co_await send(x, 501, text_type, "Nobody drains it\n");
        co_await send(x, 202, text_type, "draining\n");
        commands_.drain();
        co_return;
    }
    if (!commands_.reload) co_return co_await send(x, 501, text_type, "Nobody reloads it\n");
    auto work = rt_.spawn_blocking(commands_.reload);
    auto const done = co_await work.get();
    if (!done) co_return co_await send(x, 503, text_type, "it has too much to do\n");
    auto const& loaded = *done;
    std::string body = loaded ? "configuration " + std::to_string(*loaded) + " is loaded\n"
                              : loaded.error() + "\n";
    co_await send(x, loaded ? 200 : 422, text_type, std::move(body));
}

// Ends when the client has gone; when it may not look any more, at the next event; or with the
// server.
task<void> admin::stream(http::exchange* x) {
    if (x->head().method == method::head) {
        x->answer().add("content-type", "text/event-stream");
        (void)co_await x->finish();
        co_return;
    }
    auto const place = places_.try_acquire();
    if (!place) co_return co_await send(x, 503, text_type, "Service Unavailable: too many watch\n");
    x->answer().add("content-type", "text/event-stream");
    auto changes = monitor_.subscribe();
    std::string text = history_of(monitor_);
    for (;;) {
        auto const sent = co_await x->write(text);
        if (!sent) co_return;
        // Who comes for one look after the other would have all places until the next event.
        auto changed = changes.changed();
        auto gone = x->gone();
        auto const first = co_await when_any(std::move(changed), std::move(gone));
        if (first.index() == 1 || !std::get<0>(first) || !may_look(*x)) co_return;
        monitor::text const latest = *changes.borrow_and_update();
        text = event("status", *latest);
    }
}

}  // namespace rondo::gateway
