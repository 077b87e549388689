// methods.hpp: the methods that are known by name.
#pragma once

#include <string_view>

#include "rondo/http/message.hpp"

namespace rondo::http {

constexpr method method_of(std::string_view verb) noexcept {
    if (verb == "GET") return method::get;
    if (verb == "HEAD") return method::head;
    if (verb == "POST") return method::post;
    if (verb == "PUT") return method::put;
    if (verb == "DELETE") return method::del;
    if (verb == "OPTIONS") return method::options;
    if (verb == "PATCH") return method::patch;
    if (verb == "TRACE") return method::trace;
    return method::other;
}

// Whether a request may be made twice (RFC 9110, 9.2.2).
constexpr bool is_idempotent(method m) noexcept {
    return m != method::post && m != method::patch && m != method::other;
}

}  // namespace rondo::http
