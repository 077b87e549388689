#include "status.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace rondo::gateway {

namespace {

double seconds(clock::duration d) { return std::chrono::duration<double>{d}.count(); }

double quantile_ms(histogram const& h, double q) {
    return std::chrono::duration<double, std::milli>{h.quantile_duration(q)}.count();
}

// Per second. What is counted begins anew when a server is taken away and comes back.
double rate(std::uint64_t now, std::uint64_t before, double in_seconds) {
    if (in_seconds <= 0 || now < before) return 0;
    return static_cast<double>(now - before) / in_seconds;
}

std::uint64_t served_in(http::server::report const& r) {
    return r.answers[1] + r.answers[2] + r.answers[3] + r.answers[4];
}

server_reading const* same_in(readings const* r, std::string const& name) {
    if (r == nullptr) return nullptr;
    auto const found = std::ranges::find(r->servers, name, &server_reading::name);
    return found == r->servers.end() ? nullptr : &*found;
}

std::uint64_t requests_before(server_reading const* s, route_table::backend_figures const& b) {
    if (s == nullptr) return b.requests;
    for (auto const& old : s->backends) {
        if (old.route == b.route && old.address == b.address) return old.requests;
    }
    return b.requests;
}

server_status of_server(server_reading const& now, server_reading const* before, double elapsed) {
    server_status s;
    s.name = now.name;
    s.addresses = now.addresses;
    s.connections = now.report->totals.connections;
    s.max_connections = now.max_connections;
    s.requests = now.report->totals.requests;
    s.in_flight = now.report->in_flight;
    if (before == nullptr) return s;
    s.rate = rate(s.requests, before->report->totals.requests, elapsed);
    histogram const lately = since(now.report->times, before->report->times);
    s.p50_ms = quantile_ms(lately, 0.5);
    s.p99_ms = quantile_ms(lately, 0.99);
    return s;
}

}  // namespace

http::server::report readings::sum() const {
    http::server::report all;
    for (server_reading const& s : servers) {
        all.totals.connections += s.report->totals.connections;
        all.totals.accepted += s.report->totals.accepted;
        all.totals.requests += s.report->totals.requests;
        all.totals.refused += s.report->totals.refused;
        all.in_flight += s.report->in_flight;
        for (std::size_t i = 0; i < all.answers.size(); ++i) {
            all.answers[i] += s.report->answers[i];
        }
        all.times.merge(s.report->times);
    }
    return all;
}

histogram since(histogram const& now, histogram const& before) {
    std::vector<histogram::bucket> old;
    before.for_each_bucket([&old](histogram::bucket const& b) { old.push_back(b); });
    histogram fresh;
    auto next = old.begin();
    now.for_each_bucket([&](histogram::bucket const& b) {
        while (next != old.end() && next->lowest < b.lowest) ++next;
        bool const same = next != old.end() && next->lowest == b.lowest;
        std::uint64_t const already = same ? std::min(next->count, b.count) : 0;
        if (b.count != already) {
            fresh.record_n(b.lowest + (b.highest - b.lowest) / 2, b.count - already);
        }
    });
    return fresh;
}

status compare(readings const& now, readings const* before) {
    status s;
    s.version = RONDO_VERSION;
    s.config_version = now.config_version;
    s.draining = now.draining;
    s.uptime_s = seconds(now.at - now.since);
    double const elapsed = before == nullptr ? 0 : seconds(now.at - before->at);
    http::server::report const all = now.sum();
    s.connections = all.totals.connections;
    s.in_flight = all.in_flight;
    if (before != nullptr) {
        http::server::report const then = before->sum();
        s.offered = rate(all.totals.requests, then.totals.requests, elapsed);
        s.served = rate(served_in(all), served_in(then), elapsed);
        histogram const lately = since(all.times, then.times);
        s.p50_ms = quantile_ms(lately, 0.5);
        s.p99_ms = quantile_ms(lately, 0.99);
    }
    for (server_reading const& server : now.servers) {
        server_reading const* const old = same_in(before, server.name);
        s.servers.push_back(of_server(server, old, elapsed));
        for (auto const& b : server.backends) {
            s.backends.push_back({server.name, b.route, to_string(b.address), b.weight, b.set_aside,
                                  b.requests, b.failures,
                                  rate(b.requests, requests_before(old, b), elapsed)});
        }
    }
    return s;
}

}  // namespace rondo::gateway
