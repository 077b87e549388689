// routes.hpp: which route a path belongs to.
//
// A path can be spelled in many ways, and backends do not agree on what is the same: for some
// /slow/../free is /free, for others it is below /slow. It goes on as it was spelled, so a route,
// and the turns that its requests take, could be got around by a spelling that we read in one way
// and the backend in another. Hence a path has a route only if it is the same in all readings.
#pragma once

#include <cstddef>
#include <optional>
#include <ranges>
#include <string_view>

#include "rondo/http/detail/path_readings.hpp"

namespace rondo::gateway {

// By segment: "/api" has "/api" and "/api/x", not "/apix"; "/api/" has what is below it, not
// "/api" itself. `path` is one reading, without a query.
constexpr bool matches(std::string_view uri, std::string_view path) noexcept {
    if (!path.starts_with(uri)) return false;
    return path.size() == uri.size() || uri.ends_with('/') || path[uri.size()] == '/';
}

// The first of the routes that matches, as its index; their number if there is none. Nothing if it
// depends on how the path is read. Does not allocate for a path that can be read in one way only.
template <std::ranges::random_access_range Routes>
std::optional<std::size_t> route_of(std::string_view path, Routes const& all) {
    return http::detail::in_all_readings(path, [&all](std::string_view read) {
        std::size_t i = 0;
        while (i < all.size() && !matches(all[i].uri, read)) ++i;
        return i;
    });
}

}  // namespace rondo::gateway
