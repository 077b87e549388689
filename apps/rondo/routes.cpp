#include "routes.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace rondo::gateway {

namespace {

// One byte, taken off the front: it may be escaped.
char take_decoded(std::string_view& rest) {
    char c = rest.front();
    std::size_t taken = 1;
    if (c == '%' && rest.size() >= 3) {
        unsigned char byte = 0;
        auto const [end, error] = std::from_chars(rest.data() + 1, rest.data() + 3, byte, 16);
        if (error == std::errc{} && end == rest.data() + 3) {
            c = static_cast<char>(byte);
            taken = 3;
        }
    }
    rest.remove_prefix(taken);
    return c == '\\' ? '/' : c;
}

}  // namespace

std::string plain_path(std::string_view path) {
    std::string decoded;
    while (!path.empty()) decoded += take_decoded(path);
    std::string plain;
    bool is_folder = true;
    for (std::string_view rest = decoded; !rest.empty();) {
        std::size_t const end = std::min(rest.find('/'), rest.size());
        std::string_view const segment = rest.substr(0, end);
        is_folder = end != rest.size() || segment == "." || segment == "..";
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (segment == "..") {
            plain.resize(std::min(plain.rfind('/'), plain.size()));
        } else if (!segment.empty() && segment != ".") {
            plain.append("/").append(segment);
        }
    }
    if (is_folder) plain += '/';
    return plain;
}

}  // namespace rondo::gateway
