#include "upstream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "methods.hpp"
#include "rondo/asio/use_task.hpp"
#include "rondo/core/this_task.hpp"

namespace rondo::http::detail {

using rondo::asio::use_task;

namespace {

constexpr std::size_t first_read = std::size_t{4} * 1024;
constexpr int most_interim = 16;  // 1xx before a response

// Whether it is for want of something on this side that no connection can be made: descriptors,
// memory. (Not ports: the same code says that a backend's address cannot be used from here.)
bool lacks_means(boost::system::error_code e) noexcept {
    namespace errc = boost::system::errc;
    return e == errc::too_many_files_open || e == errc::too_many_files_open_in_system ||
           e == errc::no_buffer_space || e == errc::not_enough_memory;
}

}  // namespace

upstream::upstream(socket s, endpoint const& to, pool& from)
    : channel(std::move(s), from.deadlines, party::upstream, from.options.limits,
              {from.options.response_timeout, from.options.response_timeout}),
      to_(to),
      pool_(from) {}

task<done> upstream::connect() {
    write_by_ = in(pool_.options.connect_timeout);
    auto const connected = co_await socket_.async_connect(to_, use_task);
    write_by_ = never;
    if (!connected) {
        failure why = from(connected.error());
        if (lacks_means(connected.error())) {
            why = {failure_kind::refused, party::us, true,
                   "no descriptor or memory is left here for a connection"};
        } else if (why.kind != failure_kind::timed_out && why.kind != failure_kind::stopped) {
            why = from(failure_kind::refused, "no connection could be made");
        }
        why.retry_safe = true;
        co_return std::unexpected{why};
    }
    boost::system::error_code ignored;
    (void)socket_.set_option(boost::asio::ip::tcp::no_delay{true}, ignored);
    co_return done{};
}

void upstream::begin(bool reused) noexcept {
    in_.unpin();
    reused_ = reused;
    head_sent_ = answered_ = complete_ = listens_ = false;
    out_head_ = nullptr;
    interim_ = 0;
    await_message();
    expect_body(framing::none, 0);
    begin_body(framing::none, 0, false);
}

void upstream::seal() {
    if (head_sent_ && !is_to_be_made_anew(request_)) return;
    head_sent_ = true;
    http::framing const f = request_.framing().value_or(framing::none);
    // A length of 0 is said where a body would be expected.
    if (f == framing::none &&
        (request_.method() == method::post || request_.method() == method::put ||
         request_.method() == method::patch)) {
        request_.length(0);
        request_.add_framing(framing::length);
    } else {
        request_.add_framing(f);
    }
    if (request_.closes()) request_.add("connection", "close");
    begin_body(f, request_.promised(), false);
    out_head_ = &request_.seal();
}

// Who looks for the end of a head speaks of the first line as of that of a request.
failure upstream::refused_by(head_error e) const noexcept {
    bool const of_request = e == head_error::bad_method || e == head_error::target_too_long;
    return from(failure_kind::malformed, reason_of(of_request ? head_error::bad_start_line : e));
}

// RFC 9110, 9.2.2: what is not idempotent is repeated only if it was certainly not applied: no byte
// of it has left. Otherwise nothing may have come back, over a connection that the upstream may
// have closed while it was idle.
failure upstream::with_retry(failure f) const noexcept {
    bool const unseen = sent_nothing() || (reused_ && is_idempotent(request_.method()));
    f.retry_safe = f.kind == failure_kind::closed && !answered_ && unseen;
    return f;
}

// Who still gets a body is not late with the response, however slow that is: its time begins when
// nothing more is sent. After its head a response is alive while something passes either way.
void upstream::renew_patience() noexcept {
    bool const counts = complete_ ? read_by_ != never : message_sent() || failed_;
    if (counts) read_by_ = in(pool_.options.response_timeout);
}

task<done> upstream::write(std::string_view piece) {
    if (has_ended_unasked()) co_return std::unexpected{with_retry(unasked())};
    seal();
    auto const written = co_await write_body(piece);
    renew_patience();
    if (!written) co_return std::unexpected{with_retry(written.error())};
    request_.release();
    co_return done{};
}

task<done> upstream::finish(std::span<field const> trailer) {
    if (tunnel_) {
        co_await end_sending();
        co_return done{};
    }
    if (has_ended_unasked()) co_return std::unexpected{with_retry(unasked())};
    seal();
    auto const sent = co_await end_body(trailer);
    renew_patience();
    if (!sent) co_return std::unexpected{with_retry(sent.error())};
    request_.release();
    co_return done{};
}

failure upstream::unasked() const noexcept {
    return from(failure_kind::closed, "it closed, or spoke before it was asked");
}

// What comes before that is no answer, though it may look like one (RFC 9112, 6.3). It is waited
// for and not read: whoever is about to send may be woken first, and has to see it too.
task<done> upstream::await_request() {
    while (sent_nothing()) {
        listens_ = true;
        auto const ready = co_await socket_.async_wait(socket::wait_read, use_task);
        if (!ready) co_return std::unexpected{from(ready.error())};
        if (sent_nothing() && stale()) co_return std::unexpected{unasked()};
    }
    listens_ = false;
    co_return done{};
}

task<std::expected<void, failure>> upstream::read_one_head() {
    limits const& most = pool_.options.limits;
    head_search search;
    for (;;) {
        auto const found = search.look(in_.data(), most);
        // What a client may do before a request nobody does before a response.
        if (found == head_search::found::error || search.skip() != 0) {
            co_return std::unexpected{refused_by(search.error())};
        }
        if (found == head_search::found::complete) break;
        auto const asked = co_await await_request();
        if (!asked) co_return std::unexpected{with_retry(asked.error())};
        auto const more = co_await fill(first_read);
        if (!more) co_return std::unexpected{with_retry(more.error())};
        answered_ = true;
    }
    leave_room_for_body(search.length());
    auto const head = scan_response(in_.data().substr(0, search.length()), most, pool_.table,
                                    request_.method() == method::head);
    if (!head) co_return std::unexpected{refused_by(head.error())};
    response_ = *head;
    fields_.assign(head->fields.begin(), head->fields.end());
    response_.fields = http::fields{fields_};
    if (is_interim(response_.status)) {
        in_.consume(search.length());
    } else {
        in_.pin(search.length());
    }
    co_return std::expected<void, failure>{};
}

task<std::expected<response_head const*, failure>> upstream::read_any_head() {
    if (interim_ == 0) renew_patience();
    auto const read = co_await read_one_head();
    if (read && is_interim(response_.status) && ++interim_ < most_interim) co_return &response_;
    read_by_ = never;
    if (!read) {
        failed_ = true;
        co_return std::unexpected{read.error()};
    }
    if (is_interim(response_.status)) {
        failed_ = true;
        co_return std::unexpected{from(failure_kind::malformed, "there is no end of 1xx")};
    }
    complete_ = true;
    renew_write();
    if (response_.status == 101) {
        tunnel_ = true;
        expect_body(framing::until_close, 0);
        begin_body(framing::until_close, 0, false);
    } else {
        expect_body(response_.framing, response_.length);
    }
    co_return &response_;
}

task<std::expected<response_head const*, failure>> upstream::read_head() {
    for (;;) {
        auto const read = co_await read_any_head();
        if (!read || !is_interim((*read)->status)) co_return read;
    }
}

bool upstream::clean() const noexcept {
    return complete_ && !failed_ && !tunnel_ && message_sent() && body_ended() &&
           response_.keep_alive && !request_.closes();
}

bool upstream::stale() noexcept {
    char c = 0;
    return ::recv(socket_.native_handle(), &c, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != EWOULDBLOCK);
}

// An idle connection has no buffers: the thread keeps some, which whoever is next takes while they
// are warm.
void upstream::rest() noexcept {
    leave_body();
    in_.unpin();
    if (in_.empty()) in_.release();
    request_.release();
    fields_.clear();
    response_.fields = {};
}

// --- the pool -----------------------------------------------------------------------------------

std::unique_ptr<upstream> pool::take(boost::asio::ip::tcp::endpoint const& to) {
    auto const found = idle_.find(to);
    if (found == idle_.end()) return nullptr;
    auto& all = found->second;
    while (!all.empty()) {
        auto u = std::move(all.back().connection);  // the last used is the least likely to be stale
        all.pop_back();
        if (!u->stale()) return u;
    }
    return nullptr;
}

void pool::give_back(std::unique_ptr<upstream> u) noexcept {
    if (!u->clean()) return;
    u->rest();
    if (u->has_leftovers()) return;  // it said more than it was asked for
    auto& all = idle_[u->to()];
    if (all.size() >= options.idle_per_address) return;
    time_point const until = later(deadlines.now(), options.idle_timeout);
    all.push_back({std::move(u), until});
}

void pool::forget_old() noexcept {
    time_point const now = deadlines.now();
    for (auto& [to, all] : idle_) {
        std::erase_if(all, [now](idle const& i) { return i.until < now; });
    }
    // There is no end of addresses: those of a name change.
    std::erase_if(idle_, [](auto const& at) { return at.second.empty(); });
}

void pool::look_after(runtime& rt) {
    if (looking_ && !looking_->ended()) return;
    looking_ = rt.spawn_pinned(look());
}

task<void> pool::look() {
    while (!deadlines.empty()) {
        co_await sleep_for(deadlines.tick());
        deadlines.look();
        forget_old();
    }
}

task<void> pool::end() {
    idle_.clear();
    if (!looking_) co_return;
    looking_->request_stop();
    (void)co_await looking_->join();
}

void give_back::operator()(upstream* u) const noexcept {
    u->from_pool().give_back(std::unique_ptr<upstream>{u});
}

}  // namespace rondo::http::detail
