// routes.hpp: which route a path belongs to.
//
// A path can be spelled in many ways: with escapes, dot segments, slashes in a row. Most backends
// take them for the same, so a route, and the turns that its requests take, must not be got around
// by another spelling: routes are compared with the path in its plain form.
#pragma once

#include <string>
#include <string_view>

namespace rondo::gateway {

// By segment: "/api" has "/api" and "/api/x", not "/apix"; "/api/" has what is below it, not
// "/api" itself. `path` is in its plain form, without a query.
constexpr bool matches(std::string_view uri, std::string_view path) noexcept {
    if (!path.starts_with(uri)) return false;
    return path.size() == uri.size() || uri.ends_with('/') || path[uri.size()] == '/';
}

// Whether it may be another spelling of a path; of nearly all that clients send it is not.
constexpr bool may_be_spelled_otherwise(std::string_view path) noexcept {
    char before = '\0';
    for (char const c : path) {
        if (c == '%' || c == '\\' || (before == '/' && (c == '/' || c == '.'))) return true;
        before = c;
    }
    return false;
}

// What it is for who decodes its escapes, once, takes a backslash for a slash and slashes in a row
// for one, and follows dot segments.
std::string plain_path(std::string_view path);

}  // namespace rondo::gateway
