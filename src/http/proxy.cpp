// Algorithm
//   An attempt connects, sends the head, and then runs two tasks at once if there is a body: the
//   upload and the download. Without a body they run one after the other.
//
//   Who ends whom
//     the download has ended     the upload is stopped: the backend wants no more of it
//     the body breaks off        the download is stopped: nobody wants the answer
//     the answer is not taken    the download ends, and with it the upload
//     the backend takes no more  the upload ends, the download says why: an answer, or a failure
//
//   A failure before the head of the answer was sent is answered for, or tried again; later it cuts
//   the connection.
#include "rondo/http/proxy.hpp"

#include <charconv>
#include <optional>
#include <utility>

#include "methods.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/with_timeout.hpp"
#include "rondo/http/detail/forwarding.hpp"

namespace rondo::http {

namespace {

using outcome = std::expected<void, failure>;

// Whether no connection could be made for want of something here.
bool lacks_means(failure const& f) noexcept {
    return f.source == party::us && f.kind == failure_kind::refused;
}

int status_of(failure const& f) noexcept {
    if (lacks_means(f)) return 503;
    return f.kind == failure_kind::timed_out ? 504 : 502;
}

std::vector<std::uint32_t> weights_of(std::vector<proxy_options::backend> const& backends) {
    std::vector<std::uint32_t> weights;
    weights.reserve(backends.size());
    for (proxy_options::backend const& b : backends) weights.push_back(b.weight);
    return weights;
}

// By its only writer; nothing is published by it.
void count(atomic<std::uint64_t>& n) noexcept {
    n.store(n.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

task<void> refuse(exchange* x, failure f) {
    int const status = status_of(f);
    x->answer().clear();
    x->answer().status(status);
    x->answer().add("content-type", "text/plain; charset=utf-8");
    std::string body{reason_phrase(status)};
    body += ": ";
    body += f.reason;
    body += '\n';
    (void)co_await x->send(body);
}

// Who may not forward a request answers it. Nothing is known of what the backends can do, and
// nobody has to see here what was sent.
task<void> answer_as_last(exchange* x) {
    x->answer().status(x->head().method == method::options ? 204 : 501);
    (void)co_await x->send();
}

void write_head(request_text& to, exchange& x, std::string_view name) {
    request_head const& asked = x.head();
    to.line(asked.verb, asked.path);
    detail::add_request_fields(to, asked,
                               {.peer = x.peer_address(),
                                .local = x.local_address(),
                                .via = name,
                                .request_id = x.request_id(),
                                .secure = x.secure()});
    if (asked.framing == framing::length) to.length(asked.length);
    if (asked.framing == framing::chunked) to.chunked();
}

// RFC 9110, 15.2: a 1xx before the answer goes on, but for 100: who expects that has it from us.
task<outcome> inform(exchange* x, response_head const* interim, std::string_view via) {
    if (interim->status == 100) co_return outcome{};
    response_text hints;
    hints.status(interim->status, interim->reason);
    detail::add_response_fields(hints, *interim, via);
    co_return co_await x->inform(&hints);
}

// So long a client may say or take nothing before a backend may be tired of it. Servers wait for
// some seconds at least; and a backend that fails while a body passes without a pause is to blame.
constexpr clock::duration long_wait = std::chrono::seconds{1};

// Of an answer without a body: to HEAD, of 304, or of nothing.
std::optional<std::uint64_t> length_without_body(response_head const& head) noexcept {
    auto const text = head.fields.find("content-length");
    if (!text) return std::nullopt;
    std::uint64_t n = 0;
    auto const [end, error] = std::from_chars(text->data(), text->data() + text->size(), n);
    bool const whole = error == std::errc{} && end == text->data() + text->size();
    return whole ? std::optional{n} : std::nullopt;
}

void frame_answer(response_text& answer, response_head const& head) noexcept {
    switch (head.framing) {
        case framing::length:
            answer.length(head.length);
            break;
        case framing::chunked:
        case framing::until_close:
            answer.chunked();
            break;
        case framing::none:
            auto const n = length_without_body(head);
            if (n) answer.length(*n);
            break;
    }
}

}  // namespace

struct proxy::attempt {
    balance::turn turn;
    bool second = false;
    bool fresh = false;    // with a new connection
    bool reused = false;   // the connection had been kept open
    bool dropped = false;  // of the body something was sent that is here no more
    bool late = false;     // nothing of the body was here when it could have been sent
    bool begun = false;    // a byte of a response came
    bool headed = false;   // its head did
    bool waited = false;   // the backend did for the client, for long, and had no more than that
    std::optional<std::string_view> piece = {};  // of the body: read, and here until the next

    // The two that run at once.
    struct ends {
        stop_source upload;
        stop_source download;
    };
    std::optional<ends> end = {};
    std::optional<failure> client_failure = {};

    // While it lives the backend waits for the client: for a piece of the body, or until one of
    // the answer is taken.
    class wait {
      public:
        explicit wait(attempt& of) noexcept : of_(of), since_(clock::now()) {}
        ~wait() {
            if (clock::now() - since_ >= long_wait) of_.waited = true;
        }
        wait(wait const&) = delete;
        wait& operator=(wait const&) = delete;

      private:
        attempt& of_;
        time_point since_;
    };
};

proxy::proxy(client& by, proxy_options o)
    : client_(by),
      options_(std::move(o)),
      turns_(weights_of(options_.backends), options_.health),
      tallies_(std::make_unique<tally[]>(by.workers() * options_.backends.size())) {}

proxy::tally& proxy::tally_of(exchange const& x, attempt const& a) noexcept {
    return tallies_[x.worker() * options_.backends.size() + a.turn.index];
}

std::vector<proxy::figures> proxy::measure() const {
    std::vector<figures> all;
    time_point const now = clock::now();
    std::size_t const size = options_.backends.size();
    for (std::size_t i = 0; i < size; ++i) {
        auto const& b = options_.backends[i];
        figures f{b.address, b.weight, 0, 0, 0, turns_.set_aside(i, now)};
        for (std::size_t w = 0; w < client_.workers(); ++w) {
            tally const& t = tallies_[w * size + i];
            f.requests += t.requests.load(std::memory_order_relaxed);
            f.connections += t.connections.load(std::memory_order_relaxed);
            f.failures += t.failures.load(std::memory_order_relaxed);
        }
        all.push_back(f);
    }
    return all;
}

void proxy::failed(exchange const& x, attempt const& a, failure const& f) {
    // A connection that was kept open may be closed at any time; the backend is well. So may one
    // over which nothing was sent, as the client had nothing to send, and one over which the client
    // kept it waiting. And so it may be if it has nothing to say for long, in an answer that it has
    // begun.
    bool const closed = f.kind == failure_kind::closed;
    bool const idle = a.reused || (a.late && f.retry_safe);
    bool const stale = closed && idle && !a.begun;
    bool const tired = closed && a.waited;
    bool const quiet = a.headed && f.kind == failure_kind::timed_out;
    bool const blamed = f.source == party::upstream && !stale && !tired && !quiet;
    if (!blamed && !a.headed) turns_.undecided(a.turn);
    if (!blamed && !lacks_means(f)) return;
    if (blamed) {
        count(tally_of(x, a).failures);
        turns_.failed(a.turn, clock::now());
    }
    if (options_.on_failure) options_.on_failure(options_.backends[a.turn.index].address, f);
}

// The turn for a second try, in `a`; false if there is to be none. A connection that had been kept
// open and turns out closed says nothing of the backend: there is a new one first, and another
// backend if that cannot be made. Of these three at most two were sent anything.
bool proxy::try_again(attempt& a, failure const& f, method m) {
    bool const may_repeat = is_idempotent(m) && f.kind == failure_kind::closed && !a.fresh;
    bool const safe = f.retry_safe || may_repeat;
    bool const elsewhere = f.source == party::upstream || lacks_means(f);  // it may be better there
    if (a.second || a.dropped || a.begun || !safe || !elsewhere) return false;
    if (a.reused) {
        a.fresh = true;  // at the same backend
        a.reused = false;
        return true;
    }
    a.second = true;
    auto const other = turns_.other_than(a.turn.index, clock::now());
    if (!other) return false;
    a.turn = *other;
    return true;
}

task<void> proxy::answer(exchange* x) {
    if (detail::max_forwards(x->head()) == 0) co_return co_await answer_as_last(x);
    attempt a{.turn = turns_.next(clock::now())};
    for (;;) {
        auto const done = co_await attempt_once(x, &a);
        if (done) co_return;
        failure const f = done.error();
        failed(*x, a, f);
        if (x->answered()) x->cut();
        if (x->answered() || f.source == party::client) co_return;
        if (!try_again(a, f, x->head().method)) {
            co_await refuse(x, f);
            co_return;
        }
    }
}

task<outcome> proxy::attempt_once(exchange* x, attempt* a) {
    auto const& to = options_.backends[a->turn.index].address;
    count(tally_of(*x, *a).requests);
    a->waited = false;
    auto connected =
        co_await client_.connect(to, a->fresh ? client::reuse::no : client::reuse::yes);
    if (!connected) co_return std::unexpected{connected.error()};
    call& over = *connected;
    a->reused = over.reused();
    if (!a->reused) count(tally_of(*x, *a).connections);
    write_head(over.head(), *x, options_.name);

    bool const has_body = x->head().framing != framing::none;
    if (!has_body) {
        auto const sent = co_await over.finish();
        if (!sent) co_return sent;
        co_return co_await download(x, &over, a);
    }
    a->end.emplace();
    auto both =
        co_await when_all(with_stop(upload(x, &over, a), a->end->upload.token()),
                          with_stop(finish_download(x, &over, a), a->end->download.token()));
    auto const& downloaded = std::get<1>(both);
    bool const whole = downloaded && *downloaded;
    if (a->client_failure && !whole) co_return std::unexpected{*a->client_failure};
    if (!downloaded) {
        co_return std::unexpected{
            failure{failure_kind::stopped, party::us, false, "it was stopped"}};
    }
    co_return *downloaded;
}

task<void> proxy::upload(exchange* x, call* to, attempt* a) {
    for (;;) {
        if (!a->piece) {  // else it is of the try before
            std::expected<std::string_view, failure> read;
            {
                attempt::wait const it_waits{*a};
                read = co_await x->read();
            }
            if (!read) {
                a->client_failure = read.error();
                a->end->download.request_stop();
                co_return;
            }
            a->piece = *read;
            // What had come already is read all the same. The download may have said that nothing
            // was sent: so nothing is, but by the next try.
            if (a->end->upload.stop_requested()) co_return;
        }
        if (!a->piece->empty()) {
            auto const sent = co_await to->write(*a->piece);
            if (!sent) co_return;  // the download says why
        }
        if (x->ended()) break;
        a->piece.reset();
        a->dropped = true;
    }
    std::vector<field> const trailer = detail::request_trailer(x->head(), x->trailers());
    auto const sent = co_await to->finish(trailer);
    if (sent) a->waited = false;  // it has all of it: there is nothing to be tired of
}

task<outcome> proxy::finish_download(exchange* x, call* from, attempt* a) {
    a->late = !a->piece && !a->dropped;  // the upload has begun, and came as far as it could
    auto const done = co_await download(x, from, a);
    a->end->upload.request_stop();
    co_return done;
}

task<outcome> proxy::download(exchange* x, call* from, attempt* a) {
    auto read = co_await from->read_any_head();
    while (read && is_interim((*read)->status)) {
        auto const informed = co_await inform(x, *read, options_.name);
        if (!informed) co_return informed;
        read = co_await from->read_any_head();
    }
    a->begun = from->answered();
    if (!read) co_return std::unexpected{read.error()};
    response_head const& head = **read;
    a->headed = true;
    turns_.succeeded(a->turn);

    response_text& answer = x->answer();
    answer.status(head.status, head.reason);
    detail::add_response_fields(answer, head, options_.name);
    if (head.status == 101) co_return co_await tunnel(x, from, head.upgrade);
    frame_answer(answer, head);
    auto piece = from->try_read();
    if (!piece) {
        // It may be long until something comes: the client has the head meanwhile.
        auto const begun = co_await x->flush();
        if (!begun) co_return begun;
        piece = co_await from->read();
    }
    for (;;) {
        if (!*piece) co_return std::unexpected{piece->error()};
        if ((*piece)->empty()) break;
        outcome sent;
        {
            attempt::wait const it_waits{*a};
            sent = co_await x->write(**piece);
        }
        if (!sent) co_return sent;
        piece = from->try_read();
        if (!piece) piece = co_await from->read();
    }
    std::vector<field> const trailer = detail::response_trailer(head, from->trailers());
    co_return co_await x->finish(trailer);
}

task<outcome> proxy::tunnel(exchange* x, call* with, std::string_view protocol) {
    if (!detail::asks_for_tunnel(x->head()) || !same_token(protocol, detail::tunnel_protocol)) {
        co_return std::unexpected{failure{failure_kind::malformed, party::upstream, false,
                                          "the upstream changed to a protocol nobody asked for"}};
    }
    x->answer().add("upgrade", detail::tunnel_protocol);
    auto const agreed = co_await x->upgrade();
    if (!agreed) co_return agreed;
    co_await relay(x, with);
    co_return outcome{};
}

}  // namespace rondo::http
