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
                                "Requests that were malformed, too large or too late.");
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

void add_turns(page& to, turns_reading const& t) {
    fair::gate_stats const& g = t.stats;
    to.gauge("rondo_admission_in_flight", "Requests that were let in and have not ended.")
        .add(number(g.in_flight));
    to.gauge("rondo_admission_limit", "Requests that are let in at a time.")
        .add(number(g.max_in_flight));
    to.gauge("rondo_admission_queued", "Requests that wait their turn.").add(number(g.queued));
    to.gauge("rondo_admission_queue_limit", "Requests that may wait.").add(number(g.capacity));
    auto admitted = to.counter("rondo_admission_admitted_total", "Requests that were let in.");
    admitted.add(number(g.passed), {{"after", "no_wait"}});
    admitted.add(number(g.dequeued), {{"after", "wait"}});
    auto refused = to.counter("rondo_admission_refused_total", "Requests that were not let in.");
    refused.add(number(g.rejected_tenant), {{"reason", "tenant_full"}});
    refused.add(number(g.evicted + g.displaced), {{"reason", "evicted"}});
    refused.add(number(g.rejected_global), {{"reason", "full"}});
    refused.add(number(g.rejected_closed + g.returned), {{"reason", "draining"}});
    refused.add(number(g.expired + g.rejected_timeout), {{"reason", "expired"}});
    refused.add(number(g.cancelled), {{"reason", "gone"}});
    to.times("rondo_admission_wait_seconds", "Time that those waited who had to and were let in.")
        .add(g.queue_time);
    auto in_flight = to.gauge("rondo_tenant_in_flight", "Requests of a tenant that were let in.");
    auto queued = to.gauge("rondo_tenant_queued", "Requests of a tenant that wait.");
    auto weight = to.gauge("rondo_tenant_weight", "Its share beside those of others.");
    auto requests =
        to.counter("rondo_tenant_requests_total", "What became of the requests of a tenant.");
    auto cost = to.counter("rondo_tenant_cost_total", "What its requests have cost that ended.");
    for (auto const& one : t.first(tenants_shown)) {
        labels const who{{"tenant", one.tenant}};
        in_flight.add(number(one.in_flight), who);
        queued.add(number(one.queued), who);
        weight.add(number(one.weight), who);
        cost.add(number(one.cost), who);
        auto const add = [&](char const* outcome, std::uint64_t n) {
            requests.add(number(n), {{"tenant", one.tenant}, {"outcome", outcome}});
        };
        add("admitted", one.admitted);
        add("refused", one.refused);
        add("expired", one.expired);
        add("gone", one.gone);
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
    if (r.turns) add_turns(all, *r.turns);
    return all.text();
}

}  // namespace rondo::gateway
