// An echo server over TCP: tasks that await the sockets of Boost.Asio.
//
// The server runs on the io_context itself; its clients run on a loop in another thread, and their
// operations go to the context and come back. A second door has no patience: who says nothing there
// is shown out. Behind a third is the same server as Asio's own coroutines. In the end the servers
// are stopped while they wait for the next connection.
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "rondo/asio/asio_executor.hpp"
#include "rondo/asio/use_task.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"

namespace {

namespace net = boost::asio;

using net::ip::tcp;
using rondo::asio::use_task;
using namespace std::chrono_literals;

// [echo]
// Sends back what comes, until the other side closes or is silent for too long.
rondo::task<void> echo(tcp::socket peer, rondo::clock::duration patience) {
    std::array<char, 256> text{};
    for (;;) {
        auto const n = co_await peer.async_read_some(net::buffer(text), use_task(patience));
        if (!n) break;  // eof, or timed_out
        auto const written = co_await net::async_write(peer, net::buffer(text, *n), use_task);
        if (!written) break;
    }
}

rondo::task<void> serve(tcp::acceptor* door, rondo::clock::duration patience) {
    rondo::executor& where = *(co_await rondo::this_environment()).where;
    for (;;) {
        auto peer = co_await door->async_accept(use_task);
        if (!peer) break;
        rondo::spawn(where, echo(std::move(*peer), patience)).detach();
    }
}
// [/echo]

// [awaitable]
// Sends back what comes, until the other side closes: then the read throws.
net::awaitable<void> echo_in_asio(tcp::socket peer) {
    std::array<char, 256> text{};
    for (;;) {
        auto const n = co_await peer.async_read_some(net::buffer(text), net::use_awaitable);
        co_await net::async_write(peer, net::buffer(text, n), net::use_awaitable);
    }
}

net::awaitable<void> serve_in_asio(tcp::acceptor* door) {
    for (;;) {
        auto peer = co_await door->async_accept(net::use_awaitable);
        net::co_spawn(door->get_executor(), echo_in_asio(std::move(peer)), net::detached);
    }
}
// [/awaitable]

rondo::task<std::string> say(net::io_context* io, tcp::endpoint where, std::string words) {
    tcp::socket server{*io};
    auto const connected = co_await server.async_connect(where, use_task);
    if (!connected) co_return connected.error().message();
    (void)co_await net::async_write(server, net::buffer(words), use_task);
    std::string answer(words.size(), ' ');
    auto const read = co_await net::async_read(server, net::buffer(answer), use_task(10s));
    co_return read ? answer : read.error().message();
}

// Connects and waits to be told something.
rondo::task<bool> is_shown_out(net::io_context* io, tcp::endpoint where) {
    tcp::socket server{*io};
    (void)co_await server.async_connect(where, use_task);
    std::array<char, 1> nothing{};
    auto const read = co_await server.async_read_some(net::buffer(nothing), use_task(10s));
    co_return !read && read.error() == net::error::eof;
}

bool check(bool holds, char const* what) {
    std::printf("%-4s %s\n", holds ? "ok" : "NOT", what);
    return holds;
}

}  // namespace

int main() {
    net::io_context io{1};
    auto work = net::make_work_guard(io);
    tcp::endpoint const anywhere{net::ip::address_v4::loopback(), 0};
    tcp::acceptor door{io, anywhere};
    tcp::acceptor hasty_door{io, anywhere};
    tcp::acceptor asio_door{io, anywhere};
    std::thread runs{[&io] { io.run(); }};

    rondo::asio::asio_executor at_the_context{io.get_executor()};
    auto server = rondo::spawn(at_the_context, serve(&door, 1min));
    auto hasty = rondo::spawn(at_the_context, serve(&hasty_door, 10ms));
    net::co_spawn(io, serve_in_asio(&asio_door), net::detached);

    auto const [first, second, third, silent] =
        rondo::block_on(rondo::when_all(say(&io, door.local_endpoint(), "good morning"),
                                        say(&io, door.local_endpoint(), "good night"),
                                        say(&io, asio_door.local_endpoint(), "good evening"),
                                        is_shown_out(&io, hasty_door.local_endpoint())));
    std::printf("the servers said \"%s\", \"%s\" and \"%s\"\n", first.c_str(), second.c_str(),
                third.c_str());

    server.request_stop();
    hasty.request_stop();
    net::post(io, [&asio_door] { asio_door.close(); });  // what waits at it throws, and ends
    auto const end = server.blocking_join();
    auto const hasty_end = hasty.blocking_join();
    work.reset();
    runs.join();  // when the last connection has ended

    bool const echoed =
        check(first == "good morning" && second == "good night" && third == "good evening",
              "everybody got their own words back");
    bool const closed = check(silent, "who said nothing was shown out");
    bool const stopped = check(!end && !hasty_end, "the servers stopped waiting when asked to");
    return echoed && closed && stopped ? 0 : 1;
}
