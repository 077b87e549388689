// routes.hpp: which route a path belongs to.
#pragma once

#include <string_view>

namespace rondo::gateway {

// By segment: "/api" has "/api" and "/api/x", not "/apix"; "/api/" has what is below it, not
// "/api" itself. `path` is as the client sent it, without its query; nothing is decoded.
constexpr bool matches(std::string_view uri, std::string_view path) noexcept {
    if (!path.starts_with(uri)) return false;
    return path.size() == uri.size() || uri.ends_with('/') || path[uri.size()] == '/';
}

}  // namespace rondo::gateway
