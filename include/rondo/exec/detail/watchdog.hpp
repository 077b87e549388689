// watchdog.hpp: a thread that looks whether the workers of a team get on with their turns.
//
// It looks twice in the time that a turn may take, so a turn is reported when it has lasted between
// one and one and a half times as long; once. Workers pay nothing for it: they publish which job
// they run anyway, and the task is found by comparing addresses with the tasks that are alive.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "rondo/core/parker.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/exec/detail/team.hpp"

namespace rondo::detail {

class watchdog {
  public:
    // Gets the worker, how long it is held so far, and the task's origin or nothing.
    using report = std::function<void(std::size_t, std::chrono::milliseconds, std::string const&)>;

    // `others` are tasks of the team that are not in its lists.
    watchdog(team const& watched, live_tasks const& others, clock::duration longest, report tell);
    ~watchdog();
    watchdog(watchdog const&) = delete;
    watchdog& operator=(watchdog const&) = delete;

  private:
    // What a worker was seen at.
    struct sighting {
        job const* running = nullptr;
        std::uint64_t turns = 0;
        time_point since{};
        bool reported = false;
    };

    void run() noexcept;
    void look(runner const& r, sighting& last) noexcept;
    std::string origin_of(job const* running) const;

    team const& team_;
    live_tasks const& others_;
    clock::duration const longest_;
    report const report_;
    std::vector<sighting> seen_;
    atomic<bool> ending_{false};
    parker parker_;
    std::thread thread_;  // last: it uses the others
};

}  // namespace rondo::detail
