// A server with a handler and a layer; it asks itself, and stops.
#include <chrono>
#include <cstdio>
#include <string>

#include "rondo/http/client.hpp"
#include "rondo/http/server.hpp"

namespace http = rondo::http;

// [hello]
rondo::task<void> hello(http::exchange* x) {
    x->answer().add("content-type", "text/plain");
    (void)co_await x->send("Hello, " + std::string{x->head().path.substr(1)} + "\n");
}

// A layer: what it does before and after the others.
rondo::task<void> only_reads(http::exchange* x, http::next inner) {
    if (x->head().method == http::method::get) co_return co_await inner(x);
    x->answer().status(405);
    x->answer().add("allow", "GET");
    (void)co_await x->send();
}
// [/hello]

// [ask]
rondo::task<std::string> ask(http::client* c, http::client::endpoint where, std::string verb) {
    auto connected = co_await c->connect(where);
    if (!connected) co_return connected.error().reason;
    http::call call{std::move(*connected)};
    call.head().line(verb, "/world");
    call.head().add("host", "localhost");
    (void)co_await call.finish();
    auto const head = co_await call.read_head();
    if (!head) co_return head.error().reason;
    std::string answer = std::to_string((*head)->status) + " ";
    for (;;) {
        auto const piece = co_await call.read();
        if (!piece || piece->empty()) co_return answer;
        answer += *piece;
    }
}
// [/ask]

int main() {
    // [serve]
    rondo::runtime rt;
    http::client::endpoint const anywhere{boost::asio::ip::address_v4::loopback(), 0};
    http::server server{rt, {.listen = {{anywhere}}, .layers = {only_reads}}, hello};
    if (auto const started = server.start(); !started) return 1;
    // [/serve]
    http::client client{rt};
    http::client::endpoint const where = server.addresses().front();
    std::string const got = rt.spawn_pinned(ask(&client, where, "GET")).blocking_join().value();
    std::string const put = rt.spawn_pinned(ask(&client, where, "DELETE")).blocking_join().value();
    std::printf("GET: %sDELETE: %s\n", got.c_str(), put.c_str());
    bool const clean = server.blocking_stop(std::chrono::seconds{10}) == 0;
    return clean && got == "200 Hello, world\n" && put == "405 " ? 0 : 1;
}
