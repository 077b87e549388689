#include "rondo/prometheus/fair.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string_view>

namespace rondo::prometheus {

namespace {

using ::prometheus::ClientMetric;
using ::prometheus::MetricFamily;
using ::prometheus::MetricType;

using reports = std::vector<fair_report>;

constexpr double ns_per_second = 1e9;

ClientMetric metric_of(fair_report const& r) {
    ClientMetric m;
    if (!r.scheduler.empty()) m.label.push_back({"scheduler", r.scheduler});
    return m;
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

MetricFamily family(std::string_view name, std::string_view help, MetricType type) {
    return {"rondo_fair_" + std::string{name}, std::string{help}, type, {}};
}

MetricFamily counter_family(counter const& c, reports const& all) {
    MetricFamily f = family(std::string{c.name} + "_total", c.help, MetricType::Counter);
    for (fair_report const& r : all) {
        f.metric.push_back(metric_of(r));
        f.metric.back().counter.value = static_cast<double>(c.value(r.stats));
    }
    return f;
}

MetricFamily rejected_family(reports const& all) {
    MetricFamily f = family("rejected_total", "Tasks that were not accepted.", MetricType::Counter);
    for (fair_report const& r : all) {
        for (counter const& c : rejections) {
            ClientMetric m = metric_of(r);
            m.label.push_back({"reason", std::string{c.name}});
            m.counter.value = static_cast<double>(c.value(r.stats));
            f.metric.push_back(std::move(m));
        }
    }
    return f;
}

MetricFamily gauge_family(counter const& c, reports const& all) {
    MetricFamily f = family(c.name, c.help, MetricType::Gauge);
    for (fair_report const& r : all) {
        f.metric.push_back(metric_of(r));
        f.metric.back().gauge.value = static_cast<double>(c.value(r.stats));
    }
    return f;
}

// A bucket up to each power of two from a microsecond to a minute, less one nanosecond: there our
// own finer buckets end too, so that every count is exact.
ClientMetric::Histogram buckets_of(histogram const& times) {
    constexpr unsigned first = 10;
    constexpr unsigned last = 36;
    ClientMetric::Histogram h;
    for (unsigned power = first; power <= last; ++power) {
        double const highest = static_cast<double>((std::uint64_t{1} << power) - 1);
        h.bucket.push_back({0, highest / ns_per_second});
    }
    h.bucket.push_back({times.count(), std::numeric_limits<double>::infinity()});
    times.for_each_bucket([&h](histogram::bucket const& b) {
        for (unsigned power = first; power <= last; ++power) {
            bool const within = b.highest < std::uint64_t{1} << power;
            if (within) h.bucket[power - first].cumulative_count += b.count;
        }
    });
    h.sample_count = times.count();
    h.sample_sum = static_cast<double>(times.sum()) / ns_per_second;
    return h;
}

MetricFamily queue_time_family(reports const& all) {
    MetricFamily f =
        family("queue_time_seconds", "Time from enqueue to delivery.", MetricType::Histogram);
    for (fair_report const& r : all) {
        f.metric.push_back(metric_of(r));
        f.metric.back().histogram = buckets_of(r.stats.queue_time);
    }
    return f;
}

MetricFamily quantile_family(reports const& all) {
    MetricFamily f = family("queue_time_quantile_seconds",
                            "Quantiles of the time from enqueue to delivery, since the beginning.",
                            MetricType::Gauge);
    for (fair_report const& r : all) {
        for (auto const& [name, q] : {std::pair{"0.5", 0.5}, {"0.95", 0.95}, {"0.99", 0.99}}) {
            ClientMetric m = metric_of(r);
            m.label.push_back({"q", name});
            m.gauge.value = static_cast<double>(r.stats.queue_time.quantile(q)) / ns_per_second;
            f.metric.push_back(std::move(m));
        }
    }
    return f;
}

MetricFamily tenant_family(reports const& all) {
    constexpr char const* rest = "other";
    MetricFamily f = family("tenant_served_cost",
                            "Cost delivered of late, by tenant; half of it counts after a minute.",
                            MetricType::Gauge);
    for (fair_report const& r : all) {
        auto const add = [&](std::string const& tenant, double cost) {
            ClientMetric m = metric_of(r);
            m.label.push_back({"tenant", tenant});
            m.gauge.value = cost;
            f.metric.push_back(std::move(m));
        };
        double other = r.tenants.other;
        for (auto const& one : r.tenants.first) {
            if (one.tenant == rest) {
                other += one.cost;
            } else {
                add(one.tenant, one.cost);
            }
        }
        add(rest, other);
    }
    return f;
}

}  // namespace

std::string text(std::vector<fair_report> const& schedulers) {
    std::vector<MetricFamily> all;
    for (counter const& c : counters) all.push_back(counter_family(c, schedulers));
    all.push_back(rejected_family(schedulers));
    for (counter const& c : gauges) all.push_back(gauge_family(c, schedulers));
    all.push_back(queue_time_family(schedulers));
    all.push_back(quantile_family(schedulers));
    all.push_back(tenant_family(schedulers));
    std::ostringstream page;
    ::prometheus::TextSerializer{}.Serialize(page, all);
    return page.str();
}

}  // namespace rondo::prometheus
