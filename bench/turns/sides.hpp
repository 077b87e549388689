// sides.hpp: what can stand before the upstream, as programs of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/timer_queue.hpp"
#include "support/child_process.hpp"

namespace rondo::bench {

// What all of them are told, as far as they know such a thing.
struct side_terms {
    std::size_t slots;      // of the upstream
    std::size_t in_flight;  // requests that are passed on at a time
    std::size_t queued;     // requests that wait, in all
    double capacity;        // of the upstream, requests a second
    std::size_t tenants;
};

class side {
  public:
    // One of names(), before the upstream at a port. Nothing: it is not installed, or did not
    // start, which is then said.
    static std::unique_ptr<side> start(std::string const& name, side_terms t, std::uint16_t to);
    static std::vector<std::string> const& names();

    // A program of ours with a configuration, whose %p and %u are the ports of its own and of the
    // upstream.
    static std::unique_ptr<side> start_rondo(std::string const& name, std::string config,
                                             std::uint16_t to);

    std::uint16_t port() const noexcept { return port_; }

    // What its processes have used since they were asked before.
    struct usage {
        double peak_mb;
        double cpu_seconds;
    };
    usage take_usage();

  private:
    side() = default;
    static std::unique_ptr<side> launch(std::string const& name, std::string config,
                                        std::vector<std::string> command, std::uint16_t to);

    test::scratch_directory folder_;
    std::optional<test::child_process> process_;
    std::uint16_t port_ = 0;
    double cpu_before_ = 0;
};

}  // namespace rondo::bench
