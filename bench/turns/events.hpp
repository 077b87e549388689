// events.hpp: sockets of this machine and one thread that waits for them, to the microsecond.
//
// The generator and the upstream of these benches must cost little and wake up when they mean to:
// they are measured with what they measure. So they use the system as it is, and none of what is
// measured.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "rondo/core/timer_queue.hpp"

namespace rondo::bench {

// A set of sockets; the numbers that they are added with come back.
class events {
  public:
    events();
    events(events const&) = delete;
    events& operator=(events const&) = delete;
    ~events();

    void add(int socket, std::uint32_t what, std::uint32_t number) const;
    void change(int socket, std::uint32_t what, std::uint32_t number) const;
    // What has happened, waiting until then for the first of it.
    std::span<epoll_event const> wait(time_point until);

  private:
    int epoll_;
    // Few at a time: who has to do something at a certain time looks at the clock in between.
    std::array<epoll_event, 32> ready_;
};

// A socket that listens on the loopback, at a free port for 0.
int listen_at(std::uint16_t port);
// A socket that is being connected to a port of the loopback.
int connect_to(std::uint16_t port);
std::uint16_t free_port();
// Whether somebody accepts there within two seconds.
bool listens(std::uint16_t port);
// As many files as the system allows.
void allow_many_files();

}  // namespace rondo::bench
