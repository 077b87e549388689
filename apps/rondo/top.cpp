#include "top.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::gateway {

namespace {

using kind = column::kind;

std::string rate(double n) {
    if (n >= 10'000) return fmt::format("{:.1f}k", n / 1000);
    return n >= 100 || n == 0 ? fmt::format("{:.0f}", n) : fmt::format("{:.1f}", n);
}
// Of a round number.
std::string scale(double n) {
    return n >= 10'000 ? fmt::format("{:.0f}k", n / 1000) : fmt::format("{:.0f}", n);
}
std::string duration(double ms) {
    if (ms == 0) return "0 ms";
    if (ms < 1) return fmt::format("{:.2f} ms", ms);
    if (ms < 1000) return fmt::format("{:.{}f} ms", ms, ms < 99.95 ? 1 : 0);
    return fmt::format("{:.{}f} s", ms / 1000, ms < 100'000 ? 2 : 0);
}
std::string percent(double part) { return fmt::format("{:.1f}%", 100 * part); }

// The two largest units.
std::string span(double seconds) {
    constexpr double longest = 1e9;  // what comes over the network may be any number
    auto const s = static_cast<std::uint64_t>(std::clamp(seconds, 0.0, longest));
    if (s >= 86'400) return fmt::format("{} d {} h", s / 86'400, s / 3600 % 24);
    if (s >= 3600) return fmt::format("{} h {} min", s / 3600, s / 60 % 60);
    return s >= 60 ? fmt::format("{} min {} s", s / 60, s % 60) : fmt::format("{} s", s);
}

cell text(std::string_view s) { return {.text = harmless(s)}; }
cell number(std::string s) { return {.text = std::move(s)}; }
cell number(std::uint64_t n) { return {.text = std::to_string(n)}; }

double ratio(std::uint64_t n, std::uint64_t of) {
    return of == 0 ? 0 : static_cast<double>(n) / static_cast<double>(of);
}

// --- over time ---------------------------------------------------------------------------------

cell plot(series s, double top, bool unicode) {
    return {.drawn = [s = std::move(s), top, unicode](std::size_t width) {
        return sparkline(s, past::remembered, top, width, unicode);
    }};
}

// What the height of a plot is, and, where there is room, how long it goes back.
column plots(std::string const& height, past const& p, int worth) {
    std::string all = fmt::format("to {} over {} s", height, p.size());
    auto const title = [all = std::move(all), shortest = "to " + height](std::size_t width) {
        return all.size() <= width ? all : shortest;
    };
    return {{.drawn = title}, kind::plot, 9, worth, past::remembered};
}

double share_in(status const& s, std::string_view tenant) {
    auto const found = std::ranges::find(s.tenants, tenant, &tenant_status::name);
    return found == s.tenants.end() ? 0 : found->share;
}

// One scale for all of them, or they could not be compared.
double highest(std::vector<series> const& all) {
    double top = 0;
    for (series const& s : all) top = std::max(top, std::ranges::max(s.values));
    return top;
}

// --- what is above the tables ------------------------------------------------------------------

lines heading(status const& s, terminal const& on) {
    lines all = flow({{.text = "rondo " + harmless(s.version), .how = style::title},
                      {.text = s.draining ? "draining" : "running",
                       .how = s.draining ? style::bad : style::title},
                      {.text = fmt::format("configuration {}", s.config_version)},
                      {.text = "up " + span(s.uptime_s)}},
                     on);
    if (!s.draining) return all;
    // Also those that wait in line, or need no turn.
    std::uint64_t unanswered = 0;
    for (server_status const& one : s.servers) unanswered += one.in_flight;
    lines const ending = flow({{.text = fmt::format("ending: {} connections open", s.connections)},
                               {.text = fmt::format("{} requests not answered yet", unanswered)}},
                              on);
    all.insert(all.end(), ending.begin(), ending.end());
    return all;
}

lines requests(past const& p, terminal const& on) {
    std::vector<series> const both{p.each([](status const& s) { return s.offered; }),
                                   p.each([](status const& s) { return s.served; })};
    double const top = round_up(std::max(1.0, highest(both)));
    table t;
    t.columns = {{text("requests"), kind::text, 9},
                 {text("per s"), kind::number, 8, 2},
                 plots(scale(top) + "/s", p, 1)};
    t.rows = {{text("offered"), number(rate(p.latest().offered)), plot(both[0], top, on.unicode)},
              {text("served"), number(rate(p.latest().served)), plot(both[1], top, on.unicode)}};
    return lay_out(t, on);
}

// One below the other, where there is room for two beside each other.
lines gauges(status const& s, terminal const& on) {
    bool const turns = s.limit > 0;
    bool const wide = on.columns >= 80;
    auto const gauge = [&](std::string_view name, std::uint64_t n, std::uint64_t of) {
        if (!wide) return cell{.text = fmt::format("{} {} of {}", name, n, of)};
        return cell{.text = fmt::format("{:<10}{:>8} of {:<8} [{}]", name, n, of,
                                        bar(ratio(n, of), 20, on.unicode))};
    };
    auto const counter = [&](std::string_view name, std::uint64_t n) {
        return cell{.text =
                        wide ? fmt::format("{:<12}{:>8}", name, n) : fmt::format("{} {}", name, n)};
    };
    auto const quantiles = [](std::string_view name, double p50, double p99, int width) {
        return cell{.text = fmt::format("{:<{}}",
                                        fmt::format("{:<6} p50 {:>7}  p99 {:>7}", name,
                                                    duration(p50), duration(p99)),
                                        width)};
    };
    std::uint64_t refused = 0;
    for (tenant_status const& t : s.tenants) refused += t.refusals;
    cell const connections = counter("connections", s.connections);
    cell const answers = quantiles("answer", s.p50_ms, s.p99_ms, 0);
    lines all;
    auto const add = [&](std::vector<cell> const& line) {
        lines const made = flow(line, on);
        all.insert(all.end(), made.begin(), made.end());
    };
    if (!turns) {
        add({{.text = fmt::format("{:<10}{:>8}, no limit", "in flight", s.in_flight)},
             connections});
        add({answers});
        return all;
    }
    add({gauge("in flight", s.in_flight, s.limit), connections});
    add({gauge("queued", s.queued, s.capacity), counter("refused", refused)});
    add({quantiles("wait", s.wait_p50_ms, s.wait_p99_ms, wide ? 38 : 0), answers});
    return all;
}

// --- the tables --------------------------------------------------------------------------------

// Of all that there are, the first so many are shown.
cell counted(std::string_view what, std::size_t shown, std::size_t all) {
    return {.text = shown == all ? std::string{what} : fmt::format("{} {}/{}", what, shown, all)};
}

table tenants(past const& p, std::size_t shown, terminal const& on) {
    constexpr std::size_t meter = 12;
    auto const& all = p.latest().tenants;
    std::vector<series> shares;
    for (std::size_t i = 0; i < shown; ++i) {
        shares.push_back(p.each([&](status const& s) { return share_in(s, all[i].name); }));
    }
    double const top = std::clamp(round_up(highest(shares)), 0.05, 1.0);
    table t;
    t.columns = {{counted("tenant", shown, all.size()), kind::text, 13},
                 {text("weight"), kind::number, 6, 2},
                 {text("entitled"), kind::number, 8, 8},
                 {text("share"), kind::number, 6, 9},
                 {text("| entitled"), kind::plot, meter, 1, meter},
                 plots(fmt::format("{:.0f}%", 100 * top), p, 4),
                 {text("in flight"), kind::number, 9, 3},
                 {text("queued"), kind::number, 6, 7},
                 {text("p99"), kind::number, 7, 6},
                 {text("refused"), kind::number, 7, 5}};
    for (std::size_t i = 0; i < shown; ++i) {
        tenant_status const& one = all[i];
        auto const compared = [&one, &on](std::size_t width) {
            return bar(one.share, width, on.unicode, one.entitled);
        };
        t.rows.push_back({text(one.name),
                          number(fmt::format("{:.0f}", one.weight)),
                          number(percent(one.entitled)),
                          number(percent(one.share)),
                          {.drawn = compared},
                          plot(shares[i], top, on.unicode),
                          number(one.in_flight),
                          number(one.queued),
                          number(duration(one.wait_p99_ms)),
                          number(one.refusals)});
    }
    return t;
}

table backends(status const& s, std::size_t shown) {
    // Where not all have room, those are shown that somebody has to look after.
    bool const cut = shown < s.backends.size();
    std::vector<backend_status const*> all;
    for (bool const first : {true, false}) {
        for (backend_status const& b : s.backends) {
            if ((cut && b.set_aside) == first) all.push_back(&b);
        }
    }
    table t;
    t.columns = {{counted("backend", shown, all.size()), kind::text, 15},
                 {text("health"), kind::text, 9, 8},
                 {text("server"), kind::text, 6, 1},
                 {text("route"), kind::text, 6, 4},
                 {text("weight"), kind::number, 6, 3},
                 {text("per s"), kind::number, 7, 6},
                 {text("requests"), kind::number, 9, 2},
                 {text("failures"), kind::number, 8, 7}};
    for (std::size_t i = 0; i < shown; ++i) {
        backend_status const& b = *all[i];
        cell failures = number(b.failures);
        if (b.failures != 0) failures.how = style::bad;
        t.rows.push_back({text(b.address),
                          {.text = b.set_aside ? "set aside" : "well",
                           .how = b.set_aside ? style::bad : style::plain},
                          text(b.server),
                          text(b.route),
                          number(b.weight),
                          number(rate(b.rate)),
                          number(b.requests),
                          failures});
    }
    return t;
}

// As many as there is room for, and how many more there are: what is left of a list that was cut in
// the middle would look like an address.
cell list(std::vector<std::string> const& addresses) {
    auto const first = [all = addresses](std::size_t n) {
        std::string text;
        for (std::size_t i = 0; i < n; ++i) text += (i > 0 ? ", " : "") + harmless(all[i]);
        return n == all.size() ? text : text + fmt::format(" +{}", all.size() - n);
    };
    auto const fitted = [first, n = addresses.size()](std::size_t width) {
        std::size_t shown = n;
        while (shown > 1 && first(shown).size() > width) --shown;
        return first(shown);
    };
    return {.text = first(addresses.size()), .drawn = fitted};
}

table servers(status const& s, std::size_t shown) {
    table t;
    t.columns = {{counted("server", shown, s.servers.size()), kind::text, 10},
                 {text("listens at"), kind::text, 15, 5},
                 {text("connections"), kind::number, 12, 8},
                 {text("per s"), kind::number, 7, 7},
                 {text("requests"), kind::number, 9, 1},
                 {text("p50"), kind::number, 7, 2},
                 {text("p99"), kind::number, 7, 6}};
    for (std::size_t i = 0; i < shown; ++i) {
        server_status const& one = s.servers[i];
        t.rows.push_back({text(one.name), list(one.addresses),
                          number(fmt::format("{} of {}", one.connections, one.max_connections)),
                          number(rate(one.rate)), number(one.requests),
                          number(duration(one.p50_ms)), number(duration(one.p99_ms))});
    }
    return t;
}

}  // namespace

lines page_of(past const& p, terminal const& on) {
    status const& s = p.latest();
    lines page = heading(s, on);
    for (lines const& part : {requests(p, on), gauges(s, on)}) {
        page.insert(page.end(), part.begin(), part.end());
    }
    std::vector<std::size_t> rows{s.tenants.size(), s.backends.size(), s.servers.size()};
    auto const used = static_cast<std::size_t>(std::ranges::count_if(rows, std::identity{}));
    // A line of titles each and, unless that leaves no row for one of them, an empty line before.
    bool const spaced = on.rows == 0 || page.size() + 3 * used <= on.rows;
    std::size_t const taken = page.size() + (spaced ? 2 : 1) * used;
    if (on.rows != 0) rows = share_out(rows, on.rows > taken ? on.rows - taken : 0);
    auto const add = [&](std::size_t there_are, auto const& made) {
        if (there_are == 0) return;
        if (spaced) page.emplace_back();
        lines const part = lay_out(made(), on);
        page.insert(page.end(), part.begin(), part.end());
    };
    add(s.tenants.size(), [&] { return tenants(p, rows[0], on); });
    add(s.backends.size(), [&] { return backends(s, rows[1]); });
    add(s.servers.size(), [&] { return servers(s, rows[2]); });
    if (on.rows != 0 && page.size() > on.rows) page.resize(on.rows);
    return page;
}

}  // namespace rondo::gateway
