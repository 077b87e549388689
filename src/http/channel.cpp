#include "channel.hpp"

#include <openssl/ssl.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/completion_condition.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <ctime>

#include "characters.hpp"
#include "on_arrival.hpp"
#include "rondo/asio/use_task.hpp"
#include "rondo/core/assert.hpp"
#include "rondo/core/this_task.hpp"

namespace rondo::http::detail {

namespace net = boost::asio;
using rondo::asio::use_task;

namespace {

constexpr std::size_t least_read = std::size_t{4} * 1024;
constexpr std::size_t small_piece = std::size_t{4} * 1024;  // cheaper to copy than to point at
constexpr clock::duration closing_time = std::chrono::seconds{2};
constexpr std::size_t file_piece = std::size_t{64} * 1024;
// Of a file, before others have their turn: to a client that reads as fast the system would never
// have to be waited for.
constexpr std::uint64_t file_step = std::uint64_t{2} * 1024 * 1024;
// In a row, before others have their turn.
constexpr std::uint8_t most_reads_ahead = 4;

boost::system::error_code last_error() noexcept {
    return {errno, boost::system::system_category()};
}

// The pieces as Asio wants them.
auto buffers_of(pieces& p) noexcept {
    std::array<net::const_buffer, 6> all;
    for (std::size_t i = 0; i < p.count(); ++i) {
        all[i] = {p.data()[i].iov_base, p.data()[i].iov_len};
    }
    return all;
}

void append_field(buffer& to, field const& f) {
    RONDO_ASSERT(all_are(f.name, in_token), "the name of a field is a token");
    to.append(f.name);
    to.append(": ");
    to.make_room(f.value.size());
    copy_on_one_line(f.value, to.tail());
    to.commit(f.value.size());
    to.append("\r\n");
}

// Most messages are in one piece, which is cheaper to hand over by itself.
ssize_t send_some(int socket, pieces& p, int flags) noexcept {
    flags |= MSG_DONTWAIT | MSG_NOSIGNAL;
    if (p.count() == 1) {
        return ::send(socket, p.data()->iov_base, p.data()->iov_len, flags);
    }
    msghdr message{};
    message.msg_iov = p.data();
    message.msg_iovlen = p.count();
    return ::sendmsg(socket, &message, flags);
}

// Asked once: a program says so when it begins, if it does.
bool ignores_broken_pipes() noexcept {
    static bool const ignored = [] {
        struct sigaction now{};
        return ::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
    }();
    return ignored;
}

// sendfile() has no MSG_NOSIGNAL: to a client that has gone it sends this thread a SIGPIPE, which
// ends a program that does not expect it. So it is held back meanwhile, and taken if it came.
ssize_t send_part_of_file(int socket, int file, off_t* at, std::size_t length) noexcept {
    if (ignores_broken_pipes()) return ::sendfile(socket, file, at, length);
    sigset_t broken_pipe;
    sigset_t before;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
    ssize_t const n = ::sendfile(socket, file, at, length);
    int const why = errno;
    bool const is_ours = sigismember(&before, SIGPIPE) == 0;  // else it may be somebody else's
    if (is_ours) {  // also when a part was sent before the end was noticed
        timespec const at_once{};
        (void)::sigtimedwait(&broken_pipe, nullptr, &at_once);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = why;
    return n;
}

}  // namespace

void pieces::advance(std::size_t n) noexcept {
    while (begin_ != end_ && n >= parts_[begin_].iov_len) n -= parts_[begin_++].iov_len;
    if (n == 0) return;
    parts_[begin_].iov_base = static_cast<char*>(parts_[begin_].iov_base) + n;
    parts_[begin_].iov_len -= n;
}

std::size_t pieces::size() const noexcept {
    std::size_t all = 0;
    for (std::size_t i = begin_; i != end_; ++i) all += parts_[i].iov_len;
    return all;
}

failure channel::from(boost::system::error_code e) const noexcept {
    if (e == net::error::operation_aborted && cancelled_ == cancelled_by::deadline) {
        return from(failure_kind::timed_out, "it took too long");
    }
    if (e == net::error::operation_aborted) {
        return {failure_kind::stopped, party::us, false, "it was shut down"};
    }
    if (e == net::error::eof || e == net::ssl::error::stream_truncated) {
        return from(failure_kind::closed, "the connection was closed");
    }
    if (e == net::error::connection_reset || e == net::error::broken_pipe) {
        return from(failure_kind::closed, "the connection was reset");
    }
    return from(failure_kind::other, "the connection failed");
}

// What a reset leaves behind is no end: nobody said that it is all.
std::unexpected<failure> channel::nothing_read(boost::system::error_code e) noexcept {
    at_end_ = e == net::error::eof;
    return std::unexpected{from(e)};
}

void channel::cancel() noexcept {
    cancelled_ = cancelled_by::owner;
    boost::system::error_code ignored;
    (void)socket_.cancel(ignored);
}

void channel::expired() noexcept {
    cancelled_ = cancelled_by::deadline;
    boost::system::error_code ignored;
    (void)socket_.cancel(ignored);
}

// Whether the other side says that it has ended too is of no interest, and is not waited for.
task<void> channel::close_tls() {
    SSL* const engine = tls_->native_handle();
    ::SSL_set_shutdown(engine, ::SSL_get_shutdown(engine) | SSL_RECEIVED_SHUTDOWN);
    deadline const by{write_by_, in(std::min(closing_time, patience_.write))};
    (void)co_await tls_->async_shutdown(use_task);
}

task<void> channel::end_sending() {
    if (tls_) co_await close_tls();
    boost::system::error_code ignored;
    (void)socket_.shutdown(socket::shutdown_send, ignored);
}

// --- in ---------------------------------------------------------------------------------------

std::optional<std::expected<std::size_t, failure>> channel::read_at_once(
    buffer& to, std::size_t most) noexcept {
    std::size_t const room = std::min(to.room(), most);
    ssize_t const n = ::recv(socket_.native_handle(), to.tail(), room, MSG_DONTWAIT);
    if (n > 0) {
        to.commit(static_cast<std::size_t>(n));
        return static_cast<std::size_t>(n);
    }
    if (n == 0) return nothing_read(net::error::eof);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return std::nullopt;
    return nothing_read(last_error());
}

// The socket does not block anyway, but Asio would wait until it is told so.
bool channel::record_has_come() noexcept {
    boost::system::error_code e;
    (void)socket_.non_blocking(true, e);
    if (e) return false;
    net::mutable_buffer const where{in_.tail(), in_.room()};
    std::size_t const n = tls_->read_some(where, e);
    if (!e) in_.commit(n);
    if (e != net::error::would_block) return !e;
    return ::SSL_has_pending(tls_->native_handle()) == 1;
}

task<std::expected<std::size_t, failure>> channel::fill(buffer* to, std::size_t wanted,
                                                        std::size_t most) {
    read_on_ = true;
    bool const tries = reads_ahead_ != 0 && !tls_;
    bool const takes_room_later = reads_on_arrival && !tls_ && !tries && to->capacity() == 0;
    if (!takes_room_later) {
        to->make_room(wanted);
        if (to->room() == 0) {
            co_return std::unexpected{from(failure_kind::too_large, "there is no room for it")};
        }
    }
    if (tries) {
        --reads_ahead_;
        auto const here = read_at_once(*to, most);
        if (here) co_return *here;
        if (reads_on_arrival && to == &bulk_) to->release();  // who waits has no large block
    }
    std::expected<std::size_t, boost::system::error_code> n{0};
    if (tls_) {
        net::mutable_buffer const where{to->tail(), std::min(to->room(), most)};
        n = co_await tls_->async_read_some(where, use_task);
    } else if constexpr (reads_on_arrival) {
        on_arrival const where{*to, wanted, most, other_ == party::upstream};
        n = co_await socket_.async_read_some(where, use_task);
    } else {
        net::mutable_buffer const where{to->tail(), std::min(to->room(), most)};
        n = co_await socket_.async_read_some(where, use_task);
    }
    if (!n) co_return nothing_read(n.error());
    to->commit(*n);
    reads_ahead_ = most_reads_ahead;
    wrote_last_ = false;
    co_return *n;
}

void channel::leave_room_for_body(std::size_t head) {
    in_.make_room_behind(head, least_read + most_.trailer);
}

void channel::expect_body(http::framing f, std::uint64_t length) noexcept {
    in_framing_ = f;
    in_left_ = length;
    in_received_ = 0;
    in_ended_ = f == framing::none;
    out_sent_ = 0;
    given_ = 0;
    bulk_.release();
    piece_in_ = &in_;
    decoder_ = chunk_decoder{most_};
    trailers_.clear();
}

std::expected<std::string_view, failure> channel::next_chunk() {
    auto const step = decoder_.next(in_.data());
    if (!step) return fail(from(failure_kind::malformed, reason_of(step.error())));
    if (step->ended) {
        std::array<field, 64> table;
        auto const all = scan_trailer(decoder_.trailer(), table);
        if (!all) return fail(from(failure_kind::malformed, reason_of(all.error())));
        trailers_.assign(all->begin(), all->end());
        in_ended_ = true;
    }
    given_ = step->consumed;
    in_received_ += step->data.size();
    return step->data;
}

std::string_view channel::take_piece() noexcept {
    given_ = piece_in_->size();
    if (in_framing_ == framing::length) {
        given_ = static_cast<std::size_t>(std::min<std::uint64_t>(given_, in_left_));
        in_left_ -= given_;
        in_ended_ = in_left_ == 0;
    }
    in_received_ += given_;
    return piece_in_->data().substr(0, given_);
}

void channel::leave_body() noexcept {
    piece_in_->consume(std::exchange(given_, 0));
    if (piece_in_ == &in_) return;
    bulk_.release();
    piece_in_ = &in_;
}

std::optional<std::expected<std::string_view, failure>> channel::try_read_body() {
    leave_body();
    if (in_ended_) return std::string_view{};
    if (in_framing_ == framing::chunked) {
        auto const piece = next_chunk();
        if (!piece || !piece->empty() || in_ended_) return piece;
        in_.consume(std::exchange(given_, 0));
    } else if (!in_.empty()) {
        return take_piece();
    }
    return std::nullopt;
}

task<std::expected<std::string_view, failure>> channel::read_body() {
    for (;;) {
        auto const here = try_read_body();
        if (here) co_return *here;
        bool const much = in_framing_ == framing::length && in_left_ > buffer::usual;
        if (much) piece_in_ = &bulk_;
        auto const left =
            static_cast<std::size_t>(std::min<std::uint64_t>(in_left_, buffer::large));
        std::size_t const wanted = much ? left : least_read;
        std::size_t const most = much ? left : no_limit;
        deadline const by{read_by_, in(patience_.read)};
        auto const more = co_await fill(piece_in_, wanted, most);
        if (more) renew_write();
        if (more && much) co_return take_piece();
        if (more) continue;
        if (in_framing_ == framing::until_close && at_end_) {
            in_ended_ = true;
            continue;
        }
        co_return fail(more.error());
    }
}

// --- out --------------------------------------------------------------------------------------

std::expected<bool, failure> channel::try_send(pieces& p, int flags) noexcept {
    while (!p.empty()) {
        ssize_t const n = send_some(socket_.native_handle(), p, flags);
        if (n >= 0) {
            sent_some_ = wrote_last_ = true;
            stay_alive();
            p.advance(static_cast<std::size_t>(n));
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return false;
        } else if (errno != EINTR) {
            return leave_off(from(last_error()));
        }
    }
    return true;
}

// Some of a piece, while it is waited for that the system takes it. Whoever waits may be stopped,
// and gets no result to look at then: so this is what notes that the rest was left off.
class channel::unsent {
  public:
    explicit unsent(channel& c) noexcept : of_(c) {}
    ~unsent() {
        if (!taken_) of_.failed_ = of_.left_off_ = true;
    }
    unsent(unsent const&) = delete;
    unsent& operator=(unsent const&) = delete;
    void taken() noexcept { taken_ = true; }

