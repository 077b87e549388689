// status.hpp: how the gateway is at one moment: what the dashboard, `rondo top` and metrics show.
//
// Readings are what was counted since the beginning. A status is two of them compared: rates and
// quantiles are those of the time between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/core/histogram.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/http/admission.hpp"
#include "rondo/http/server.hpp"
#include "route_table.hpp"

namespace rondo::gateway {

struct server_reading {
    std::string name;
    std::vector<std::string> addresses;
    std::size_t max_connections = 0;
    std::unique_ptr<http::server::report> report;
    std::vector<route_table::backend_figures> backends;
};

// Of the turns between tenants.
struct turns_reading {
    struct row : http::tenant_figures {
        std::uint64_t weight = 1;  // those of many together may be large
    };

    explicit turns_reading(http::admission& a);

    fair::gate_stats stats;
    bool takes_turns;          // else nobody is refused for what its tenant has in line
    std::vector<row> tenants;  // who was admitted the most first
    // Those beyond the first so many, as one that is called "other".
    std::vector<row> first(std::size_t so_many) const;
};

struct readings {
    time_point at;
    time_point since;                  // it runs
    std::uint64_t config_version = 1;  // counts the configurations that were loaded
    std::uint64_t reloads_refused = 0;
    bool draining = false;
    std::vector<server_reading> servers;
    std::unique_ptr<turns_reading> turns;  // null: nobody waits
};

struct backend_status {
    std::string server;
    std::string route;
    std::string address;
    std::uint32_t weight = 1;
    bool set_aside = false;
    std::uint64_t requests = 0;
    std::uint64_t failures = 0;
    double rate = 0;  // requests per second
};

struct server_status {
    std::string name;
    std::vector<std::string> addresses;
    std::size_t connections = 0;
    std::size_t max_connections = 0;
    std::uint64_t requests = 0;
    std::uint64_t in_flight = 0;
    double rate = 0;
    double p50_ms = 0;  // to answer
    double p99_ms = 0;
};

struct tenant_status {
    std::string name;
    double weight = 1;
    double entitled = 0;  // from 0 to 1: its weight beside those of all who ask
    double share = 0;     // what its requests cost, of all that have ended
    std::uint64_t in_flight = 0;
    std::uint64_t queued = 0;
    double wait_p99_ms = 0;
    std::uint64_t refusals = 0;
};

struct status {
    std::string version;
    std::uint64_t config_version = 1;
    bool draining = false;
    double uptime_s = 0;

    std::size_t connections = 0;
    double offered = 0;  // requests per second that were read
    double served = 0;   // that were answered, but for refusals and 5xx
    std::uint64_t in_flight = 0;
    std::uint64_t limit = 0;  // of what is in flight; 0: there is none
    std::uint64_t queued = 0;
    std::uint64_t capacity = 0;  // of the queues; 0: there are none
    double wait_p50_ms = 0;      // for a turn
    double wait_p99_ms = 0;
    double p50_ms = 0;  // to answer
    double p99_ms = 0;

    std::vector<tenant_status> tenants;  // who got the most first; then all the others as one
    std::vector<server_status> servers;
    std::vector<backend_status> backends;
};

// What was recorded in `now` and not yet in `before`.
histogram since(histogram const& now, histogram const& before);

inline constexpr std::size_t tenants_shown = 20;

// `before` is null the first time: rates are 0 then.
status compare(readings const& now, readings const* before);

std::string to_json(status const& s);
// Nothing if it is none.
std::optional<status> from_json(std::string_view text);
// Of an array of them.
std::optional<std::vector<status>> all_from_json(std::string_view text);

// The page for Prometheus; docs/metrics.md says what each metric means.
std::string metrics_of(readings const& r);

}  // namespace rondo::gateway
