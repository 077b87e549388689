// exchange.hpp: one request and the answer to it: what a handler gets.
//
//   task<void> hello(http::exchange* x) {
//       x->answer().add("content-type", "text/plain");
//       (void)co_await x->send("Hello, world\n");
//   }
//
// Order          read() what the client sent, then answer; or both at the same time, from two tasks
//                of the same worker. One answer: send(), or send_file(), or begin with write() or
//                flush() and end with finish().
// Body in        comes as it arrives, in pieces that are views of the connection's buffer: valid
//                until the next read(). Nothing is read ahead of the handler: a slow one slows the
//                client down. Who waits for "100 Continue" gets it with the first read(). What is
//                left unread is drained within a limit, or the connection ends.
// Body out       write() returns when the system has taken all of it: a slow client slows the
//                handler down. The head goes with the first piece. What HEAD, 204 and 304 forbid to
//                send is not sent.
// Errors         values. After one the connection ends, but for a piece that was refused before
//                anything was sent; a handler may simply return.
//                A handler that throws is answered for with 500, if nothing was sent.
// No answer      a handler that returns without one is answered for with 500. One that returns
//                after write() and without finish() has left its answer off, as one does that a
//                layer stops: unless all of a length was sent the connection ends, and nobody takes
//                it for a whole one.
// Place          everything runs on the worker of the connection.
// Stop           a handler that is still at work when the grace of server::stop() is over is
//                stopped.
// Lifetime       the exchange, and views of it, until the handler's task has ended, and what was
//                given to keep_until_end() is dropped.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string_view>

#include "rondo/core/task.hpp"
#include "rondo/http/head.hpp"
#include "rondo/http/head_text.hpp"
#include "rondo/http/message.hpp"

namespace rondo::http {

namespace detail {
class connection;
}

class exchange {
  public:
    using endpoint = boost::asio::ip::tcp::endpoint;
    using done = std::expected<void, failure>;

    explicit exchange(detail::connection& on) noexcept : on_(on) {}
    exchange(exchange const&) = delete;
    exchange& operator=(exchange const&) = delete;

    request_head const& head() const noexcept;
    endpoint const& peer() const noexcept;
    endpoint const& local() const noexcept;
    // Their addresses as text, without ports; made once for a connection.
    std::string_view peer_address() const;
    std::string_view local_address() const;
    bool secure() const noexcept;  // over TLS
    // The client's X-Request-Id if that is sound, otherwise one that was made for it.
    std::string_view request_id() const;
    std::size_t worker() const noexcept;

    // The next piece of the request's body; empty at its end. After upgrade(): of the tunnel.
    task<std::expected<std::string_view, failure>> read();
    // Whether the last piece has been read; it is there until the next read(), or the end.
    bool ended() const noexcept;
    // After the end of a chunked body.
    http::fields trailers() const noexcept;

    // The head of the answer. It is complete when the first piece is sent; if that piece was
    // refused (failure_kind::misused) while not answered(), nothing has been sent, and another
    // answer may be given after clear(). A file that turns out shorter than its piece is misused
    // too, but behind the head.
    response_text& answer() noexcept;
    bool answered() const noexcept;  // somebody has begun to send the head

    // Something that the client may know before the answer: a head of 1xx, such as 103 (Early
    // Hints). HTTP/1.0 has none of these, and gets none. Nor does a client that has not yet taken
    // the one before. An answer that another task sends meanwhile waits for it.
    task<done> inform(response_text* hints);

    // The whole answer: its head and this body.
    task<done> send(std::string_view body = {});
    // The whole answer: its head and a part of a file, without a copy where the system can.
    task<done> send_file(int file, std::uint64_t offset, std::uint64_t length);

    // A piece of the answer; of the head's length, or as a chunk.
    task<done> write(std::string_view piece);
    task<done> write_file(int file, std::uint64_t offset, std::uint64_t length);
    // The head now, though no piece is there yet.
    task<done> flush();
    // The end of the answer. A trailer goes with chunks only, and is dropped otherwise; its fields
    // are written as those of a head are. Of a tunnel: nothing more comes from this side.
    task<done> finish(std::span<field const> trailer = {});

    // So many bytes of the request's body were read.
    std::uint64_t received() const noexcept;
    // So many bytes of the answer's body were sent: none of what HEAD, 204 and 304 forbid.
    std::uint64_t sent() const noexcept;

    // Ends when the client has closed its connection, or its side of it. For who waits before it
    // reads the body: nobody else reads meanwhile.
    task<void> gone();

    // Answers with 101 and the fields of answer(). From then on read(), write() and finish() are
    // about the bytes of the connection, which ends with the handler: at once, and what was written
    // may be lost if the client still speaks, unless it was finished.
    task<done> upgrade();

    // Keeps something until the request has ended, with all that is left to do of its answer when
    // the handler has; what was given last is dropped first, and may still look at the exchange.
    void keep_until_end(std::shared_ptr<void> what);

    // Ends the connection when the handler has: what was sent of an answer is not taken for a whole
    // one.
    void cut() noexcept;

  private:
    detail::connection& on_;
};

}  // namespace rondo::http
