// callers.hpp: connections to a server of this machine, each with one request at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "events.hpp"

namespace rondo::bench {

class callers {
  public:
    struct answer {
        std::uint32_t who;
        int status;    // 0: the connection ended without one
        bool evicted;  // it was in line, and had to leave it
    };

    explicit callers(std::uint16_t port, std::size_t most = 15'000) : port_(port), most_(most) {}
    callers(callers const&) = delete;
    callers& operator=(callers const&) = delete;
    ~callers();

    // A connection that has nothing to do: the one used last, or a new one. Nothing: there are
    // as many as there may be.
    std::optional<std::uint32_t> find_free();
    // Sends a request, which must live until it is answered.
    void ask(std::uint32_t who, std::string const& request);
    // Goes away without waiting for the answer.
    void hang_up(std::uint32_t who);
    // Answers that have come, waiting until then for the first. Who has one is free again.
    std::span<answer const> wait(time_point until);

    std::size_t asking() const noexcept { return asking_; }
    std::size_t made() const noexcept { return all_.size(); }

  private:
    struct connection {
        int socket = -1;
        bool connected = false;
        std::string const* request = nullptr;  // not yet answered
        std::size_t sent = 0;
        std::string got = {};
    };

    void open(connection& c, std::uint32_t number);
    void close(connection& c);
    void send(connection& c, std::uint32_t number);
    void read(connection& c, std::uint32_t number);
    void end(connection& c, std::uint32_t number, int status);

    std::uint16_t port_;
    std::size_t most_;
    events events_;
    std::vector<connection> all_;
    std::vector<std::uint32_t> free_;
    std::vector<answer> fresh_, given_;
    std::size_t asking_ = 0;
};

}  // namespace rondo::bench
