// wire.hpp: the other end of a connection, byte by byte: a client or an upstream that does what a
// test wants, well-behaved or not. Blocking, for plain threads; nothing waits longer than 20 s.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace rondo::test {

class wire {
  public:
    explicit wire(int fd) : fd_(fd) {
        timeval const limit{.tv_sec = 20, .tv_usec = 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        int const on = 1;
        ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    // To a port of this machine.
    static wire to(std::uint16_t port) {
        int const fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in a = loopback(port);
        if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) {
            if (fd >= 0) ::close(fd);
            throw std::runtime_error("cannot connect");
        }
        return wire{fd};
    }
    wire(wire&& other) noexcept
        : fd_(std::exchange(other.fd_, -1)), left_(std::move(other.left_)) {}
    wire& operator=(wire&&) = delete;
    ~wire() { close(); }

    static sockaddr_in loopback(std::uint16_t port) {
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_port = htons(port);
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return a;
    }

    int fd() const noexcept { return fd_; }
    // False if the other side takes no more.
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            ssize_t const n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
        return true;
    }
    void end_sending() { ::shutdown(fd_, SHUT_WR); }
    void close() {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }
    // The other side sees a reset.
    void reset() {
        linger const now{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close();
    }

    // What comes, up to and with `end`; less if the connection ends first.
    std::string read_until(std::string_view end) {
        for (std::size_t from = 0;;) {
            std::size_t const at = left_.find(end, from);
            if (at != std::string::npos) return take(at + end.size());
            from = left_.size() < end.size() ? 0 : left_.size() - end.size();
            if (!more()) return take(left_.size());
        }
    }
    std::string read(std::size_t n) {
        while (left_.size() < n && more()) {
        }
        return take(std::min(n, left_.size()));
    }
    std::string read_to_end() {
        while (more()) {
        }
        return take(left_.size());
    }
    // Whether the other side has closed, and nothing is left to read.
    bool ended() { return left_.empty() && !more(); }

    std::string read_head() { return read_until("\r\n\r\n"); }
    // A head and its body, by Content-Length or chunked (kept as it is).
    std::string read_message() {
        std::string message = read_head();
        std::size_t const length = message.find("ontent-length: ") != std::string::npos
                                       ? message.find("ontent-length: ")
                                       : message.find("ontent-Length: ");
        if (length != std::string::npos) {
            message += read(std::strtoull(message.c_str() + length + 15, nullptr, 10));
        } else if (message.find("hunked") != std::string::npos) {
            message += read_until("0\r\n\r\n");
        }
        return message;
    }

  private:
    bool more() {
        char block[16 * 1024];
        ssize_t const n = ::recv(fd_, block, sizeof block, 0);
        if (n <= 0) return false;
        left_.append(block, static_cast<std::size_t>(n));
        return true;
    }
    std::string take(std::size_t n) {
        std::string taken = left_.substr(0, n);
        left_.erase(0, n);
        return taken;
    }

    int fd_;
    std::string left_;
};

// Whether a connection to that port of this machine can be made.
inline bool listens(std::uint16_t port) {
    try {
        (void)wire::to(port);
        return true;
    } catch (std::runtime_error const&) {
        return false;
    }
}

// A server that does to each connection what its script says; a thread each.
class scripted_server {
  public:
    using script = std::function<void(wire&)>;

    explicit scripted_server(script s) : script_(std::move(s)) {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in a = wire::loopback(0);
        socklen_t size = sizeof a;
        if (::bind(listener_, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 ||
            ::listen(listener_, 1024) != 0 ||
            ::getsockname(listener_, reinterpret_cast<sockaddr*>(&a), &size) != 0) {
            throw std::runtime_error("cannot listen");
        }
        port_ = ntohs(a.sin_port);
        accepting_ = std::thread{[this] { accept_all(); }};
    }
    ~scripted_server() {
        ::shutdown(listener_, SHUT_RDWR);
        accepting_.join();
        ::close(listener_);
        for (auto& t : threads_) t.join();
    }
    scripted_server(scripted_server const&) = delete;
    scripted_server& operator=(scripted_server const&) = delete;

    std::uint16_t port() const noexcept { return port_; }
    std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
    std::size_t accepted() {
        std::lock_guard const guard{lock_};
        return threads_.size();
    }

  private:
    void accept_all() {
        for (;;) {
            int const fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0 && errno == EMFILE) {  // a test that lets us have none, for a while
                std::this_thread::yield();
                continue;
            }
            if (fd < 0) return;
            std::lock_guard const guard{lock_};
            threads_.emplace_back([this, fd] {
                wire w{fd};
                script_(w);
            });
        }
    }

    script script_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::thread accepting_;
    std::mutex lock_;
    std::vector<std::thread> threads_;
};

}  // namespace rondo::test
