#include "connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ssl/context.hpp>
#include <cerrno>
#include <cstdio>
#include <exception>

#include "on_arrival.hpp"
#include "rondo/asio/use_task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/http/detail/announcement.hpp"
#include "rondo/http/detail/forwarding.hpp"

namespace rondo::http::detail {

namespace net = boost::asio;
using rondo::asio::use_task;

namespace {

constexpr std::size_t first_read = std::size_t{4} * 1024;
constexpr clock::duration linger_time = std::chrono::seconds{2};

constexpr clock::duration look_for_the_end = std::chrono::milliseconds{100};

// Whether something has come that was not read.
bool has_bytes(int socket) noexcept {
    char byte = 0;
    return ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

// Whether the other side has closed, though not all that it sent may have been read.
bool has_ended(int socket) noexcept {
    char byte = 0;
    ssize_t const n = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0) return true;
    if (n < 0) return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
    return info.tcpi_state != TCP_ESTABLISHED;
}

// A request from its first byte to the end of its answer, or of its connection.
class begun_request {
  public:
    explicit begun_request(site& at) noexcept : at_(&at) { ++at_->begun; }
    ~begun_request() { end(); }
    begun_request(begun_request const&) = delete;
    begun_request& operator=(begun_request const&) = delete;
    void end() noexcept {
        if (at_ != nullptr) --at_->begun;
        at_ = nullptr;
    }

