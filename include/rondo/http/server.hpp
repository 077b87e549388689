// server.hpp: accepts connections and has their requests answered by a coroutine.
//
//   runtime rt;
//   http::server server{rt, {.listen = {{tcp::endpoint{address, 8080}}}}, hello};
//   auto started = server.start();                       // bound, listening
//   ...
//   server.blocking_stop(10s);
//
// Connections    one acceptor for each address; a connection stays with the worker that has the
//                fewest when it comes. At most max_connections at a time: the others wait in the
//                system's backlog, in the order in which they came. Keep-alive and pipelining.
// Handler        a coroutine for each request, called on the worker of the connection; so by all
//                workers at once. Layers come around it, the first one outermost.
// Safety         head.hpp decides what a request is; whatever is ambiguous is answered with 400 and
//                the connection ends.
// Proxies        that are trusted say whose a connection is with the PROXY protocol; see door.
// Timeouts       of the head from its first byte, of idle connections, of reads and writes that do
//                not get on. Looked after twice a second at least; costs nothing per request.
// Change         replace_doors() and adjust() while it runs: no connection ends by them.
// Stop           stop(grace): nothing more is accepted, after the accept queue has been emptied as
//                far as max_connections has room; idle connections end; requests whose first byte
//                was read are answered, also those that are pipelined behind another one whose
//                body was read, and tunnels go on, until the grace is over; then the tasks that
//                are left are stopped.
// Thread safety  start(), stop() and the figures may be called by any thread; start() once; one
//                change at a time, and none after stop().
// Lifetime       the runtime outlives the server. The destructor stops it without grace if nobody
//                has; it waits, so it is for plain threads.
// Example        examples/http/hello.cpp
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/core/histogram.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/http/exchange.hpp"
#include "rondo/http/tenants.hpp"

namespace boost::asio::ssl {
class context;
}

namespace rondo::http {

using handler = std::function<task<void>(exchange*)>;

// What a layer goes on with: the layers inside it, and the handler.
class next {
  public:
    task<void> operator()(exchange* x) const;

  private:
    friend class stack;
    next(class stack const& of, std::size_t index) noexcept : of_(&of), index_(index) {}
    class stack const* of_;
    std::size_t index_;
};

// task<void> timed(http::exchange* x, http::next inner) { ...; co_await inner(x); ...; }
using layer = std::function<task<void>(exchange*, next)>;

// A handler with layers around it.
class stack {
  public:
    stack(handler inner, std::vector<layer> layers = {})
        : inner_(std::move(inner)), layers_(std::move(layers)) {}

    task<void> operator()(exchange* x) const { return next{*this, 0}(x); }

  private:
    friend class next;
    handler inner_;
    std::vector<layer> layers_;
};

// A request that was refused before there was a handler for it.
struct refused_request {
    boost::asio::ip::tcp::endpoint peer;
    std::size_t worker = 0;
    int status = 400;
    std::string_view reason;  // as the client was told
};

struct server_options {
    struct door {
        boost::asio::ip::tcp::endpoint address;
        std::shared_ptr<boost::asio::ssl::context> tls = {};
        // A socket that listens at the address already, of which a duplicate is used: two servers,
        // or a server and its successor, can so share what is queued there. -1: one is made.
        int descriptor = -1;
        // Peers that begin each connection with a header of the PROXY protocol, 1 or 2, and are
        // believed what it says: the client's address is exchange::peer() then, counts for
        // max_connections_per_address, and is all that is known of it: the proxy is out of the
        // picture. Without a sound header in head_timeout their connections are closed. Others are
        // who they are, and a header of theirs is a malformed request.
        std::vector<network> proxies = {};
    };

    std::vector<door> listen = {};
    std::vector<layer> layers = {};
    std::size_t max_connections = 1024;
    // Of IPv6: for each network of 64 bits. 0: no limit; more are closed at once.
    std::size_t max_connections_per_address = 0;
    int backlog = 1024;
    http::limits limits = {};
    clock::duration head_timeout = std::chrono::seconds{10};
    clock::duration idle_timeout = std::chrono::seconds{75};
    clock::duration read_timeout = std::chrono::seconds{60};   // of a body, between two pieces
    clock::duration write_timeout = std::chrono::seconds{60};  // between two steps
    std::uint64_t drain = std::uint64_t{256} * 1024;           // of a body that nobody has read
    // What handlers throw. By default it is printed to stderr.
    std::function<void(std::exception_ptr)> on_failure = {};
    // Told of each one whose head was malformed, too large, or did not come in time; on its worker.
    // Must not throw.
    std::function<void(refused_request const&)> on_refusal = {};
};

struct listen_error {
    boost::asio::ip::tcp::endpoint address;
    std::string reason;
};

namespace detail {
struct listener;
}

// Doors that are open: who comes is queued there, though nobody accepts yet. All that can fail has
// been done. Those that no server takes are closed again.
class open_doors {
  public:
    // All of them, or none.
    static std::expected<open_doors, listen_error> at(runtime& rt,
                                                      std::vector<server_options::door> const& all,
                                                      int backlog = 1024);
    open_doors() noexcept;
    ~open_doors();
    open_doors(open_doors&&) noexcept;
    open_doors& operator=(open_doors&&) noexcept;

  private:
    friend class server;
    std::vector<std::unique_ptr<detail::listener>> all_;
};

class server {
  public:
    struct figures {
        std::size_t connections;  // now
        std::uint64_t accepted;
        std::uint64_t requests;
        std::uint64_t refused;  // requests that were malformed, too large or too late
    };
    // What the workers have noted, each for itself, added up.
    struct report {
        figures totals = {};
        std::uint64_t in_flight = 0;  // requests that are being answered
        // By the first digit of the status; 0: the answer was cut off. What is above 599 is with
        // 5xx, as RFC 9110, 15 has those who do not know it understand it.
        std::array<std::uint64_t, 6> answers = {};
        histogram times;  // of answers but for tunnels, from the end of the head, in nanoseconds
    };

    server(runtime& rt, server_options o, handler h);
    ~server();
    server(server const&) = delete;
    server& operator=(server const&) = delete;

    // Binds all addresses or none.
    std::expected<void, listen_error> start();
    // As they were bound: with the port, if 0 was asked for.
    std::vector<boost::asio::ip::tcp::endpoint> addresses() const;

    // How many requests were cut off because the grace was over.
    task<std::size_t> stop(clock::duration grace);
    std::size_t blocking_stop(clock::duration grace);

    // Accepts at these instead. The ones before empty their accept queues, as far as
    // max_connections has room, then they are closed.
    task<void> replace_doors(open_doors doors);
    // Takes the limits of connections and the times from here. Fewer connections than there are: no
    // more are accepted until enough have ended. Times of bodies hold for connections that come.
    task<void> adjust(server_options o);

    figures measure() const noexcept;
    task<std::unique_ptr<report>> survey() const;

  private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace rondo::http
