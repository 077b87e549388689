// fault_proxy.hpp: stands between the members of a shop and loses datagrams.
//
// A member that sends to peers_port + id reaches base_port + id through it. What comes back goes to
// who had sent, as of a NAT: each pair of sender and member has a socket of its own.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace rondo::shop::test {

class fault_proxy {
  public:
    fault_proxy(std::uint16_t peers_port, std::uint16_t base_port,
                std::vector<std::uint32_t> const& ids, double loss, std::uint64_t seed = 7)
        : base_port_(base_port), loss_(loss), random_(static_cast<std::uint32_t>(seed)) {
        for (std::uint32_t const id : ids) {
            int const s = udp_socket(static_cast<std::uint16_t>(peers_port + id));
            sockets_.push_back({s, POLLIN, 0});
            doors_[s] = static_cast<std::uint16_t>(base_port + id);
        }
        thread_ = std::jthread{[this](std::stop_token const& stop) { run(stop); }};
    }
    fault_proxy(fault_proxy const&) = delete;
    fault_proxy& operator=(fault_proxy const&) = delete;
    ~fault_proxy() {
        thread_.request_stop();
        thread_.join();
        for (pollfd const& p : sockets_) ::close(p.fd);
    }

    // Drops all messages of this type too (as it stands in the datagram); 0: none.
    void drop_type(std::uint8_t type) noexcept { dropped_type_ = type; }

    std::uint64_t lost() const noexcept { return lost_; }
    std::uint64_t passed() const noexcept { return passed_; }

  private:
    struct way {  // of what arrives at a socket that was made for a pair
        int door;
        sockaddr_in back;
    };

    static sockaddr_in local(std::uint16_t port) {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        at.sin_port = htons(port);
        return at;
    }
    static int udp_socket(std::uint16_t port) {
        int const s = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        sockaddr_in const at = local(port);
        if (::bind(s, reinterpret_cast<sockaddr const*>(&at), sizeof at) != 0) {
            throw std::runtime_error("a port of the proxy is in use");
        }
        return s;
    }

    void run(std::stop_token const& stop) {
        while (!stop.stop_requested()) {
            if (::poll(sockets_.data(), sockets_.size(), 20) <= 0) continue;
            std::vector<int> ready;
            for (pollfd const& p : sockets_) {
                if ((p.revents & POLLIN) != 0) ready.push_back(p.fd);
            }
            for (int const s : ready) forward(s);
        }
    }

    void forward(int from) {
        char bytes[2048];
        for (;;) {
            sockaddr_in sender{};
            socklen_t length = sizeof sender;
            ssize_t const n = ::recvfrom(from, bytes, sizeof bytes, 0,
                                         reinterpret_cast<sockaddr*>(&sender), &length);
            if (n < 0) return;
            constexpr ssize_t type_at = 5;
            std::uint8_t const type = n > type_at ? static_cast<std::uint8_t>(bytes[type_at]) : 0;
            bool const chosen = type != 0 && type == dropped_type_;
            if (chosen || std::uniform_real_distribution<>{}(random_) < loss_) {
                ++lost_;
                continue;
            }
            ++passed_;
            auto const back = ways_.find(from);
            if (back != ways_.end()) {
                send(back->second.door, bytes, n, back->second.back);
            } else {
                send(socket_for(from, sender), bytes, n, local(doors_.at(from)));
            }
        }
    }
    int socket_for(int door, sockaddr_in const& sender) {
        std::pair<int, std::uint16_t> const pair{door, sender.sin_port};
        auto const known = pairs_.find(pair);
        if (known != pairs_.end()) return known->second;
        int const s = udp_socket(0);
        sockets_.push_back({s, POLLIN, 0});
        ways_[s] = {door, sender};
        pairs_[pair] = s;
        return s;
    }
    static void send(int s, char const* bytes, ssize_t n, sockaddr_in const& to) {
        (void)::sendto(s, bytes, static_cast<std::size_t>(n), 0,
                       reinterpret_cast<sockaddr const*>(&to), sizeof to);
    }

    std::uint16_t base_port_;
    double loss_;
    std::atomic<std::uint8_t> dropped_type_{0};
    std::minstd_rand random_;
    std::vector<pollfd> sockets_;
    std::map<int, std::uint16_t> doors_;  // where to each door leads
    std::map<int, way> ways_;
    std::map<std::pair<int, std::uint16_t>, int> pairs_;
    std::atomic<std::uint64_t> lost_{0};
    std::atomic<std::uint64_t> passed_{0};
    std::jthread thread_;
};

}  // namespace rondo::shop::test
