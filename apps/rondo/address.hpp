// address.hpp: where to listen and where to forward to, as written: "10.0.0.1:80", "[::1]:80",
// "backend.local:80". What address a name has: names.hpp.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "diagnostic.hpp"

namespace rondo::gateway {

struct address {
    std::string host;  // without brackets
    std::uint16_t port = 0;
    position at = {};  // where it is written

    friend bool operator==(address const& a, address const& b) noexcept {
        return a.host == b.host && a.port == b.port;
    }
};

// As it would be written: brackets around what has colons.
std::string to_string(address const& a);

// 127.0.0.0/8, ::1 and localhost: nobody from elsewhere can get there.
bool is_of_this_machine(address const& a);

struct address_error {
    std::string problem;
    std::string advice;
};

std::expected<address, address_error> parse_address(std::string_view text);

}  // namespace rondo::gateway
