// mime.hpp: the media type of a file, by the end of its name.
#pragma once

#include <string_view>

namespace rondo::http::detail {

// "application/octet-stream" for what is not known. Text is said to be UTF-8.
std::string_view media_type_of(std::string_view file_name) noexcept;

}  // namespace rondo::http::detail
