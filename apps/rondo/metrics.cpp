// The metrics of the gateway. docs/metrics.md has each of them; a test holds one against the other.
#include <array>
#include <string>

#include "rondo/prometheus/page.hpp"
#include "status.hpp"

namespace rondo::gateway {

namespace {

using prometheus::labels;
using prometheus::page;

double number(std::uint64_t n) { return static_cast<double>(n); }

void add_servers(page& to, readings const& r) {
    auto connections = to.gauge("rondo_connections", "Connections that are open.");
    auto limit = to.gauge("rondo_connections_limit", "Connections that may be open.");
    auto accepted = to.counter("rondo_connections_accepted_total", "Connections that came.");
    auto requests = to.counter("rondo_requests_total", "Requests whose header was read.");
    auto malformed = to.counter("rondo_requests_malformed_total",
                                "Requests that were refused because they were malformed.");
    auto in_flight = to.gauge("rondo_requests_in_flight", "Requests that are being answered.");
    auto answers = to.counter("rondo_responses_total", "Answers, by the class of their status.");
    auto times = to.times("rondo_request_duration_seconds",
                          "Time from the end of a request's header to the end of its answer.");
    constexpr std::array classes{"cut", "1xx", "2xx", "3xx", "4xx", "5xx"};
    for (server_reading const& s : r.servers) {
        labels const server{{"server", s.name}};
        connections.add(number(s.report->totals.connections), server);
        limit.add(number(s.max_connections), server);
        accepted.add(number(s.report->totals.accepted), server);
        requests.add(number(s.report->totals.requests), server);
        malformed.add(number(s.report->totals.refused), server);
        in_flight.add(number(s.report->in_flight), server);
        for (std::size_t i = 0; i < classes.size(); ++i) {
            answers.add(number(s.report->answers[i]), {{"server", s.name}, {"class", classes[i]}});
        }
        times.add(s.report->times, server);
    }
}

void add_backends(page& to, readings const& r) {
    auto requests = to.counter("rondo_upstream_requests_total",
                               "Attempts to have a request answered by a backend.");
    auto connections =
        to.counter("rondo_upstream_connections_total", "Connections to a backend that were made.");
    auto failures = to.counter("rondo_upstream_failures_total",
                               "Attempts that failed for a reason that lies with the backend.");
    auto up = to.gauge("rondo_upstream_up", "0 while a backend is set aside, 1 otherwise.");
    for (server_reading const& s : r.servers) {
        for (auto const& b : s.backends) {
            labels const which{
                {"server", s.name}, {"route", b.route}, {"backend", to_string(b.address)}};
            requests.add(number(b.requests), which);
            connections.add(number(b.connections), which);
            failures.add(number(b.failures), which);
            up.add(b.set_aside ? 0 : 1, which);
        }
    }
}

}  // namespace

std::string metrics_of(readings const& r) {
    page all;
    all.gauge("rondo_uptime_seconds", "Time since the start.")
        .add(std::chrono::duration<double>{r.at - r.since}.count());
    all.gauge("rondo_draining", "1 while the gateway ends, 0 before.").add(r.draining ? 1 : 0);
    all.gauge("rondo_config_version", "Configurations that were loaded since the start.")
        .add(number(r.config_version));
    all.counter("rondo_config_refused_total", "Configurations that were not loaded.")
        .add(number(r.reloads_refused));
    add_servers(all, r);
    add_backends(all, r);
    return all.text();
}

}  // namespace rondo::gateway
