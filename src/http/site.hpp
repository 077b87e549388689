// site.hpp: what the connections of a server share on one worker.
//
// A connection is counted from before it is handed to the worker until it has ended: `live`. When
// the server drains and the count is zero, the site gives up its subscription, and stop() goes on.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <vector>

#include "rondo/core/histogram.hpp"
#include "rondo/core/task.hpp"
#include "rondo/http/detail/http_date.hpp"
#include "rondo/http/server.hpp"
#include "rondo/sync/notify.hpp"
#include "rondo/sync/shutdown.hpp"
#include "watch.hpp"

namespace rondo::http::detail {

// The time of day as HTTP writes it, renewed once a second.
class date_text {
  public:
    std::string_view now() noexcept;

  private:
    std::time_t second_ = 0;
    http_date text_{0};
};

// The times of a server's options, which can change while it runs.
struct patience {
    explicit patience(server_options const& o) noexcept
        : head(o.head_timeout),
          idle(o.idle_timeout),
          read(o.read_timeout),
          write(o.write_timeout) {}

    // How often deadlines are looked at.
    clock::duration tick() const noexcept;

    clock::duration head;
    clock::duration idle;
    clock::duration read;
    clock::duration write;
};

class site {
  public:
    site(server_options const& o, stack const& chain, std::size_t worker)
        : options(o),
          handle(chain),
          index(worker),
          times(o),
          deadlines(times.tick()),
          table(o.limits.fields) {}
    site(site const&) = delete;
    site& operator=(site const&) = delete;

    // Looks after deadlines until the server ends, then until the connections have.
    task<void> run(shutdown::subscription end);

    server_options const& options;
    stack const& handle;
    std::size_t const index;
    patience times;
    watch deadlines;
    date_text date;
    std::vector<field> table;  // for the scan of a head
    bool draining = false;     // no further request on any connection

    atomic<std::size_t> live{0};
    // Written by the worker alone.
    atomic<std::uint64_t> requests{0};
    atomic<std::uint64_t> refused{0};
    static void count(atomic<std::uint64_t>& n) noexcept {
        n.store(n.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    // A request ended with that status; 0: it was cut off. Of a tunnel no time is kept.
    void note(int status, time_point began) noexcept {
        std::size_t const first_digit = static_cast<std::size_t>(status) / 100;
        ++ended;
        ++answers[std::min(first_digit, answers.size() - 1)];
        if (first_digit != 1) durations.record(clock::now() - began);
    }
    // Read and written by the worker alone.
    std::size_t begun = 0;  // requests that are being read or answered now
    std::uint64_t ended = 0;
    std::array<std::uint64_t, 6> answers{};
    histogram durations;

    notify changed;  // a connection came or went
};

}  // namespace rondo::http::detail
