#include "container.hpp"

#include <algorithm>

#include "rondo/cluster/bytes.hpp"

namespace rondo::shop {

std::optional<container> container::read(std::span<std::byte const> content) {
    cluster::byte_reader from{content};
    container c{from.get<std::uint64_t>()};
    std::size_t const count = from.get_length();
    if (count > most_reserved) return std::nullopt;
    for (std::size_t i = 0; i < count && from.ok(); ++i) {
        reservation r;
        r.robot = from.get_run();
        r.cup = from.get<std::uint64_t>();
        r.grams = from.get<std::uint32_t>();
        c.reserved_.push_back(r);
    }
    if (!from.complete()) return std::nullopt;
    return c;
}

std::vector<std::byte> container::write() const {
    std::vector<std::byte> content;
    cluster::byte_writer to{content};
    to.put(left_).put_length(reserved_.size());
    for (reservation const& r : reserved_) to.put(r.robot).put(r.cup).put(r.grams);
    return content;
}

std::uint64_t container::reserved() const noexcept {
    std::uint64_t sum = 0;
    for (reservation const& r : reserved_) sum += r.grams;
    return sum;
}

container::taken container::reserve(reservation const& r, std::size_t most) {
    if (r.grams > left_) return taken::not_enough;
    if (reserved_.size() >= std::min(most, most_reserved)) return taken::no_room;
    left_ -= r.grams;
    reserved_.push_back(r);
    return taken::yes;
}

void container::clamp(std::uint64_t ledger_has) noexcept { left_ = std::min(left_, ledger_has); }

void container::top_up(std::uint64_t ledger_has) noexcept {
    if (reserved_.empty()) left_ = ledger_has;
}

}  // namespace rondo::shop
