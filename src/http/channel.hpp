// channel.hpp: one connection, of a client to us or of us to an upstream: bytes in and out, with
// deadlines, and the bodies of messages.
//
// Reading        in_ holds what came and was not used, in a block that is taken when something
//                comes. A head stays pinned at its front while its body is read behind it, so that
//                views of the head are valid to the end.
//                More of a message that has begun is read at once if it is there, a few times in a
//                row; otherwise, and for what begins, reading waits (on_arrival.hpp).
// Writing        is tried at once, without a turn of the scheduler; only what the system does not
//                take is waited for.
//                Who is stopped, or fails, while some of a piece is left cannot send the rest, and
//                nothing may come in its place: the connection has failed.
// Deadlines      are set before a wait and cleared after it (watch.hpp). One that passes cancels
//                what the socket waits for, in both directions; so a piece of a body that comes
//                puts off the deadline of what is sent meanwhile.
#pragma once

#include <sys/uio.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "rondo/core/task.hpp"
#include "rondo/http/body.hpp"
#include "rondo/http/detail/buffer.hpp"
#include "rondo/http/head.hpp"
#include "rondo/http/head_text.hpp"
#include "watch.hpp"

namespace rondo::http::detail {

using done = std::expected<void, failure>;

// Some pieces that are sent one after the other.
class pieces {
  public:
    void add(std::string_view text) noexcept {
        if (text.empty()) return;
        parts_[end_++] = {const_cast<char*>(text.data()), text.size()};
    }
    [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
    iovec* data() noexcept { return parts_.data() + begin_; }
    std::size_t count() const noexcept { return end_ - begin_; }
    std::size_t size() const noexcept;  // in bytes
    void advance(std::size_t n) noexcept;

  private:
    std::array<iovec, 6> parts_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

class channel : public watched {
  public:
    using executor = boost::asio::io_context::executor_type;
    using socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, executor>;
    using tls_stream = boost::asio::ssl::stream<socket&>;

    struct patience {
        clock::duration read;
        clock::duration write;
    };

    channel(socket s, watch& by, party other, limits const& most, patience p) noexcept
        : watched(by), socket_(std::move(s)), most_(most), patience_(p), other_(other) {}

    bool secure() const noexcept { return tls_ != nullptr; }
    // Ends what is waited for, with `stopped`.
    void cancel() noexcept;

    // More bytes into in_; `closed` at the end of them. The deadline of reading is the caller's.
    task<std::expected<std::size_t, failure>> fill(std::size_t wanted) {
        return fill(&in_, wanted, no_limit);
    }
    // What is read next begins a message: it is not here yet.
    void await_message() noexcept { reads_ahead_ = 0; }
    // Something was sent after the last read that waited: an error behind what that got would have
    // been heard of.
    bool wrote_last() const noexcept { return wrote_last_; }

    // --- the body that comes in

    // Sees to room behind a head of that size, which has not been scanned: it may move. Once it is
    // pinned a body gets no more, nor a trailer, which has to fit as a whole.
    void leave_room_for_body(std::size_t head);
    void expect_body(http::framing f, std::uint64_t length) noexcept;
    // The next piece; empty at the end.
    task<std::expected<std::string_view, failure>> read_body();
    // The same if it has come; nothing if more has to be read for it.
    std::optional<std::expected<std::string_view, failure>> try_read_body();
    bool body_ended() const noexcept { return in_ended_; }
    std::uint64_t body_received() const noexcept { return in_received_; }
    // Whether something was read that comes behind it, and is more than the end of a line (which
    // some clients send behind a body; RFC 9112, 2.2).
    bool body_is_followed() const noexcept {
        std::string_view const behind = in_.data().substr(piece_in_ == &in_ ? given_ : 0);
        return in_ended_ && behind.find_first_not_of("\r\n") != std::string_view::npos;
    }
    // The last piece is done with.
    void leave_body() noexcept;
    http::fields trailers() const noexcept { return http::fields{trailers_}; }

    // --- the message that goes out

    // What was begun with f has a body of that many bytes; muted: none is sent.
    void begin_body(http::framing f, std::uint64_t length, bool muted) noexcept;
    // A piece of the body, after the head if that was not sent. Small ones go into the head's
    // buffer.
    task<done> write_body(std::string_view piece);
    task<done> write_file(int file, std::uint64_t offset, std::uint64_t length);
    task<done> end_body(std::span<field const> trailer);
    bool message_sent() const noexcept { return out_ended_; }
    // Whether its end is there when its body is: it has a length, or none is sent.
    bool ends_with_its_body() const noexcept {
        return out_muted_ || out_framing_ == framing::length || out_framing_ == framing::none;
    }
    // Whether its end is that of the connection.
    bool ends_with_connection() const noexcept {
        return !out_muted_ && out_framing_ == framing::until_close;
    }
    // The system has taken no byte of it.
    bool sent_nothing() const noexcept { return !sent_some_; }
    std::uint64_t body_sent() const noexcept { return out_sent_; }

    // All of it; the pieces show what is left. Try: false if some is that has to be waited for.
    std::expected<bool, failure> try_send(pieces& p, int flags = 0) noexcept;
    task<done> send(pieces* p, int flags = 0);

    // Nothing more comes from this side: the system says so, and TLS before it. Over TLS nothing
    // more is read either.
    task<void> end_sending();

  protected:
    ~channel() = default;

    enum class cancelled_by : std::uint8_t { nobody, deadline, owner };

    // The other side has something to say: it is alive, though it takes nothing of what is sent.
    void renew_write() noexcept {
        if (write_by_ != never) write_by_ = in(patience_.write);
    }

    // What is there, into the room of a buffer, up to so much; nothing if it has to be waited for.
    // Not over TLS.
    std::optional<std::expected<std::size_t, failure>> read_at_once(buffer& to,
                                                                    std::size_t most) noexcept;

    // Over TLS, while nobody reads: whether a record has come, into the room of in_, or a part of
    // one, of which nothing can be read yet.
    bool record_has_come() noexcept;

    failure from(boost::system::error_code e) const noexcept;
    failure misused(char const* why) const noexcept {
        return {failure_kind::misused, party::us, false, why};
    }
    failure from(failure_kind k, char const* why) const noexcept { return {k, other_, false, why}; }

    socket socket_;
    std::unique_ptr<tls_stream> tls_;
    buffer in_;
    limits const& most_;
    patience patience_;
    cancelled_by cancelled_ = cancelled_by::nobody;
    bool failed_ = false;   // nothing more can be sent or read with sense
    bool read_on_ = false;  // what there was did not do; set by fill(), and cleared by who asks
    // The head of what goes out, complete, until one of the three above begins to send it: who is
    // refused, or dropped before its turn, leaves it to the next.
    buffer* out_head_ = nullptr;
    // Nobody has begun to send it, and it has been cleared.
    bool is_to_be_made_anew(head_text const& t) const noexcept {
        return out_head_ != nullptr && !t.sealed();
    }

  private:
    void expired() noexcept override;

    static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
    // The same into a buffer, up to so much.
    task<std::expected<std::size_t, failure>> fill(buffer* to, std::size_t wanted,
                                                   std::size_t most);
    class unsent;
    class body_count;
    task<done> wait_to_send();
    // Others have their turn in the middle of a piece.
    task<void> give_way();
    task<done> send_over_tls(pieces* p);
    task<void> close_tls();
    task<done> send_by_reading(int file, std::uint64_t offset, std::uint64_t length);
    // Something was sent: a tunnel is alive while something passes in either direction, however
    // long a piece takes.
    void stay_alive() noexcept {
        bool const is_awaited = out_framing_ == framing::until_close && read_by_ != never;
        if (is_awaited) read_by_ = in(patience_.read);
    }
    // Nobody can send the rest of a piece: what follows would be taken for it, or the end for that
    // of a whole message.
    std::unexpected<failure> leave_off(failure f) noexcept {
        failed_ = left_off_ = true;
        return std::unexpected{f};
    }
    // What there is of a body that is not chunked.
    std::string_view take_piece() noexcept;
    // The next piece of a chunked body, or how many more bytes are needed.
    std::expected<std::string_view, failure> next_chunk();
    // Whether a piece of that size fits what was promised, and follows what was.
    done is_promised(std::uint64_t size) const noexcept;
    // The same; takes it off.
    done take_from_promised(std::uint64_t size) noexcept;
    buffer* take_head() noexcept;
    std::unexpected<failure> nothing_read(boost::system::error_code e) noexcept;
    std::expected<std::string_view, failure> fail(failure f) noexcept {
        failed_ = true;
        return std::unexpected{f};
    }

    party other_;

    http::framing in_framing_ = http::framing::none;
    std::uint8_t reads_ahead_ = 0;  // that may be tried before a wait
    bool wrote_last_ = false;
    bool in_ended_ = true;
    bool at_end_ = false;  // the other side has said that nothing more comes
    std::uint64_t in_left_ = 0;
    std::uint64_t in_received_ = 0;
    buffer bulk_;              // of a body of which much is left: large pieces are fewer
    buffer* piece_in_ = &in_;  // one of the two
    std::size_t given_ = 0;    // of that, to be consumed before the next piece
    chunk_decoder decoder_{most_};
    std::vector<field> trailers_;

    http::framing out_framing_ = http::framing::none;
    bool out_muted_ = false;
    bool out_ended_ = false;
    bool sent_some_ = false;
    bool left_off_ = false;  // in the middle of a piece
    std::uint64_t out_left_ = 0;
    std::uint64_t out_sent_ = 0;
};

}  // namespace rondo::http::detail
