#include "rondo/exec/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace rondo {

namespace {

using std::filesystem::path;

// "max 100000" or "150000 100000".
std::optional<double> limit_v2(path const& group) {
    std::ifstream file{group / "cpu.max"};
    double quota = 0;
    double period = 0;
    if (!(file >> quota >> period) || quota <= 0 || period <= 0) return {};
    return quota / period;
}

std::optional<double> limit_v1(path const& group) {
    std::ifstream quota_file{group / "cpu.cfs_quota_us"};
    std::ifstream period_file{group / "cpu.cfs_period_us"};
    double quota = 0;
    double period = 0;
    if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) return {};
    return quota / period;
}

void lower(std::optional<double>& limit, std::optional<double> other) {
    if (other && (!limit || *other < *limit)) limit = other;
}

// Of a group and all those it is in, up to the mount.
template <class Read>
std::optional<double> least(path const& mount, path group, Read read) {
    std::optional<double> limit = read(mount);
    for (; group.has_relative_path(); group = group.parent_path()) {
        lower(limit, read(mount / group.relative_path()));
    }
    return limit;
}

bool names_cpu(std::string const& controllers) {
    std::istringstream list{controllers};
    for (std::string one; std::getline(list, one, ',');) {
        if (one == "cpu") return true;
    }
    return false;
}

std::size_t by_affinity() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        return static_cast<std::size_t>(CPU_COUNT(&set));
    }
    return std::thread::hardware_concurrency();
}

}  // namespace

// Lines of /proc/self/cgroup are "number:controllers:/group"; version 2 has number 0 and names no
// controller. Version 1 is mounted once for each list of controllers.
std::optional<double> cgroup_processors(path const& root) {
    path const mounts = root / "sys/fs/cgroup";
    std::ifstream groups{root / "proc/self/cgroup"};
    std::optional<double> limit;
    for (std::string line; std::getline(groups, line);) {
        auto const first = line.find(':');
        auto const second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        std::string const controllers = line.substr(first + 1, second - first - 1);
        path const group = line.substr(second + 1);
        if (controllers.empty()) {
            lower(limit, least(mounts, group, limit_v2));
            lower(limit, least(mounts / "unified", group, limit_v2));
        } else if (names_cpu(controllers)) {
            lower(limit, least(mounts / controllers, group, limit_v1));
            lower(limit, least(mounts / "cpu", group, limit_v1));
        }
    }
    return limit;
}

std::size_t processors() {
    std::size_t count = std::max<std::size_t>(by_affinity(), 1);
    if (std::optional<double> const limit = cgroup_processors()) {
        count = std::min(count, static_cast<std::size_t>(std::max(std::ceil(*limit), 1.0)));
    }
    return count;
}

}  // namespace rondo
