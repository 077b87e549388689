#include "rondo/http/detail/file_path.hpp"

#include <optional>

namespace rondo::http::detail {

namespace {

std::optional<unsigned> hexadecimal(char c) {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
    return std::nullopt;
}

bool is_control(char c) {
    auto const byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
}

// One segment of the path, decoded to the end of `out`.
std::expected<void, path_error> decode(std::string_view segment, std::string& out) {
    for (std::size_t i = 0; i < segment.size(); ++i) {
        char c = segment[i];
        if (c == '%') {
            if (i + 2 >= segment.size()) return std::unexpected{path_error::bad_escape};
            auto const high = hexadecimal(segment[i + 1]);
            auto const low = hexadecimal(segment[i + 2]);
            if (!high || !low) return std::unexpected{path_error::bad_escape};
            c = static_cast<char>(*high * 16 + *low);
            if (c == '/') return std::unexpected{path_error::forbidden_byte};
            i += 2;
        }
        if (is_control(c)) return std::unexpected{path_error::forbidden_byte};
        out += c;
    }
    return {};
}

// What RFC 3986 lets stand in a path as it is, but for '%'.
bool stands_for_itself(char c) {
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
    return std::string_view{"-._~!$&'()*+,;=:@/"}.find(c) != std::string_view::npos;
}

}  // namespace

char const* reason_of(path_error e) noexcept {
    switch (e) {
        case path_error::bad_escape:
            return "the path has a '%' without two hexadecimal digits";
        case path_error::forbidden_byte:
            return "the path has an encoded slash or a control character";
        case path_error::above_root:
            return "the path leads out of the root";
    }
    return "";
}

std::expected<file_path, path_error> file_path_of(std::string_view target) {
    std::string_view rest = target.substr(0, target.find('?'));
    file_path path;
    path.name.reserve(rest.size());
    path.directory = true;
    while (!rest.empty()) {
        std::size_t const slash = rest.find('/');
        std::string_view const segment = rest.substr(0, slash);
        rest = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
        if (segment.empty()) continue;  // before the first slash, or between two

        std::size_t const begins = path.name.size();
        if (begins != 0) path.name += '/';
        std::size_t const at = path.name.size();
        auto const decoded = decode(segment, path.name);
        if (!decoded) return std::unexpected{decoded.error()};

        std::string_view const name = std::string_view{path.name}.substr(at);
        path.directory = slash != std::string_view::npos || name == "." || name == "..";
        if (name == ".") {
            path.name.resize(begins);
        } else if (name == "..") {
            if (begins == 0) return std::unexpected{path_error::above_root};
            std::size_t const parent = path.name.rfind('/', begins - 1);
            path.name.resize(parent == std::string::npos ? 0 : parent);
        }
    }
    if (path.name.empty()) path.directory = true;
    return path;
}

std::string target_of(file_path const& path) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string target = "/";
    for (char const c : path.name) {
        if (stands_for_itself(c)) {
            target += c;
            continue;
        }
        auto const byte = static_cast<unsigned char>(c);
        target += '%';
        target += digits[byte / 16];
        target += digits[byte % 16];
    }
    if (path.directory && !path.name.empty()) target += '/';
    return target;
}

}  // namespace rondo::http::detail
