// path_readings.hpp: all that a path may be for those who read it.
//
// Servers differ in how they read a path. Some take an escaped slash or a backslash for a slash,
// slashes in a row for one, or follow dot segments, and others do not: /a/x%2F..%2F..%2Fb is below
// /a, or it is /b. What is decided by a path here and done by it elsewhere must be the same in all
// readings, or there is a spelling that gets around the decision.
//
// Readings       every combination of what follows, as far as the path has it:
//                  %2F, a backslash, %5C separate segments, each for itself: nginx takes the first
//                  for a slash, browsers the second, servers on Windows all three;
//                  slashes in a row are one, before dot segments are followed or after it;
//                  "." and ".." are followed, also those that are escaped (%2E) or only the others.
//                Other escapes are decoded in all of them, once. A "%2F" that separates nothing
//                stays as it is, so a slash in a reading always separates.
// Not among them what only some read at all: parameters ("/..;/"), escapes of escapes, authorities
//                ("//host/path").
// Cost           a path without '%', '\', "//" and "/." has one reading, which is itself: nothing
//                is copied. With only ordinary escapes it has one too. Each peculiarity of a path
//                doubles the number, up to 64. After 128 KiB of them the rest is left out: no
//                client that means well sends such a path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::http::detail {

// Of nearly all that clients send it is false.
constexpr bool may_be_read_otherwise(std::string_view path) noexcept {
    char before = '\0';
    for (char const c : path) {
        if (c == '%' || c == '\\' || (before == '/' && (c == '/' || c == '.'))) return true;
        before = c;
    }
    return false;
}

// One after the other; the first is there at once.
class path_readings {
  public:
    // Of a path without its query.
    explicit path_readings(std::string_view path);

    std::string_view now() const noexcept { return now_; }
    // False: there is no other, or those that were there have been too long already.
    bool next();
    // After the last: whether none was left out.
    bool are_all() const noexcept { return understood_ == 0; }

  private:
    // A byte, decoded, and the peculiarity that it is by itself.
    struct letter {
        char byte;
        std::uint8_t is;
    };

    void read(unsigned understood);
    void end_segment(std::size_t begins, bool is_escaped, bool is_last, unsigned understood);

    std::vector<letter> letters_;
    unsigned has_ = 0;         // peculiarities
    unsigned understood_ = 0;  // of these, in the reading that is there now
    std::size_t read_ = 0;     // bytes, in all of them
    std::string now_;
};

// What `f` makes of a path, if that is known to be the same in all of its readings.
template <typename F>
auto in_all_readings(std::string_view path, F const& f) -> std::optional<decltype(f(path))> {
    if (!may_be_read_otherwise(path)) return f(path);
    path_readings readings{path};
    auto first = f(readings.now());
    while (readings.next()) {
        if (f(readings.now()) != first) return std::nullopt;
    }
    if (!readings.are_all()) return std::nullopt;
    return first;
}

}  // namespace rondo::http::detail
