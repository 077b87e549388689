// held_upstream.hpp: an upstream that answers when it is told to.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "rondo/sync/semaphore.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {

// A request of a tenant, the only one on its connection.
inline std::string get(std::string_view target, std::string_view tenant) {
    return "GET " + std::string{target} +
           " HTTP/1.1\r\nHost: h\r\nX-Tenant: " + std::string{tenant} +
           "\r\nConnection: close\r\n\r\n";
}

class held_upstream {
  public:
    ~held_upstream() { let_go(1000); }
    std::string address() const { return server_.address(); }
    void await_request() {
        if (auto one = came_.blocking_acquire()) one->forget();
    }
    void let_go(std::size_t n) { go_.add_permits(n); }

  private:
    semaphore came_{0};
    semaphore go_{0};
    test::scripted_server server_{[this](test::wire& w) {
        while (!w.read_message().empty()) {
            came_.add_permits(1);
            if (auto told = go_.blocking_acquire()) told->forget();
            w.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    }};
};

}  // namespace rondo::gateway