  private:
    site* at_;
};

void print(std::exception_ptr const& thrown) noexcept {
    try {
        std::rethrow_exception(thrown);
    } catch (std::exception const& e) {
        std::fprintf(stderr, "rondo: a handler threw: %s\n", e.what());
    } catch (...) {
        std::fprintf(stderr, "rondo: a handler threw\n");
    }
}

}  // namespace

connection::connection(socket s, endpoint const& peer, site& at,
                       std::shared_ptr<boost::asio::ssl::context> tls)
    : channel(std::move(s), at.deadlines, party::client, at.options.limits,
              {at.times.read, at.times.write}),
      site_(at),
      peer_(peer),
      secrets_(std::move(tls)) {
    if (secrets_) {
        tls_ = std::make_unique<tls_stream>(socket_, *secrets_);
    } else {
        ask_for_rest(socket_.native_handle());
    }
    site_.changed.notify_one();  // somebody has to look after its deadlines
}

// That an answer is not whole which ends with its connection only a reset can say; over TLS it is
// enough that nobody says that it is. Asio's destructor would take the option back, so it closes
// here.
connection::~connection() {
    bool const half = head_sent_ && !tunnel_ && (cut_ || !message_sent());
    if (!half || tls_ || !ends_with_connection()) return;
    boost::system::error_code ignored;
    (void)socket_.set_option(net::socket_base::linger{true, 0}, ignored);
    (void)socket_.close(ignored);
}

connection::endpoint const& connection::local() noexcept {
    if (!local_) {
        boost::system::error_code ignored;
        local_ = socket_.local_endpoint(ignored);
    }
    return *local_;
}

std::string_view connection::peer_address() {
    if (peer_address_.empty()) peer_address_ = peer_.address().to_string();
    return peer_address_;
}

std::string_view connection::local_address() {
    if (local_address_.empty()) local_address_ = local().address().to_string();
    return local_address_;
}

std::string_view connection::request_id() {
    if (!request_id_.empty()) return request_id_;
    std::string_view const sent = head_.fields.value_or("x-request-id", "");
    request_id_ = is_request_id(sent) ? std::string{sent} : make_request_id();
    return request_id_;
}

void connection::drain() noexcept {
    read_on_ = false;
    if (idle_) cancel();
}

// --- one request after the other --------------------------------------------------------------

// Nobody waits for it at the end of the server: who says nothing has nothing to lose.
task<bool> connection::await_opening() {
    read_by_ = in(site_.times.head);
    if (!site_.draining) {
        idle_ = true;
        auto const readable = co_await socket_.async_wait(socket::wait_read, use_task);
        idle_ = false;
        if (readable) co_return true;
    }
    co_return site_.draining&& has_bytes(socket_.native_handle());
}

// Not a byte more is read than the announcement has: what follows may be a TLS handshake.
task<bool> connection::be_announced() {
    bool const begun = co_await await_opening();
    if (!begun) co_return false;
    std::string bytes;
    announcement a = read_announcement(bytes);
    while (a.is == announcement::state::incomplete) {
        std::size_t const had = bytes.size();
        bytes.resize(had + a.needed);
        net::mutable_buffer const room{bytes.data() + had, a.needed};
        auto const read = co_await socket_.async_read_some(room, use_task);
        if (!read) co_return false;
        bytes.resize(had + *read);
        a = read_announcement(bytes);
    }
    read_by_ = never;
    if (a.is == announcement::state::malformed) {
        site::count(site_.refused);
        co_return false;
    }
    if (a.client) peer_ = *a.client;
    co_return true;
}

task<void> connection::serve() {
    if (tls_) {
        auto const secured = co_await handshake();
        if (!secured) co_return;
    }
    for (;;) {
        bool const coming = co_await await_request();
        if (!coming) break;
        begun_request begun{site_};
        bool gone = false;
        auto const understood = co_await read_head(&gone);
        if (gone) break;
        if (!understood) {
            co_await turn_down(status_of(understood.error()), reason_of(understood.error()));
            begun.end();
            co_await linger();
            break;
        }
        bool const answered = co_await answer_request();
        if (!answered) co_return;  // nobody is to take it for whole
        begun.end();
        bool const goes_on = co_await complete();
        if (!goes_on) break;
    }
    read_by_ = never;
    if (tls_ && !failed_) co_await end_sending();
}

task<done> connection::handshake() {
    bool const begun = co_await await_opening();
    if (!begun) co_return std::unexpected{from(failure_kind::closed, "nobody began a handshake")};
    auto const secured = co_await tls_->async_handshake(tls_stream::server, use_task);
    read_by_ = never;
    if (secured) co_return done{};
    co_return std::unexpected{from(secured.error())};
}

bool connection::has_come() noexcept {
    in_.make_room(first_read);
    if (tls_) {
        std::size_t const had = in_.size();
        return record_has_come() && (in_.size() == had || has_begun());
    }
    auto const some = read_at_once(in_, in_.room());
    return some && *some && has_begun();
}

task<bool> connection::await_request() {
    in_.unpin();
    read_by_ = in(first_ ? site_.times.head : site_.times.idle);
    bool begun = has_begun();
    while (!begun && !site_.draining) {
        if (in_.empty()) in_.release();
        answer_.release();
        fields_ = {};
        if (wrote_last()) await_message();
        idle_ = true;
        auto const some = co_await fill(first_read);
        idle_ = false;
        if (!some) break;
        begun = has_begun();
    }
    if (!begun && site_.draining) begun = has_come();
    read_by_ = in(site_.times.head);
    co_return begun;
}

// `gone`: there is nobody to answer.
task<std::expected<void, head_error>> connection::read_head(bool* gone) {
    head_search search;
    head_ = {};
    read_on_ = false;
    limits const& most = site_.options.limits;
    for (;;) {
        auto const found = search.look(in_.data(), most);
        if (found == head_search::found::error) co_return std::unexpected{search.error()};
        if (found == head_search::found::complete) break;
        auto const more = co_await fill(first_read);
        if (more) continue;
        *gone = true;
        if (more.error().kind == failure_kind::timed_out) {
            cancelled_ = cancelled_by::nobody;
            co_await turn_down(408, "the header did not come in time");
        }
        co_return {};
    }
    read_by_ = never;
    first_ = false;
    std::size_t const size = search.skip() + search.length();
    leave_room_for_body(size);
    auto const head =
        scan_request(in_.data().substr(search.skip(), search.length()), most, site_.table);
    if (!head) co_return std::unexpected{head.error()};
    head_ = *head;
    fields_.assign(head->fields.begin(), head->fields.end());
    head_.fields = http::fields{fields_};
    in_.pin(size);
    expect_body(head_.framing, head_.length);
    co_return {};
}

// Notes that a request has ended, however it did.
class connection::request_note {
  public:
    explicit request_note(connection& c) noexcept : of_(c), began_(clock::now()) {
        site::count(of_.site_.requests);
    }
    request_note(request_note const&) = delete;
    request_note& operator=(request_note const&) = delete;
    ~request_note() {
        bool const whole = of_.head_sent_ && of_.message_sent() && !of_.cut_;
        int const status = of_.tunnel_ ? 101 : whole ? of_.answer_.status() : 0;
        of_.site_.note(status, began_);
        while (!of_.kept_.empty()) of_.kept_.pop_back();
    }

