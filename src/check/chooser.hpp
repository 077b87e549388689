// chooser.hpp: decides at every branch of an execution, and remembers what it decided.
//
// Algorithm      a path is the list of decisions of one execution. Depth first: the next execution
//                repeats the path up to its last decision that has an untried alternative, takes
//                that, and decides 0 from there on. PCT: decisions are random, see chooser.cpp.
//                Replay: the path is given.
// Invariants     I1 every branch with more than one alternative is in the path, also where a bound
//                   allows only the first: so a schedule means the same whatever the bounds.
//                I2 `allowed` alternatives are the first ones: 0 continues without a preemption.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "clock.hpp"
#include "pool.hpp"
#include "rondo/check/explore.hpp"

namespace rondo::check::detail {

enum class branch : std::uint8_t { thread, store, spurious, waiter };

struct decision {
    branch what;
    std::uint8_t alternatives;  // 0: read from a schedule and not met yet
    std::uint8_t allowed;
    std::uint8_t taken;
};

class chooser {
  public:
    // More alternatives than a schedule has letters for are cut off by the caller.
    static constexpr unsigned max_alternatives = 26;
    static constexpr unsigned diverged = ~0U;

    void search(options const& how);
    void repeat(pool<decision> const& path);

    // `path` must stay as it is found by the next execution: call before each.
    void begin_execution();
    // Prepares the next execution; false when there is none.
    bool advance();

    // Returns the alternative to take, or `diverged` if the path does not fit the execution.
    unsigned choose(branch what, unsigned alternatives, unsigned allowed) {
        if (alternatives == 1) {
            return 0;
        }
        if (next_ < path_.size()) {
            return repeat_next(what, alternatives);
        }
        return decide(what, alternatives, allowed);
    }
    unsigned choose_thread(std::span<std::uint8_t const> candidates, unsigned allowed,
                           unsigned running, unsigned step);

    // Told when a thread spins or starts a wait that can time out: PCT should let the others go
    // first, with this probability.
    void defer(unsigned thread, unsigned percent);

    // Whether the execution ended where its schedule does.
    [[nodiscard]] bool consumed() const noexcept { return next_ == path_.size(); }
    [[nodiscard]] pool<decision> const& path() const noexcept { return path_; }

  private:
    enum class source : std::uint8_t { dfs, pct, given };

    unsigned repeat_next(branch what, unsigned alternatives);
    unsigned decide(branch what, unsigned alternatives, unsigned allowed);
    unsigned record(branch what, unsigned alternatives, unsigned allowed, unsigned taken);
    std::uint64_t random();
    void draw_priorities();

    pool<decision> path_;
    std::size_t next_ = 0;
    source source_ = source::dfs;

    // PCT
    std::uint64_t seed_ = 0;
    std::uint64_t execution_ = 0;
    std::uint64_t random_state_ = 0;
    unsigned longest_ = 1;  // steps of the longest execution so far
    unsigned changes_ = 0;
    unsigned changes_done_ = 0;
    std::int64_t lowest_ = 0;
    std::array<unsigned, 16> change_points_{};
    std::array<std::int64_t, max_threads> priority_{};
};

// Schedules as text: "rondo1:w1c1m10000:a12ba3:5bd1e995". Settings that change what the branches
// are; the decisions, 'a' for 0, with counts for repetitions; a hash of all branches.
struct schedule_settings {
    bool spurious_wakeups = true;
    unsigned spurious_failures = 1;
    unsigned max_steps = 0;
};

std::string write_schedule(schedule_settings const& settings, pool<decision> const& path);
// Returns an empty string, or what is wrong with `text`.
std::string read_schedule(std::string const& text, schedule_settings& settings,
                          pool<decision>& path, std::uint32_t& hash);
std::uint32_t hash_of(pool<decision> const& path);

}  // namespace rondo::check::detail
