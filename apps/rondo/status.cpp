#include "status.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string_view>
#include <unordered_map>

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

// Of all servers, each compared with itself: of one that is gone nothing is taken away from the
// others, as it would be from a sum.
struct traffic {
    double offered = 0;
    double served = 0;
    histogram times;
};
traffic between(readings const& now, readings const& before, double elapsed) {
    traffic all;
    http::server::report const nothing;
    for (server_reading const& s : now.servers) {
        server_reading const* const old = same_in(&before, s.name);
        http::server::report const& then = old != nullptr ? *old->report : nothing;
        all.offered += rate(s.report->totals.requests, then.totals.requests, elapsed);
        all.served += rate(served_in(*s.report), served_in(then), elapsed);
        all.times.merge(since(s.report->times, then.times));
    }
    return all;
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

// Whether somebody asks for anything.
bool is_active(turns_reading::row const& t, std::uint64_t admitted_lately) {
    return admitted_lately != 0 || t.in_flight != 0 || t.queued != 0;
}

// There may be a thousand rows for each worker, and comparing them is one turn of a worker: nothing
// in it searches a list for each row.
using rows_by_name = std::unordered_map<std::string_view, turns_reading::row const*>;
rows_by_name by_name(turns_reading const* r) {
    rows_by_name all;
    if (r == nullptr) return all;
    all.reserve(r->tenants.size());
    for (auto const& t : r->tenants) all.emplace(t.tenant, &t);
    return all;
}

std::uint64_t refusals_by_429(fair::gate_stats const& s) {
    return s.rejected_tenant + s.evicted + s.displaced;
}

double ms(clock::duration d) { return std::chrono::duration<double, std::milli>{d}.count(); }

struct lately {
    std::uint64_t admitted = 0;
    double cost = 0;  // of those that have ended
    http::wait_times waits;
};
lately of_tenant(turns_reading::row const& now, rows_by_name const& before) {
    auto const found = before.find(now.tenant);
    auto const* const old = found == before.end() ? nullptr : found->second;
    bool const anew = old == nullptr || old->admitted > now.admitted || old->cost > now.cost;
    if (anew) return {now.admitted, static_cast<double>(now.cost), now.waits};
    return {now.admitted - old->admitted, static_cast<double>(now.cost - old->cost),
            now.waits.since(old->waits)};
}

// What the ledger has no row for is "other" there already; what is not shown goes with it.
void add_tenants(status& s, turns_reading const& now, turns_reading const* before) {
    rows_by_name const old = by_name(before);
    std::vector<lately> changes;
    double weights = 0;
    double cost = 0;
    http::wait_times waits;
    for (auto const& t : now.tenants) {
        lately const& l = changes.emplace_back(of_tenant(t, old));
        auto const weight = static_cast<double>(t.weight);
        if (is_active(t, l.admitted)) weights += weight;
        cost += l.cost;
        waits.add(l.waits);
    }
    s.wait_p50_ms = ms(waits.quantile(0.5));
    s.wait_p99_ms = ms(waits.quantile(0.99));
    tenant_status other{.name = "other", .weight = 0};
    http::wait_times waits_of_others;
    bool has_others = false;
    for (std::size_t i = 0; i < now.tenants.size(); ++i) {
        auto const& t = now.tenants[i];
        lately const& l = changes[i];
        bool const shown = i < tenants_shown && t.tenant != other.name;
        tenant_status one{.name = t.tenant, .weight = 0};
        tenant_status& to = shown ? one : other;
        auto const weight = static_cast<double>(t.weight);
        to.weight += weight;
        to.entitled += is_active(t, l.admitted) ? weight / weights : 0;
        to.share += cost > 0 ? l.cost / cost : 0;
        to.in_flight += t.in_flight;
        to.queued += t.queued;
        to.refusals += t.refused + t.expired;
        if (shown) {
            one.wait_p99_ms = ms(l.waits.quantile(0.99));
            s.tenants.push_back(std::move(one));
        } else {
            waits_of_others.add(l.waits);
            has_others = true;
        }
    }
    other.wait_p99_ms = ms(waits_of_others.quantile(0.99));
    if (has_others) s.tenants.push_back(std::move(other));
}

}  // namespace

turns_reading::turns_reading(http::admission& a)
    : stats(a.stats()), takes_turns(a.settings()->turns) {
    auto const settings = a.settings();
    std::unordered_map<std::string_view, std::uint32_t> const weights(settings->weights.begin(),
                                                                      settings->weights.end());
    for (http::tenant_figures& f : a.tenants()) {
        row t;
        static_cast<http::tenant_figures&>(t) = std::move(f);
        auto const own = weights.find(t.tenant);
        t.weight = own != weights.end() ? own->second : settings->default_weight;
        tenants.push_back(std::move(t));
    }
    std::ranges::sort(tenants, [](row const& x, row const& y) {
        return x.admitted != y.admitted ? x.admitted > y.admitted : x.tenant < y.tenant;
    });
}

std::vector<turns_reading::row> turns_reading::first(std::size_t so_many) const {
    std::size_t const n = std::min(so_many, tenants.size());
    std::vector<row> all(tenants.begin(), tenants.begin() + static_cast<std::ptrdiff_t>(n));
    row other;
    other.tenant = "other";
    other.weight = 0;
    auto const is_other = [](row const& t) { return t.tenant == "other"; };
    auto const add = [&other](row const& t) {
        other.weight += t.weight;
        other.in_flight += t.in_flight;
        other.queued += t.queued;
        other.admitted += t.admitted;
        other.refused += t.refused;
        other.expired += t.expired;
        other.gone += t.gone;
        other.cost += t.cost;
    };
    for (std::size_t i = n; i < tenants.size(); ++i) add(tenants[i]);
    for (row const& t : all) {
        if (is_other(t)) add(t);
    }
    std::erase_if(all, is_other);
    all.push_back(std::move(other));
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
    for (server_reading const& server : now.servers) {
        s.connections += server.report->totals.connections;
        s.in_flight += server.report->in_flight;
    }
    if (before != nullptr) {
        traffic const lately = between(now, *before, elapsed);
        s.offered = lately.offered;
        s.served = lately.served;
        s.p50_ms = quantile_ms(lately.times, 0.5);
        s.p99_ms = quantile_ms(lately.times, 0.99);
    }
    if (now.turns) {
        fair::gate_stats const& g = now.turns->stats;
        s.in_flight = g.in_flight;
        s.limit = g.max_in_flight;
        s.queued = g.queued;
        s.capacity = g.capacity;
        turns_reading const* const then = before == nullptr ? nullptr : before->turns.get();
        if (then != nullptr && now.turns->takes_turns) {
            double const refused = rate(refusals_by_429(g), refusals_by_429(then->stats), elapsed);
            s.served = std::max(0.0, s.served - refused);
        }
        add_tenants(s, *now.turns, then);
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
