// client.hpp: requests to upstream servers, over connections that are used again.
//
//   auto call = co_await client.connect(address);             // expected<call, failure>
//   call->head().line("GET", "/");
//   call->head().add("host", "example.com");
//   auto sent = co_await call->finish();
//   auto head = co_await call->read_head();  // expected<response_head const*, failure>
//   for (;;) { auto piece = co_await call->read(); ... }      // empty at the end
//
// Pool           one for each worker, without locks: a call is made, used and destroyed on one
//                worker. A connection goes back to it when its call is destroyed after a complete
//                exchange with nothing left over; otherwise it is closed.
// Safety         a response is scanned as strictly as a request; a hostile one ends the call with
//                an error. So does what comes before a byte of the request was sent: it is for
//                somebody else. read_head() skips 1xx, but for 101; there are 15 of them at most.
// Errors         say whose fault it is and whether the request may be sent again elsewhere: yes, if
//                no connection could be made, if it was closed, or spoke, before a byte of the
//                request was sent, or if one that was used before was closed without a byte of a
//                response to a request that is idempotent.
// Both at once   what is sent and what is read may be up to two tasks of the same worker.
// Timeouts       of connecting, of the response's head from the end of the request, between two
//                pieces. Precise to an eighth of the shortest, or half a second.
// Lifetime       the runtime outlives the client, the client its calls. The destructor closes idle
//                connections on their workers and waits for it, so it is for plain threads.
// Example        examples/http/hello.cpp
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "rondo/core/policy.hpp"
#include "rondo/core/task.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/http/exchange.hpp"
#include "rondo/http/head.hpp"
#include "rondo/http/head_text.hpp"

namespace rondo::http {

namespace detail {
class upstream;
struct give_back {
    void operator()(upstream* u) const noexcept;
};
}  // namespace detail

class [[nodiscard("dropping a call ends it")]] call {
  public:
    using done = std::expected<void, failure>;

    explicit call(std::unique_ptr<detail::upstream, detail::give_back> over) noexcept
        : over_(std::move(over)) {}

    bool reused() const noexcept;    // the connection had been used before
    bool answered() const noexcept;  // a byte of a response came

    // The head of the request. Its length() or chunked() must be said if a body is written. It is
    // complete when the first piece is sent; if that was refused (failure_kind::misused), nothing
    // has been sent, and another may be made, beginning with its line().
    request_text& head() noexcept;
    task<done> write(std::string_view piece);
    // The end of the request; sends the head if nothing was sent. Of a tunnel: nothing more comes
    // from this side.
    task<done> finish(std::span<field const> trailer = {});

    // The head of the response; views of it are valid as long as the call.
    task<std::expected<response_head const*, failure>> read_head();
    // The next head: of the response, or of a 1xx before it, which is valid until the next.
    task<std::expected<response_head const*, failure>> read_any_head();
    // The next piece of the body, or of the tunnel after 101; empty at its end.
    task<std::expected<std::string_view, failure>> read();
    // The same if it is here already; nothing if it has to be waited for.
    std::optional<std::expected<std::string_view, failure>> try_read();
    http::fields trailers() const noexcept;

  private:
    std::unique_ptr<detail::upstream, detail::give_back> over_;
};

struct client_options {
    http::limits limits = {};
    clock::duration connect_timeout = std::chrono::seconds{5};
    clock::duration response_timeout = std::chrono::seconds{60};
    clock::duration idle_timeout = std::chrono::seconds{30};  // of a connection that is not used
    // Of each worker. They have no buffers; one that is closed is made anew by the next request.
    std::size_t idle_per_address = 1024;
};

class client {
  public:
    using endpoint = boost::asio::ip::tcp::endpoint;
    enum class reuse : std::uint8_t { yes, no };

    explicit client(runtime& rt, client_options o = {});
    ~client();
    client(client const&) = delete;
    client& operator=(client const&) = delete;

    // On the worker that calls it, from a task that is pinned there.
    task<std::expected<call, failure>> connect(endpoint to, reuse allowed = reuse::yes);

    std::size_t workers() const noexcept;

  private:
    struct state;
    std::unique_ptr<state> state_;
};

// Copies between a client and an upstream, after both have upgraded, until both have ended, or one
// has failed or was silent for too long.
task<void> relay(exchange* x, call* c);

}  // namespace rondo::http
