// seeds.hpp: the seeds that a randomized test tries, or the one that it is asked to replay.
//
//   for (std::uint64_t const seed : rondo::sim::seeds(1000)) {
//       SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
//       ...
//   }
//
// Guarantee      1, 2, ... count: the same in every run, so that a test which passed keeps passing.
//                With RONDO_SEED=n in the process's environment: n and nothing else.
#pragma once

#include <cstdint>
#include <ranges>

namespace rondo::sim {

std::ranges::iota_view<std::uint64_t, std::uint64_t> seeds(std::uint64_t count);

}  // namespace rondo::sim
