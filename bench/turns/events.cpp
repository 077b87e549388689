#include "events.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace rondo::bench {

namespace {

using namespace std::chrono_literals;

int or_die(int result, char const* what) {
    if (result >= 0) return result;
    std::perror(what);
    std::exit(EXIT_FAILURE);
}

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

int make_socket() {
    int const s =
        or_die(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "turns: socket");
    int const on = 1;
    ::setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return s;
}

}  // namespace

events::events() : epoll_(or_die(::epoll_create1(EPOLL_CLOEXEC), "turns: epoll")) {
    ::prctl(PR_SET_TIMERSLACK, 1);  // by default the system wakes up to 50 us too late
}

events::~events() { ::close(epoll_); }

void events::add(int socket, std::uint32_t what, std::uint32_t number) const {
    epoll_event e{.events = what, .data = {.u32 = number}};
    or_die(::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &e), "turns: epoll_ctl");
}

void events::change(int socket, std::uint32_t what, std::uint32_t number) const {
    epoll_event e{.events = what, .data = {.u32 = number}};
    or_die(::epoll_ctl(epoll_, EPOLL_CTL_MOD, socket, &e), "turns: epoll_ctl");
}

std::span<epoll_event const> events::wait(time_point until) {
    auto const left = std::clamp<std::chrono::nanoseconds>(until - clock::now(), 0ns, 10s);
    timespec const span{.tv_sec = static_cast<time_t>(left / 1s),
                        .tv_nsec = static_cast<long>((left % 1s).count())};
    int const n =
        ::epoll_pwait2(epoll_, ready_.data(), static_cast<int>(ready_.size()), &span, nullptr);
    return {ready_.data(), static_cast<std::size_t>(std::max(n, 0))};
}

int listen_at(std::uint16_t port) {
    int const s = make_socket();
    sockaddr_in const a = loopback(port);
    or_die(::bind(s, reinterpret_cast<sockaddr const*>(&a), sizeof a), "turns: bind");
    or_die(::listen(s, 4096), "turns: listen");
    return s;
}

int connect_to(std::uint16_t port) {
    int const s = make_socket();
    sockaddr_in const a = loopback(port);
    int const done = ::connect(s, reinterpret_cast<sockaddr const*>(&a), sizeof a);
    if (done != 0 && errno != EINPROGRESS) {
        ::close(s);
        return -1;
    }
    return s;
}

std::uint16_t free_port() {
    int const s = listen_at(0);
    sockaddr_in a{};
    socklen_t size = sizeof a;
    or_die(::getsockname(s, reinterpret_cast<sockaddr*>(&a), &size), "turns: getsockname");
    ::close(s);
    return ntohs(a.sin_port);
}

bool listens(std::uint16_t port) {
    for (int tries = 0; tries < 200; ++tries) {
        int const s = make_socket();
        sockaddr_in const a = loopback(port);
        // On the loopback it is decided at once.
        int error = ::connect(s, reinterpret_cast<sockaddr const*>(&a), sizeof a) == 0 ? 0 : errno;
        if (error == EINPROGRESS) {
            std::this_thread::sleep_for(1ms);
            socklen_t size = sizeof error;
            ::getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &size);
        }
        ::close(s);
        if (error == 0) return true;
        std::this_thread::sleep_for(10ms);
    }
    return false;
}

void allow_many_files() {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace rondo::bench
