// fair.hpp: the metrics of schedulers as Prometheus reads them.
//
//   auto page = prometheus::text({prometheus::report(queue, "uploads"), ...});
//
// Names          rondo_fair_enqueued_total, _dequeued_total, _expired_total, _cancelled_total,
//                _evicted_total, _displaced_total, _returned_total,
//                _rejected_total{reason="global|tenant|timeout|closed"}, and _dropped_total: what
//                was rejected, evicted and displaced. Gauges: rondo_fair_queued, _capacity,
//                _tenants_active, _tenants_known. Time from enqueue to delivery:
//                rondo_fair_queue_time_seconds, a histogram, and its quantiles within 0.8 %,
//                rondo_fair_queue_time_quantile_seconds{q="0.5|0.95|0.99"}.
//                rondo_fair_tenant_served_cost{tenant="..."}: of those who were served the most of
//                late, and tenant="other" for all the rest. They do not change once released.
// Labels         scheduler="<name>" on all of them, if it has a name. A tenant is shown as its key
//                is written, the parts of a tuple with / between them. Tenants that look alike are
//                counted together: ("a/b", "c") and ("a", "b/c"); one whose key is "other" is
//                counted with the others.
// Thread safety  as that of the scheduler.
// Example        examples/prometheus/page.cpp
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rondo/fair/scheduler.hpp"
#include "rondo/fair/stats.hpp"
#include "rondo/prometheus/page.hpp"

namespace rondo::prometheus {

// What one scheduler had to say at one moment.
struct fair_report {
    std::string scheduler;
    fair::stats stats;
    fair::top_tenants<std::string> tenants;
};

inline std::string label_of(std::string key) { return key; }
template <std::integral Key>
std::string label_of(Key key) {
    return std::to_string(key);
}
template <class A, class B>
std::string label_of(std::pair<A, B> const& key);  // a part of a tuple may be one
template <class... Parts>
std::string label_of(std::tuple<Parts...> const& key) {
    std::string all;
    std::apply([&all](Parts const&... part) { ((all += "/" + label_of(part)), ...); }, key);
    return all.empty() ? all : all.substr(1);
}
template <class A, class B>
std::string label_of(std::pair<A, B> const& key) {
    return label_of(std::tuple<A const&, B const&>{key.first, key.second});
}

template <class T, class Key>
fair_report report(fair::scheduler<T, Key>& of, std::string name = {}, std::size_t tenants = 10) {
    fair_report all{std::move(name), of.stats(), {}};
    auto const top = of.top(tenants);
    all.tenants.other = top.other;
    for (auto const& one : top.first) {
        all.tenants.first.push_back({label_of(one.tenant), one.cost});
    }
    return all;
}

// Each family once, with what all schedulers say of it.
void add(page& to, std::vector<fair_report> const& schedulers);
// The same as a page of its own.
[[nodiscard]] std::string text(std::vector<fair_report> const& schedulers);

}  // namespace rondo::prometheus
