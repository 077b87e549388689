// chooser.cpp: depth first and PCT.
//
// PCT            (Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with
//                Probabilistic Guarantees of Finding Bugs, ASPLOS 2010.) Every thread has a random
//                priority and the highest enabled one runs; at depth - 1 random steps the running
//                thread drops below all others. Loads and other branches are drawn uniformly. The
//                number of steps that change points are drawn from is learnt from earlier
//                executions.

#include "chooser.hpp"

#include <algorithm>

namespace rondo::check::detail {

void chooser::search(options const& how) {
    source_ = how.mode == check::search::pct ? source::pct : source::dfs;
    path_.clear();
    seed_ = how.seed;
    execution_ = 0;
    longest_ = 1;
    int const depth = std::clamp(how.pct_depth, 1, static_cast<int>(change_points_.size()) + 1);
    changes_ = static_cast<unsigned>(depth - 1);
}

void chooser::repeat(pool<decision> const& path) {
    source_ = source::given;
    if (&path != &path_) {
        path_.clear();
        for (decision const& each : path) {
            path_.push(each);
        }
    }
}

void chooser::begin_execution() {
    next_ = 0;
    if (source_ == source::pct) {
        path_.clear();
        random_state_ = seed_ + execution_ * 0x9e37'79b9'7f4a'7c15U;
        draw_priorities();
    }
}

bool chooser::advance() {
    if (source_ == source::pct) {
        ++execution_;
        return true;
    }
    if (source_ == source::given) {
        return false;
    }
    while (!path_.empty()) {
        decision& last = path_.back();
        if (last.taken + 1 < last.allowed) {
            ++last.taken;
            return true;
        }
        path_.pop();
    }
    return false;
}

unsigned chooser::repeat_next(branch what, unsigned alternatives) {
    decision& given = path_[next_];
    if (given.alternatives == 0) {
        given.what = what;
        given.alternatives = static_cast<std::uint8_t>(alternatives);
    }
    if (given.what != what || given.alternatives != alternatives || given.taken >= alternatives) {
        return diverged;
    }
    ++next_;
    return given.taken;
}

unsigned chooser::decide(branch what, unsigned alternatives, unsigned allowed) {
    switch (source_) {
        case source::given:
            return diverged;
        case source::dfs:
            return record(what, alternatives, allowed, 0);
        case source::pct:
            break;
    }
    auto const drawn = static_cast<unsigned>(random() % alternatives);
    return record(what, alternatives, alternatives, drawn);
}

unsigned chooser::record(branch what, unsigned alternatives, unsigned allowed, unsigned taken) {
    path_.push({what, static_cast<std::uint8_t>(alternatives), static_cast<std::uint8_t>(allowed),
                static_cast<std::uint8_t>(taken)});  // I1
    ++next_;
    return taken;
}

unsigned chooser::choose_thread(std::span<std::uint8_t const> candidates, unsigned allowed,
                                unsigned running, unsigned step) {
    auto const alternatives = static_cast<unsigned>(candidates.size());
    if (source_ != source::pct || next_ < path_.size()) {
        return choose(branch::thread, alternatives, allowed);
    }
    longest_ = std::max(longest_, step);
    while (changes_done_ < changes_ && step >= change_points_[changes_done_]) {
        ++changes_done_;
        priority_[running] = --lowest_;
    }
    unsigned best = 0;
    for (unsigned i = 1; i < alternatives; ++i) {
        if (priority_[candidates[i]] > priority_[candidates[best]]) {
            best = i;
        }
    }
    return alternatives == 1 ? 0 : record(branch::thread, alternatives, alternatives, best);
}

void chooser::defer(unsigned thread, unsigned percent) {
    if (source_ == source::pct && random() % 100 < percent) {
        priority_[thread] = --lowest_;
    }
}

void chooser::draw_priorities() {
    lowest_ = 0;
    for (auto& each : priority_) {
        each = static_cast<std::int64_t>(random() >> 2U) + 1;
    }
    changes_done_ = 0;
    for (unsigned i = 0; i < changes_; ++i) {
        change_points_[i] = static_cast<unsigned>(random() % longest_) + 1;
    }
    std::sort(change_points_.begin(), change_points_.begin() + changes_);
}

// splitmix64: small, and good enough for drawing priorities.
std::uint64_t chooser::random() {
    random_state_ += 0x9e37'79b9'7f4a'7c15U;
    std::uint64_t mixed = random_state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58'476d'1ce4'e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d0'49bb'1331'11ebU;
    return mixed ^ (mixed >> 31U);
}

}  // namespace rondo::check::detail
