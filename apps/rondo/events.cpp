#include "events.hpp"

#include <optional>
#include <utility>

namespace rondo::gateway {

namespace {

// What follows the colon, and one space, if the line is of this field.
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") return std::nullopt;
    line.remove_prefix(name.size() + 1);
    if (line.starts_with(' ')) line.remove_prefix(1);
    return line;
}

}  // namespace

bool event_reader::take(std::string_view piece) {
    for (;;) {
        std::size_t const end = piece.find('\n');
        line_ += piece.substr(0, end);
        if (end == std::string_view::npos) return true;
        piece.remove_prefix(end + 1);
        if (!end_line()) return false;
    }
}

bool event_reader::end_line() {
    if (line_.ends_with('\r')) line_.pop_back();
    if (line_.empty()) {
        std::string const name = std::exchange(name_, {});
        std::string const data = std::exchange(data_, {});
        return data.empty() || take_(name, data);
    }
    if (auto const name = value_of(line_, "event")) name_ = *name;
    if (auto const data = value_of(line_, "data")) {
        if (!data_.empty()) data_ += '\n';
        data_ += *data;
    }
    line_.clear();
    return true;
}

}  // namespace rondo::gateway
