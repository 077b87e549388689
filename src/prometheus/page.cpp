#include "rondo/prometheus/page.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sstream>

#include "rondo/core/assert.hpp"

namespace rondo::prometheus {

using ::prometheus::ClientMetric;
using ::prometheus::MetricFamily;
using ::prometheus::MetricType;

struct page::family::state {
    MetricFamily all;
};

namespace {

constexpr double ns_per_second = 1e9;

ClientMetric metric_with(labels with) {
    ClientMetric m;
    for (auto& [name, value] : with) m.label.push_back({std::move(name), std::move(value)});
    return m;
}

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

}  // namespace

void page::family::add(double value, labels with) {
    ClientMetric m = metric_with(std::move(with));
    RONDO_ASSERT(state_->all.type != MetricType::Histogram, "a histogram is no number");
    if (state_->all.type == MetricType::Counter) {
        m.counter.value = value;
    } else {
        m.gauge.value = value;
    }
    state_->all.metric.push_back(std::move(m));
}

void page::family::add(histogram const& times, labels with) {
    RONDO_ASSERT(state_->all.type == MetricType::Histogram, "a number is no histogram");
    ClientMetric m = metric_with(std::move(with));
    m.histogram = buckets_of(times);
    state_->all.metric.push_back(std::move(m));
}

page::page() = default;
page::~page() = default;
page::page(page&&) noexcept = default;
page& page::operator=(page&&) noexcept = default;

page::family page::get(kind k, std::string_view name, std::string_view help) {
    constexpr MetricType types[] = {MetricType::Counter, MetricType::Gauge, MetricType::Histogram};
    auto const found =
        std::ranges::find_if(families_, [name](auto const& f) { return f->all.name == name; });
    if (found != families_.end()) return family{**found};
    families_.push_back(std::make_unique<family::state>(family::state{MetricFamily{
        std::string{name}, std::string{help}, types[static_cast<std::size_t>(k)], {}}}));
    return family{*families_.back()};
}

page::family page::counter(std::string_view name, std::string_view help) {
    return get(kind::counter, name, help);
}
page::family page::gauge(std::string_view name, std::string_view help) {
    return get(kind::gauge, name, help);
}
page::family page::times(std::string_view name, std::string_view help) {
    return get(kind::times, name, help);
}

std::string page::text() const {
    std::vector<MetricFamily> all;
    all.reserve(families_.size());
    for (auto const& f : families_) all.push_back(f->all);
    std::ostringstream out;
    ::prometheus::TextSerializer{}.Serialize(out, all);
    return out.str();
}

}  // namespace rondo::prometheus
