// free_port.hpp: ports of this machine that stay free until a test uses them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace rondo::test {

// A port of the loopback where nobody listens. Until the process ends the system gives it to nobody
// who asks for any port: a socket of ours is bound to it, which does not listen. Who names the port
// and sets SO_REUSEADDR, as servers do, may listen there all the same; until then it refuses.
inline std::uint16_t free_port() {
    int const kept = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int const on = 1;
    ::setsockopt(kept, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    if (::bind(kept, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 ||
        ::getsockname(kept, reinterpret_cast<sockaddr*>(&a), &size) != 0) {
        throw std::runtime_error("no port is free");
    }
    return ntohs(a.sin_port);
}
inline std::string free_address() { return "127.0.0.1:" + std::to_string(free_port()); }

}  // namespace rondo::test
