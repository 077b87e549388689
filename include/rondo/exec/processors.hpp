// processors.hpp: how many processors this process may use.
//
// The least of: the machine's, the process's affinity, and the CPU limits of the control groups it
// is in (version 2 or 1, all levels), rounded up to whole processors; at least 1. A container that
// may use two of 64 processors should have two workers, not 64.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

namespace rondo {

std::size_t processors();

// The limit of the control groups alone, read below another root than "/" (a test's); nothing if
// there is none. What cannot be read or makes no sense is no limit.
std::optional<double> cgroup_processors(std::filesystem::path const& root = "/");

}  // namespace rondo
