// wire.hpp: a client that says exactly what it is told to, byte for byte; and a server of ours to
// say it to.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "rondo/exec/runtime.hpp"
#include "rondo/http/server.hpp"

namespace rondo::test {

// A connection of a plain thread. What does not come within half a minute does not come.
class wire {
  public:
    explicit wire(unsigned short port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
            throw std::runtime_error{"cannot connect"};
        }
        set_up();
    }
    // One that was accepted.
    static wire of(int fd) { return wire{fd, 0}; }
    wire(wire&& other) noexcept : fd_(std::exchange(other.fd_, -1)), got_(std::move(other.got_)) {}
    wire& operator=(wire&&) = delete;
    ~wire() { close(); }

    void close() noexcept {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }
    int fd() const noexcept { return fd_; }

    // False: the other side has gone.
    bool say(std::string_view text) const noexcept {
        while (!text.empty()) {
            ssize_t const n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
            if (n <= 0) return false;
            text.remove_prefix(static_cast<std::size_t>(n));
        }
        return true;
    }
    void say_no_more() const noexcept { ::shutdown(fd_, SHUT_WR); }

    // Everything until the other side closes.
    std::string hear_all() {
        while (more()) {
        }
        return std::exchange(got_, {});
    }
    // Up to and with that text; less if the other side closes before.
    std::string hear_until(std::string_view text) {
        for (std::size_t from = 0;;) {
            std::size_t const at = got_.find(text, from);
            if (at != std::string::npos) return take(at + text.size());
            from = got_.size() < text.size() ? 0 : got_.size() - text.size();
            if (!more()) return std::exchange(got_, {});
        }
    }
    std::string hear(std::size_t size) {
        while (got_.size() < size) {
            if (!more()) break;
        }
        return take(std::min(size, got_.size()));
    }
    // A head, and as much of a body as its length says.
    std::string hear_message() {
        std::string head = hear_until("\r\n\r\n");
        std::string_view const name = "content-length: ";
        std::size_t const at = head.find(name);
        if (at == std::string::npos) return head;
        return head + hear(std::stoul(head.substr(at + name.size())));
    }

  private:
    wire(int fd, int) : fd_(fd) { set_up(); }

    void set_up() const {
        timeval const patience{.tv_sec = 30, .tv_usec = 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        int const on = 1;
        ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    bool more() {
        char some[16384];
        ssize_t const n = ::recv(fd_, some, sizeof some, 0);
        if (n <= 0) return false;
        got_.append(some, static_cast<std::size_t>(n));
        return true;
    }
    std::string take(std::size_t n) {
        std::string taken = got_.substr(0, n);
        got_.erase(0, n);
        return taken;
    }

    int fd_;
    std::string got_;
};

inline boost::asio::ip::tcp::endpoint loopback(unsigned short port = 0) {
    return {boost::asio::ip::address_v4::loopback(), port};
}

// A server on a port of its own.
class served {
  public:
    explicit served(http::handler h, http::server_options o = {}, std::size_t workers = 2)
        : rt_({.workers = workers}), server_(rt_, with_door(std::move(o)), std::move(h)) {
        if (!server_.start()) throw std::runtime_error{"cannot listen"};
    }

    unsigned short port() const { return server_.addresses().front().port(); }
    wire dial() const { return wire{port()}; }
    http::server& server() noexcept { return server_; }
    runtime& rt() noexcept { return rt_; }

    // What comes back for those bytes, after which nothing is said, until the connection ends.
    std::string answer_to(std::string_view bytes) const {
        wire w = dial();
        w.say(bytes);
        w.say_no_more();
        return w.hear_all();
    }

  private:
    static http::server_options with_door(http::server_options o) {
        if (o.listen.empty()) o.listen.push_back({loopback()});
        return o;
    }

    runtime rt_;
    http::server server_;
};

inline int status_in(std::string_view answer) {
    return answer.starts_with("HTTP/1.1 ") ? std::stoi(std::string{answer.substr(9, 3)}) : 0;
}

inline std::string body_in(std::string const& answer) {
    std::size_t const at = answer.find("\r\n\r\n");
    return at == std::string::npos ? "" : answer.substr(at + 4);
}

}  // namespace rondo::test