  private:
    connection& of_;
    time_point began_;
};

task<bool> connection::answer_request() {
    answer_.clear();
    request_id_.clear();
    broken_.reset();
    head_sent_ = false;
    out_head_ = nullptr;
    continued_ = !head_.expects_continue;
    informing_ = false;
    owes_continue_ = false;
    keep_ = head_.keep_alive;
    exchange x{*this};
    request_note const note{*this};
    std::exception_ptr thrown;
    try {
        co_await site_.handle(&x);
    } catch (...) {
        thrown = std::current_exception();
    }
    if (out_head_ != nullptr) head_sent_ = false;  // it was complete, but nobody has begun with it
    if (!thrown) co_return co_await end_answer();
    if (site_.options.on_failure) {
        site_.options.on_failure(thrown);
    } else {
        print(thrown);
    }
    keep_ = false;
    if (head_sent_ && !message_sent()) cut_ = true;
    if (!head_sent_) (void)co_await refuse(500, "the handler failed");
    co_return !cut_;
}

// What the handler left to do of its answer; false: the connection ends at once.
task<bool> connection::end_answer() {
    if (cut_) co_return false;
    if (tunnel_) co_return message_sent();  // else it ends with the handler
    if (!head_sent_ && broken_) {
        int const status = broken_->kind == failure_kind::timed_out   ? 408
                           : broken_->kind == failure_kind::too_large ? 413
                                                                      : 400;
        if (broken_->kind != failure_kind::closed) {  // else it just went
            site::count(site_.refused);
            cancelled_ = cancelled_by::nobody;
            (void)co_await refuse(status, broken_->reason);
        }
    } else if (!head_sent_) {
        (void)co_await refuse(500, "the handler gave no answer");
    } else if (!message_sent()) {
        // Whoever reads has to know that it is not whole: of chunks only finish() says that it is,
        // as the handler may have been stopped between two of them.
        if (failed_ || !ends_with_its_body()) co_return false;
        auto const ended = co_await finish({});
        if (!ended) co_return false;
    }
    co_return true;
}

// Whether the client has sent something that nobody will read, of this request or behind it.
bool connection::has_unread() noexcept {
    if (!body_ended()) return true;
    leave_body();
    return !in_.empty() || has_bytes(socket_.native_handle());
}

// Whether the connection goes on after an answer.
task<bool> connection::complete() {
    if (broken_ || (!keep_ && has_unread())) {
        co_await linger();
        co_return false;
    }
    if (failed_ || !keep_) co_return false;
    if (!body_ended()) {
        bool const rest_is_read = co_await drop_rest();
        if (!rest_is_read) {
            co_await linger();
            co_return false;
        }
    }
    leave_body();
    co_return true;
}

// A body that nobody has read, up to a limit; at the end of the server nobody waits for it.
task<bool> connection::drop_rest() {
    if (!continued_) co_return false;  // it may come or not
    std::uint64_t dropped = 0;
    while (dropped <= site_.options.drain && !site_.draining) {
        idle_ = true;
        auto const piece = co_await read_body();
        idle_ = false;
        if (!piece) co_return false;
        if (piece->empty()) co_return true;
        dropped += piece->size();
    }
    co_return false;
}

task<done> connection::refuse(int status, std::string_view reason) {
    answer_.clear();
    head_sent_ = false;
    answer_.status(status);
    answer_.add("content-type", "text/plain");
    answer_.close();
    std::string body{reason};
    body += '\n';
    co_return co_await send(body);
}

task<void> connection::turn_down(int status, char const* reason) {
    site::count(site_.refused);
    (void)co_await refuse(status, reason);
    auto const& tell = site_.options.on_refusal;
    if (tell) tell({peer_, site_.index, status, reason});
}

// Closing a socket that has something unread makes the system throw away what was sent. So it is
// read first, for a while.
task<void> connection::linger() {
    co_await end_sending();
    tls_.reset();  // what is read now is thrown away as it comes
    clock::duration const most = std::min(linger_time, site_.times.idle);
    read_by_ = in(most);
    cancelled_ = cancelled_by::nobody;
    // Of one who sends as fast as this reads no wait is ever cancelled.
    time_point const until = later(clock::now(), most);
    while (clock::now() < until) {
        in_.unpin();
        in_.clear();
        auto const n = co_await fill(first_read);
        if (!n) break;
    }
    read_by_ = never;
}

// --- what an exchange offers ------------------------------------------------------------------

// At the end of the server: whether a further request was read, which has to be answered.
// What came with the rest of this one after the end had begun is none: there might always be more.
bool connection::is_followed() const noexcept { return body_is_followed() && !read_on_; }

void connection::seal(http::framing otherwise) {
    if (has_head()) return;
    head_sent_ = true;
    int const status = answer_.status();
    bool const never_has_body = status < 200 || status == 204;
    bool const muted = never_has_body || status == 304 || head_.method == method::head;
    http::framing f = answer_.framing().value_or(otherwise);
    if (f == framing::chunked && head_.minor == 0) f = framing::until_close;
    if (f == framing::until_close && !muted) keep_ = false;
    bool const body_is_lost = broken_ || !continued_;  // complete() reads nothing behind it
    if (answer_.closes() || body_is_lost || (site_.draining && !is_followed())) keep_ = false;
    if (!never_has_body && !(status == 304 && !answer_.framing())) answer_.add_framing(f);
    if (tunnel_) {
        answer_.add("connection", "upgrade");
    } else if (!keep_) {
        answer_.add("connection", "close");
    } else if (head_.minor == 0) {
        answer_.add("connection", "keep-alive");
    }
    if (!answer_.dated()) answer_.add("date", site_.date.now());
    begin_body(f, answer_.promised(), muted);
    out_head_ = &answer_.seal();
}

task<std::expected<std::string_view, failure>> connection::read() {
    if (!continued_) {
        continued_ = true;
        if (!has_head() && in_.empty()) {
            auto const sent = co_await send_continue();
            if (!sent) co_return std::unexpected{sent.error()};
        }
    }
    auto piece = co_await read_body();
    if (!piece && !tunnel_) broken_ = piece.error();
    co_return piece;
}

task<done> connection::finish_tunnel() {
    if (message_sent()) co_return done{};
    auto const ended = co_await end_body({});
    co_await end_sending();
    co_return ended;
}

task<done> connection::send(std::string_view body) {
    if (informing_) co_await let_interim_end();
    if (has_head()) co_return std::unexpected{misused("the head was sent before")};
    // A length that a 304 has is that of the 200 (RFC 9110, 8.6), which is not known here.
    bool const has_length = answer_.status() != 304 || !body.empty();
    if (!answer_.framing() && has_length) answer_.length(body.size());
    seal(framing::length);
    auto const sent = co_await write_body(body);
    if (!sent) co_return sent;
    co_return co_await end_body({});
}

task<done> connection::send_file(int file, std::uint64_t offset, std::uint64_t length) {
    if (informing_) co_await let_interim_end();
    if (has_head()) co_return std::unexpected{misused("the head was sent before")};
    answer_.length(length);
    seal(framing::length);
    auto const sent = co_await write_file(file, offset, length);
    if (!sent) co_return sent;
    co_return co_await end_body({});
}

task<done> connection::write(std::string_view piece) {
    if (informing_) return write_behind_interim(piece);
    seal(framing::chunked);
    return write_body(piece);
}

task<done> connection::write_some_file(int file, std::uint64_t offset, std::uint64_t length) {
    if (informing_) return write_file_behind_interim(file, offset, length);
    seal(framing::chunked);
    return write_file(file, offset, length);
}

task<done> connection::flush() {
    if (informing_) co_await let_interim_end();
    seal(framing::chunked);
    if (out_head_ == nullptr) co_return done{};
    co_return co_await write_body({});
}

task<done> connection::finish(std::span<field const> trailer) {
    if (tunnel_) return finish_tunnel();
    if (informing_) return finish_behind_interim(trailer);
    seal(framing::chunked);
    return end_body(trailer);
}

// What is there to be read may be a body, or the next request: then the end shows behind it only,
// and is looked for now and then.
task<void> connection::gone() {
    for (;;) {
        auto const readable = co_await socket_.async_wait(socket::wait_read, use_task);
        if (!readable || has_ended(socket_.native_handle())) co_return;
        co_await sleep_for(look_for_the_end);
    }
}

task<done> connection::upgrade() {
    if (informing_) co_await let_interim_end();
    if (has_head()) co_return std::unexpected{misused("the head was sent before")};
    tunnel_ = true;
    keep_ = false;
    answer_.status(101);
    seal(framing::none);
    auto const sent = co_await write_body({});
    expect_body(framing::until_close, 0);
    begin_body(framing::until_close, 0, false);
    co_return sent;
}

}  // namespace rondo::http::detail
