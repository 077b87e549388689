// page.hpp: a page of metrics, as Prometheus reads it.
//
//   prometheus::page page;
//   page.counter("rondo_requests_total", "Requests that were read.").add(n, {{"server", name}});
//   page.times("rondo_request_seconds", "Time to answer.").add(times);
//   send(page.text());
//
// Families       are written in the order in which they were made, each once: to ask for one of the
//                same name again gives the same one.
// Text           label values are escaped, and shown as label_text() says; names, and help texts of
//                one line, are the caller's. No two of a family have the same labels: that too is
//                the caller's.
// Histograms     a bucket up to each power of two of nanoseconds from a microsecond to a minute,
//                less one: there the finer buckets of ours end too, so that every count is exact.
// Thread safety  none.
// Example        examples/prometheus/page.cpp
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rondo/core/histogram.hpp"

namespace rondo::prometheus {

using labels = std::vector<std::pair<std::string, std::string>>;

// A scraper takes a page only if all of it is UTF-8: bytes that are not stand for the characters of
// their numbers. Values that differ may look alike then.
[[nodiscard]] std::string label_text(std::string value);

class page {
  public:
    class family {
      public:
        void add(double value, labels with = {});
        // Of nanoseconds, shown in seconds; into a family of histograms.
        void add(histogram const& times, labels with = {});

      private:
        friend class page;
        struct state;
        explicit family(state& s) noexcept : state_(&s) {}
        state* state_;
    };

    page();
    ~page();
    page(page&&) noexcept;
    page& operator=(page&&) noexcept;

    family counter(std::string_view name, std::string_view help);
    family gauge(std::string_view name, std::string_view help);
    family times(std::string_view name, std::string_view help);

    [[nodiscard]] std::string text() const;

  private:
    enum class kind : std::uint8_t { counter, gauge, times };
    family get(kind k, std::string_view name, std::string_view help);

    std::vector<std::unique_ptr<family::state>> families_;
};

}  // namespace rondo::prometheus
