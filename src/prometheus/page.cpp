#include "rondo/prometheus/page.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cstddef>
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
    for (auto& [name, value] : with) {
        m.label.push_back({std::move(name), label_text(std::move(value))});
    }
    return m;
}

// How many bytes at the beginning are one character; 0 if they are none.
std::size_t character(std::string_view text) noexcept {
    auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    unsigned char const first = byte(0);
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4) return 0;  // 0xc0, 0xc1: longer than need be
    std::size_t const length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0U) != 0x80) return 0;
    }
    unsigned char const second = byte(1);
    bool const overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    bool const surrogate = first == 0xed && second > 0x9f;
    bool const too_large = first == 0xf4 && second > 0x8f;
    return overlong || surrogate || too_large ? 0 : length;
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

std::string label_text(std::string value) {
    std::string_view rest{value};
    while (!rest.empty()) {
        std::size_t const length = character(rest);
        if (length == 0) break;
        rest.remove_prefix(length);
    }
    if (rest.empty()) return value;
    std::string shown{value, 0, value.size() - rest.size()};
    while (!rest.empty()) {
        std::size_t const length = character(rest);
        if (length == 0) {
            auto const byte = static_cast<unsigned char>(rest.front());
            shown += static_cast<char>(0xc0U | (byte >> 6U));
            shown += static_cast<char>(0x80U | (byte & 0x3fU));
        } else {
            shown += rest.substr(0, length);
        }
        rest.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return shown;
}

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
