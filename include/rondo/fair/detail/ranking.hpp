// ranking.hpp: which tenants were served the most of late.
//
// A table of a few tenants, after Space-Saving (Metwally, Agrawal, El Abbadi, 2005). Every tenant
// that is remembered keeps its own sum, so that one outside of the table takes over a place exactly
// when it has passed the least of those in it, by a quarter: tenants that are served alike do not
// push each other out with every task.
//
// What was served counts for half after each half-life. Nothing is walked for that: instead a task
// counts for more the later it is, and all is divided by what a task counts now when it is read.
//
// Cost           a comparison and two additions for a task. A takeover looks at the whole table; a
//                tenant has to grow by a quarter between two of them.
// Thread safety  none: whoever owns it synchronises.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rondo/fair/detail/tenant.hpp"
#include "rondo/fair/stats.hpp"

namespace rondo::fair::detail {

class ranking {
  public:
    struct change {
        bool listed = false;     // the tenant has come into the table,
        tenant* gone = nullptr;  // and this one has left it
    };

    explicit ranking(time_point now) noexcept : step_at_(later(now, step)) {}

    change served(tenant& t, std::uint64_t cost, time_point now) noexcept {
        pass(now);
        double const sum = static_cast<double>(cost) * worth_;
        total_ += sum;
        t.rank.sum = t.rank.epoch == epoch_ ? t.rank.sum + sum : sum;
        t.rank.epoch = epoch_;
        if (t.rank.listed || (size_ == places_.size() && t.rank.sum <= enough_)) return {};
        return list(t);
    }

    // So much of what was served then was not, after all: what still counts of that is taken off.
    void unserved(tenant& t, std::uint64_t cost, time_point then, time_point now) noexcept;

    void pass(time_point now) noexcept {
        if (now > step_at_) pass_time(now);  // at the end of time it is not
    }
    // Who is in the table, in no order.
    std::size_t size() const noexcept { return size_; }
    tenant& operator[](std::size_t i) const noexcept { return *places_[i]; }
    // Cost that was served of late: of one in the table, of all.
    double of(tenant const& t) const noexcept { return t.rank.sum / worth_; }
    double in_all() const noexcept { return total_ / worth_; }

    // The last one leaves the table; null when it is empty.
    tenant* pop() noexcept {
        if (size_ == 0) return nullptr;
        tenant* const last = places_[--size_];
        last->rank.listed = false;
        return last;
    }

  private:
    static constexpr clock::duration step = served_half_life / 32;

    change list(tenant& t) noexcept;
    void pass_time(time_point now) noexcept;
    void find_least() noexcept;

    std::array<tenant*, ranked_tenants> places_{};
    std::size_t size_ = 0;
    std::size_t least_ = 0;  // who was that when it was last looked for
    double enough_ = 0;      // to be worth a look at the table: never more than it really takes
    double worth_ = 1;       // what cost 1 counts now
    double total_ = 0;
    std::uint32_t epoch_ = 1;
    time_point step_at_;
};

}  // namespace rondo::fair::detail
