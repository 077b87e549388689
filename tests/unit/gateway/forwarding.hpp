// forwarding.hpp: a gateway that forwards to scripted upstreams.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "support/wire.hpp"

namespace rondo::gateway {

inline std::string forwarding_to(std::string const& forward, std::string_view more = {}) {
    return "[[server]]\nlisten = '127.0.0.1:0'\nforward = " + forward + "\n" + std::string{more};
}
inline std::string quoted(test::scripted_server const& s) { return "'" + s.address() + "'"; }

inline std::string const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// Answers each request of a connection with this.
inline test::scripted_server::script always(std::string answer) {
    return [answer = std::move(answer)](test::wire& w) {
        while (!w.read_message().empty()) w.send(answer);
    };
}

}  // namespace rondo::gateway
