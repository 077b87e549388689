#include "rondo/fair/detail/ranking.hpp"

#include <algorithm>
#include <cmath>

namespace rondo::fair::detail {

namespace {

constexpr double margin = 1.25;
// When a task counts for so much, everything is counted anew: a double has room for some more.
constexpr double most_worth = 0x1p512;

}  // namespace

ranking::change ranking::list(tenant& t) noexcept {
    if (size_ < places_.size()) {
        places_[size_++] = &t;
        t.rank.listed = true;
        if (size_ == places_.size()) find_least();
        return {true, nullptr};
    }
    find_least();  // it has grown since, if it is still the least at all
    if (t.rank.sum <= enough_) return {};
    tenant* const gone = places_[least_];
    gone->rank.listed = false;
    places_[least_] = &t;
    t.rank.listed = true;
    find_least();
    return {true, gone};
}

void ranking::unserved(tenant& t, std::uint64_t cost, time_point then, time_point now) noexcept {
    pass(now);
    if (t.rank.epoch != epoch_) return;  // too long ago to matter
    std::chrono::duration<double> const age = now - then;
    double const worth_then = worth_ * std::exp2(-(age / served_half_life));
    double const sum = std::min(static_cast<double>(cost) * worth_then, t.rank.sum);
    t.rank.sum -= sum;
    total_ = std::max(total_ - sum, 0.0);
    if (t.rank.listed) enough_ = std::min(enough_, t.rank.sum * margin);  // it may be the least now
}

void ranking::find_least() noexcept {
    least_ = 0;
    for (std::size_t i = 1; i < size_; ++i) {
        if (places_[i]->rank.sum < places_[least_]->rank.sum) least_ = i;
    }
    enough_ = places_[least_]->rank.sum * margin;
}

void ranking::pass_time(time_point now) noexcept {
    std::chrono::duration<double> const since = now - step_at_ + step;
    worth_ *= std::exp2(since / served_half_life);
    step_at_ = later(now, step);
    if (worth_ < most_worth) return;
    ++epoch_;  // what tenants outside of the table have is too long ago to matter
    for (std::size_t i = 0; i < size_; ++i) {
        places_[i]->rank.sum /= worth_;
        places_[i]->rank.epoch = epoch_;
    }
    total_ /= worth_;
    enough_ /= worth_;
    worth_ = 1;
}

}  // namespace rondo::fair::detail
