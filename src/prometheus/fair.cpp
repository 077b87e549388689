#include "rondo/prometheus/fair.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::prometheus {

namespace {

using reports = std::vector<fair_report>;

constexpr double ns_per_second = 1e9;

labels labels_of(fair_report const& r) {
    labels all;
    if (!r.scheduler.empty()) all.emplace_back("scheduler", r.scheduler);
    return all;
}

labels labels_of(fair_report const& r, std::string name, std::string value) {
    labels all = labels_of(r);
    all.emplace_back(std::move(name), std::move(value));
    return all;
}

struct counter {
    std::string_view name;
    std::string_view help;
    std::uint64_t (*value)(fair::stats const&);
};

constexpr std::array counters{
    counter{"enqueued", "Tasks that were accepted.",
            [](fair::stats const& s) { return s.enqueued; }},
    counter{"dequeued", "Tasks that were delivered to a consumer.",
            [](fair::stats const& s) { return s.dequeued; }},
    counter{"expired", "Tasks whose deadline passed before their turn.",
            [](fair::stats const& s) { return s.expired; }},
    counter{"cancelled", "Tasks that were cancelled.",
            [](fair::stats const& s) { return s.cancelled; }},
    counter{"evicted", "Tasks that made room because their tenant had the most queued.",
            [](fair::stats const& s) { return s.evicted; }},
    counter{"displaced", "Tasks that made room for a later one of their tenant.",
            [](fair::stats const& s) { return s.displaced; }},
    counter{"returned", "Tasks that were queued when the scheduler was closed.",
            [](fair::stats const& s) { return s.returned; }},
    counter{"dropped", "Tasks that were rejected, evicted or displaced.",
            [](fair::stats const& s) { return s.dropped(); }},
};

constexpr std::array rejections{
    counter{"global", {}, [](fair::stats const& s) { return s.rejected_global; }},
    counter{"tenant", {}, [](fair::stats const& s) { return s.rejected_tenant; }},
    counter{"timeout", {}, [](fair::stats const& s) { return s.rejected_timeout; }},
    counter{"closed", {}, [](fair::stats const& s) { return s.rejected_closed; }},
};

constexpr std::array gauges{
    counter{"queued", "Tasks that are queued.", [](fair::stats const& s) { return s.queued; }},
    counter{"capacity", "Tasks that may be queued.",
            [](fair::stats const& s) { return s.capacity; }},
    counter{"tenants_active", "Tenants that have tasks queued.",
            [](fair::stats const& s) { return s.tenants_active; }},
    counter{"tenants_known", "Tenants of which anything is remembered.",
            [](fair::stats const& s) { return s.tenants_known; }},
};

std::string full(std::string_view name, std::string_view end = {}) {
    std::string all = "rondo_fair_";
    all += name;
    all += end;
    return all;
}

void add_rejected(page& to, reports const& all) {
    auto f = to.counter(full("rejected_total"), "Tasks that were not accepted.");
    for (fair_report const& r : all) {
        for (counter const& c : rejections) {
            f.add(static_cast<double>(c.value(r.stats)),
                  labels_of(r, "reason", std::string{c.name}));
        }
    }
}

void add_times(page& to, reports const& all) {
    auto times = to.times(full("queue_time_seconds"), "Time from enqueue to delivery.");
    for (fair_report const& r : all) times.add(r.stats.queue_time, labels_of(r));
    auto quantiles =
        to.gauge(full("queue_time_quantile_seconds"),
                 "Quantiles of the time from enqueue to delivery, since the beginning.");
    for (fair_report const& r : all) {
        for (auto const& [name, q] : {std::pair{"0.5", 0.5}, {"0.95", 0.95}, {"0.99", 0.99}}) {
            quantiles.add(static_cast<double>(r.stats.queue_time.quantile(q)) / ns_per_second,
                          labels_of(r, "q", name));
        }
    }
}

void add_tenants(page& to, reports const& all) {
    constexpr char const* rest = "other";
    auto f = to.gauge(full("tenant_served_cost"),
                      "Cost delivered of late, by tenant; half of it counts after a minute.");
    for (fair_report const& r : all) {
        std::vector<std::pair<std::string, double>> costs{{rest, r.tenants.other}};
        for (auto const& one : r.tenants.first) {
            std::string label = label_text(one.tenant);
            auto const same =
                std::ranges::find(costs, label, [](auto const& c) { return c.first; });
            if (same != costs.end()) {
                same->second += one.cost;
            } else {
                costs.emplace_back(std::move(label), one.cost);
            }
        }
        std::ranges::rotate(costs, costs.begin() + 1);  // the others are the last
        for (auto& [label, cost] : costs) f.add(cost, labels_of(r, "tenant", std::move(label)));
    }
}

}  // namespace

void add(page& to, std::vector<fair_report> const& schedulers) {
    for (counter const& c : counters) {
        auto f = to.counter(full(c.name, "_total"), c.help);
        for (fair_report const& r : schedulers) {
            f.add(static_cast<double>(c.value(r.stats)), labels_of(r));
        }
    }
    add_rejected(to, schedulers);
    for (counter const& c : gauges) {
        auto f = to.gauge(full(c.name), c.help);
        for (fair_report const& r : schedulers) {
            f.add(static_cast<double>(c.value(r.stats)), labels_of(r));
        }
    }
    add_times(to, schedulers);
    add_tenants(to, schedulers);
}

std::string text(std::vector<fair_report> const& schedulers) {
    page all;
    add(all, schedulers);
    return all.text();
}

}  // namespace rondo::prometheus
