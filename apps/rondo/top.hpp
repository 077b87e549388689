// top.hpp: what the dashboard shows, as lines of text, for `rondo top`.
#pragma once

#include <cstddef>
#include <deque>

#include "monitor.hpp"
#include "plots.hpp"
#include "sheet.hpp"
#include "status.hpp"

namespace rondo::gateway {

// The statuses of the last two minutes, as far as they are known.
class past {
  public:
    static constexpr std::size_t remembered = monitor::remembered;

    void add(status s) {
        kept_.push_back(std::move(s));
        if (kept_.size() > remembered) kept_.pop_front();
        ++seen_;
    }

    bool empty() const noexcept { return kept_.empty(); }
    std::size_t size() const noexcept { return kept_.size(); }
    status const& latest() const { return kept_.back(); }
    series each(auto const& value_of) const {
        series s{.values = {}, .number_of_last = seen_ - 1};
        for (status const& one : kept_) s.values.push_back(value_of(one));
        return s;
    }

  private:
    std::deque<status> kept_;
    std::size_t seen_ = 0;
};

// No wider than the terminal, and no higher if that has an end. Not of an empty past.
lines page_of(past const& p, terminal const& on);

}  // namespace rondo::gateway