  private:
    channel& of_;
    bool taken_ = false;
};

task<done> channel::wait_to_send() {
    deadline const by{write_by_, in(patience_.write)};
    unsent rest{*this};
    auto const ready = co_await socket_.async_wait(socket::wait_write, use_task);
    if (!ready) co_return std::unexpected{from(ready.error())};
    rest.taken();
    co_return done{};
}

task<void> channel::give_way() {
    unsent rest{*this};
    co_await yield();
    rest.taken();
}

task<done> channel::send_over_tls(pieces* p) {
    auto const all = buffers_of(*p);
    std::size_t const size = p->size();
    deadline const by{write_by_, in(patience_.write)};
    unsent rest{*this};
    // Asked after each step, which is a record.
    auto const go_on = [=, this](boost::system::error_code e, std::size_t sent) {
        write_by_ = in(patience_.write);
        stay_alive();
        p->advance(sent - (size - p->size()));
        return net::transfer_all()(e, sent);
    };
    auto const n = co_await net::async_write(*tls_, all, go_on, use_task);
    if (!n) co_return std::unexpected{from(n.error())};
    rest.taken();
    co_return done{};
}

task<done> channel::send(pieces* p, int flags) {
    if (tls_) co_return co_await send_over_tls(p);
    for (;;) {
        auto const all = try_send(*p, flags);
        if (!all) co_return std::unexpected{all.error()};
        if (*all) co_return done{};
        auto const ready = co_await wait_to_send();
        if (!ready) co_return ready;
    }
}

void channel::begin_body(http::framing f, std::uint64_t length, bool muted) noexcept {
    out_framing_ = f;
    out_left_ = length;
    out_muted_ = muted;
    out_ended_ = false;
    sent_some_ = false;
    out_sent_ = 0;
}

done channel::is_promised(std::uint64_t size) const noexcept {
    if (out_ended_) return std::unexpected{misused("the message has been sent")};
    if (left_off_) return std::unexpected{misused("the message was left off")};
    if (out_framing_ == framing::none && size != 0) {
        return std::unexpected{misused("the message has no body")};
    }
    if (out_framing_ == framing::length && size > out_left_) {
        return std::unexpected{misused("more than the length that was promised")};
    }
    return {};
}

done channel::take_from_promised(std::uint64_t size) noexcept {
    done const fits = is_promised(size);
    if (fits && out_framing_ == framing::length) out_left_ -= size;
    return fits;
}

buffer* channel::take_head() noexcept {
    RONDO_ASSERT(out_head_ == nullptr || !out_head_->empty(),
                 "a head is not cleared while a piece waits to be sent behind it");
    return std::exchange(out_head_, nullptr);
}

// Counts of a piece of the body what is sent of it, also if its sender is stopped.
class channel::body_count {
  public:
    body_count(channel& c, pieces const& p, std::size_t size, std::size_t behind) noexcept
        : of_(c), pieces_(p), size_(size), behind_(behind) {}
    body_count(body_count const&) = delete;
    body_count& operator=(body_count const&) = delete;
    ~body_count() {
        std::size_t const left = pieces_.size();
        of_.out_sent_ += size_ - (left > behind_ ? std::min(left - behind_, size_) : 0);
    }

