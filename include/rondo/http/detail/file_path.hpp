// file_path.hpp: the path of a request, as the name of a file below a root.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace rondo::http::detail {

enum class path_error : std::uint8_t {
    bad_escape,      // '%' without two hexadecimal digits after it
    forbidden_byte,  // an encoded '/', NUL or another control character
    above_root,      // ".." that leads out
};
char const* reason_of(path_error e) noexcept;

struct file_path {
    std::string name;        // relative, without "." and "..", and without a '/' at either end
    bool directory = false;  // it ended with '/', or is the root
};

// Decoded once; a query is left out. Slashes in a row are one. A name that has been checked here
// is still opened with openat2() only: links are not looked at here.
std::expected<file_path, path_error> file_path_of(std::string_view target);

// The path as a target again, beginning with one '/': what may stand in a Location field.
std::string target_of(file_path const& path);

}  // namespace rondo::http::detail
