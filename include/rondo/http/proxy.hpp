// proxy.hpp: a handler that forwards requests to upstream servers.
//
//   http::client client{rt};
//   http::proxy api{client, {.backends = {{address_a, 3}, {address_b, 1}}}};
//   http::server server{rt, options, [&](http::exchange* x) { return api.answer(x); }};
//
// Turns          between the backends by weight; one that fails is set aside for a while
//                (balance.hpp). Failing is: no connection, no response, none in time, a malformed
//                one, one that breaks off. A status is the backend's own affair, and so is a pause
//                in an answer that it has begun, or the end of a connection over which nothing was
//                sent because the client has not begun with its body, or over which the client has
//                said or taken nothing for a second. If no descriptor or memory is left here for a
//                connection, that is no fault of the backend's. (Of ports the system says the same
//                as of an address that cannot be used from here.)
// Request        goes on as it came: method, target, fields and body, but for the fields of the
//                connection. Forwarded (RFC 7239) and X-Forwarded-For are appended to,
//                X-Forwarded-Host and -Proto replaced; Via; X-Request-Id is made if the client
//                sent none that is sound. Host is the address that the client dialled, without
//                the port, if it named none (HTTP/1.0). OPTIONS and TRACE with Max-Forwards are
//                counted down, and with 0 are answered here.
// Streaming      bodies go both ways as they come, at the pace of the slower side, at the same
//                time: a backend may answer before it has read everything. Nothing is kept: the
//                head of an answer waits for its body only if some of that came with it. The head
//                of a request goes with the first piece of its body.
// Hints          of 1xx go on before the answer, to clients of HTTP/1.1; 100 is the server's own
//                affair.
// Upgrades       to WebSocket are passed on; if the backend agrees the two connections become a
//                tunnel. Others are left out of the request, and an answer that agrees to one is
//                malformed: what goes through a tunnel is not scanned.
// Second try     once, if no byte of a response came and what was sent of a body is still here (its
//                first piece): at another backend if no connection could be made or an idempotent
//                request was dropped; with a new connection if one that had been kept open turned
//                out dead.
// Refusals       502 if the backend cannot be reached, closes or talks nonsense; 504 if it does not
//                answer in time; 503 if we cannot open a connection; with a line that says why.
//                After the head of the answer has been sent the connection is cut instead, so that
//                nobody takes half an answer for a whole one.
// Thread safety  answer() may be called concurrently, from tasks that are pinned to workers.
// Lifetime       until the tasks of answer() have ended; the client outlives it.
// Example        examples/http/front.cpp
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/core/task.hpp"
#include "rondo/http/balance.hpp"
#include "rondo/http/client.hpp"
#include "rondo/http/exchange.hpp"

namespace rondo::http {

struct proxy_options {
    struct backend {
        boost::asio::ip::tcp::endpoint address;
        std::uint32_t weight = 1;
    };

    std::vector<backend> backends;
    std::string name = "rondo";  // in Via
    balance::options health = {};
    // Each failure of a backend, also of one that a second try made good; and of ours to open a
    // connection to it.
    std::function<void(boost::asio::ip::tcp::endpoint const&, failure const&)> on_failure = {};
};

class proxy {
  public:
    // Of one backend, since the beginning.
    struct figures {
        boost::asio::ip::tcp::endpoint address;
        std::uint32_t weight;
        std::uint64_t requests;     // that were sent to it, or were to be
        std::uint64_t connections;  // that were made for them
        std::uint64_t failures;     // for which it was to blame
        bool set_aside;
    };

    proxy(client& by, proxy_options o);

    task<void> answer(exchange* x);

    balance const& backends() const noexcept { return turns_; }
    // In the order of the options.
    std::vector<figures> measure() const;

  private:
    struct attempt;
    // Of one backend by one worker, which alone writes it.
    struct alignas(64) tally {
        atomic<std::uint64_t> requests{0};
        atomic<std::uint64_t> connections{0};
        atomic<std::uint64_t> failures{0};
    };
    tally& tally_of(exchange const& x, attempt const& a) noexcept;

    task<std::expected<void, failure>> attempt_once(exchange* x, attempt* a);
    task<void> upload(exchange* x, call* to, attempt* a);
    task<std::expected<void, failure>> download(exchange* x, call* from, attempt* a);
    task<std::expected<void, failure>> finish_download(exchange* x, call* from, attempt* a);
    task<std::expected<void, failure>> tunnel(exchange* x, call* with, std::string_view protocol);
    bool try_again(attempt& a, failure const& f, method m);
    void failed(exchange const& x, attempt const& a, failure const& f);

    client& client_;
    proxy_options options_;
    balance turns_;
    std::unique_ptr<tally[]> tallies_;  // by worker, then by backend
};

}  // namespace rondo::http