  private:
    channel& of_;
    pieces const& pieces_;
    std::size_t size_;
    std::size_t behind_;  // so many bytes follow in the pieces
};

task<done> channel::write_body(std::string_view piece) {
    done const fits = take_from_promised(piece.size());
    if (!fits) co_return fits;
    buffer* const head = take_head();
    bool const in_chunks = out_framing_ == framing::chunked && !piece.empty() && !out_muted_;
    chunk_line const line{piece.size()};
    pieces p;
    if (out_muted_) piece = {};
    if (head != nullptr && piece.size() <= small_piece) {
        if (in_chunks) head->append(line.text());
        head->append(piece);
        if (in_chunks) head->append(after_chunk);
        p.add(head->data());
    } else {
        if (head != nullptr) p.add(head->data());
        if (in_chunks) p.add(line.text());
        p.add(piece);
        if (in_chunks) p.add(after_chunk);
    }
    body_count const count{*this, p, piece.size(), in_chunks ? after_chunk.size() : 0};
    if (!tls_) {
        auto const all = try_send(p);
        if (!all) co_return std::unexpected{all.error()};
        if (*all) co_return done{};
    }
    co_return co_await send(&p);
}

task<done> channel::end_body(std::span<field const> trailer) {
    if (out_ended_) co_return done{};
    if (left_off_) co_return std::unexpected{misused("the message was left off")};
    if (out_framing_ == framing::length && out_left_ != 0 && !out_muted_) {
        failed_ = true;
        co_return std::unexpected{misused("less than the length that was promised")};
    }
    buffer* const head = take_head();
    pieces p;
    buffer last;
    if (head != nullptr) p.add(head->data());
    if (out_framing_ == framing::chunked && !out_muted_) {
        last.append(last_chunk);
        for (field const& f : trailer) append_field(last, f);
        last.append("\r\n");
        p.add(last.data());
    }
    if (!tls_) {
        auto const all = try_send(p);
        if (!all) co_return std::unexpected{all.error()};
    }
    if (!p.empty()) {
        auto const sent = co_await send(&p);
        if (!sent) co_return sent;
    }
    out_ended_ = true;  // not before: who is stopped here has not sent all of it
    co_return done{};
}

task<done> channel::write_file(int file, std::uint64_t offset, std::uint64_t length) {
    if (out_framing_ != framing::length || tls_ || out_muted_) {
        done const fits = is_promised(length);
        if (!fits) co_return fits;
        if (out_head_ != nullptr) {
            auto const sent = co_await write_body({});
            if (!sent) co_return sent;
        }
        if (out_muted_) co_return take_from_promised(length);
        co_return co_await send_by_reading(file, offset, length);
    }
    done const fits = take_from_promised(length);
    if (!fits) co_return fits;
    if (buffer* const head = take_head()) {
        pieces p;
        p.add(head->data());
        auto const sent = co_await send(&p, length != 0 ? MSG_MORE : 0);
        if (!sent) co_return sent;
    }
    auto at = static_cast<off_t>(offset);
    while (length != 0) {
        auto const step = static_cast<std::size_t>(std::min<std::uint64_t>(length, file_step));
        ssize_t const n = send_part_of_file(socket_.native_handle(), file, &at, step);
        if (n > 0) {
            length -= static_cast<std::uint64_t>(n);
            out_sent_ += static_cast<std::uint64_t>(n);
            if (length != 0 && static_cast<std::size_t>(n) == step) co_await give_way();
        } else if (n == 0) {
            co_return leave_off(misused("the file is shorter than it was"));
        } else if (errno == EAGAIN) {
            auto const ready = co_await wait_to_send();
            if (!ready) co_return ready;
        } else if (errno != EINTR) {
            // Whether this side failed, the other one, or the system cannot do it with such a file
            // does not show; who reads and sends will know.
            out_left_ += length;
            co_return co_await send_by_reading(file, static_cast<std::uint64_t>(at), length);
        }
    }
    co_return done{};
}

task<done> channel::send_by_reading(int file, std::uint64_t offset, std::uint64_t length) {
    buffer piece;
    piece.make_room(static_cast<std::size_t>(std::min<std::uint64_t>(length, file_piece)));
    std::uint64_t in_a_row = 0;
    while (length != 0) {
        if (in_a_row >= file_step) {
            co_await give_way();
            in_a_row = 0;
        }
        ssize_t const n =
            ::pread(file, piece.tail(),
                    static_cast<std::size_t>(std::min<std::uint64_t>(length, piece.room())),
                    static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) co_return leave_off(misused("the file cannot be read"));
        if (n == 0) co_return leave_off(misused("the file is shorter than it was"));
        auto const size = static_cast<std::size_t>(n);
        std::string_view const text{piece.tail(), size};
        auto const sent = co_await write_body(text);
        if (!sent) co_return sent;
        offset += size;
        length -= size;
        in_a_row += size;
    }
    co_return done{};
}

}  // namespace rondo::http::detail
