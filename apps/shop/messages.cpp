#include "messages.hpp"

#include <charconv>

namespace rondo::shop {

order_id make_order_id(std::uint32_t screen, std::string_view journal, std::uint32_t line) {
    return std::to_string(screen) + "-" + std::string{journal} + "-" + std::to_string(line);
}

std::optional<std::uint32_t> screen_of(std::string_view oid) noexcept {
    std::uint32_t number = 0;
    auto const [end, error] = std::from_chars(oid.data(), oid.data() + oid.size(), number);
    if (error != std::errc{} || end == oid.data() + oid.size() || *end != '-') return std::nullopt;
    return number;
}

bool is_before(std::string_view oid, std::string_view other) noexcept {
    std::size_t const dash = oid.rfind('-');
    if (dash == std::string_view::npos || dash != other.rfind('-')) return false;
    if (oid.substr(0, dash) != other.substr(0, dash)) return false;
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    auto const read = [dash](std::string_view from, std::uint32_t& line) {
        char const* const end = from.data() + from.size();
        return std::from_chars(from.data() + dash + 1, end, line).ec == std::errc{};
    };
    return read(oid, first) && read(other, second) && first < second;
}

namespace detail {

namespace {

using cluster::byte_reader;
using cluster::byte_writer;

constexpr std::int64_t most_taken = 1'000'000'000;

template <class T, class PutOne>
void put_list(byte_writer& to, std::vector<T> const& list, PutOne const& one) {
    to.put_length(list.size());
    for (T const& each : list) one(each);
}

// At most so many. A length is believed only as far as the bytes go.
template <class T, class GetOne>
bool get_list(byte_reader& from, std::vector<T>& list, std::size_t most, GetOne const& one) {
    std::size_t const length = from.get_length();
    if (length > most) return false;
    for (std::size_t i = 0; i < length && from.ok(); ++i) list.push_back(one());
    return from.ok();
}

void put_items(byte_writer& to, std::vector<item> const& items) {
    put_list(to, items, [&](item const& i) { to.put_text(i.flavour).put(i.grams); });
}
bool get_items(byte_reader& from, std::vector<item>& items) {
    bool const read = get_list(from, items, most_items, [&] {
        std::string name = from.get_text(longest_flavour);
        return item{std::move(name), from.get<std::uint32_t>()};
    });
    bool sound = read && !items.empty();
    for (item const& i : items) sound = sound && i.grams >= 1 && i.grams <= most_grams;
    return sound;
}

void put_takes(byte_writer& to, std::vector<cluster::take> const& takes) {
    put_list(to, takes, [&](cluster::take const& t) {
        to.put_text(t.resource).put(static_cast<std::uint64_t>(t.amount));
        to.put(t.generation).put(t.hop);
    });
}
bool get_takes(byte_reader& from, std::vector<cluster::take>& takes) {
    bool sound = get_list(from, takes, most_items, [&] {
        cluster::take t;
        t.resource = from.get_text(longest_flavour);
        t.amount = static_cast<std::int64_t>(from.get<std::uint64_t>());
        t.generation = from.get<std::uint64_t>();
        t.hop = from.get<std::uint64_t>();
        return t;
    });
    for (cluster::take const& t : takes) sound = sound && t.amount >= 1 && t.amount <= most_taken;
    return sound;
}

void put_levels(byte_writer& to, std::vector<level> const& levels) {
    put_list(to, levels, [&](level const& l) { to.put_text(l.flavour).put(l.left); });
}
bool get_levels(byte_reader& from, std::vector<level>& levels) {
    constexpr std::size_t most = 16;
    return get_list(from, levels, most, [&] {
        std::string name = from.get_text(longest_flavour);
        return level{std::move(name), from.get<std::uint64_t>()};
    });
}

}  // namespace

void put(byte_writer& to, proposal const& m) {
    to.put_text(m.oid);
    put_items(to, m.items);
    to.put_text(m.card).put(m.amount);
}
bool get(byte_reader& from, proposal& m) {
    m.oid = from.get_text(longest_oid);
    if (!get_items(from, m.items)) return false;
    m.card = from.get_text(longest_card);
    m.amount = from.get<std::uint32_t>();
    return !m.oid.empty();
}

void put(byte_writer& to, authorised const& m) { to.put(m.authorisation).put(m.expires_ms); }
bool get(byte_reader& from, authorised& m) {
    m.authorisation = from.get<std::uint64_t>();
    m.expires_ms = from.get<std::uint64_t>();
    return true;
}

void put(byte_writer& to, payment const& m) {
    to.put_text(m.oid).put(m.attempt);
    put_takes(to, m.takes);
}
bool get(byte_reader& from, payment& m) {
    m.oid = from.get_text(longest_oid);
    m.attempt = from.get<std::uint64_t>();
    return get_takes(from, m.takes) && !m.oid.empty();
}

void put(byte_writer& to, cancellation const& m) {
    to.put_text(m.oid).put_text(m.reason);
    to.put(static_cast<std::uint8_t>(m.even_if_committed ? 1 : 0));
}
bool get(byte_reader& from, cancellation& m) {
    m.oid = from.get_text(longest_oid);
    m.reason = from.get_text(longest_reason);
    auto const flag = from.get<std::uint8_t>();
    m.even_if_committed = flag == 1;
    return flag <= 1 && !m.oid.empty();
}

void put(byte_writer& to, attempt_at const& m) { to.put_text(m.oid).put(m.attempt); }
bool get(byte_reader& from, attempt_at& m) {
    m.oid = from.get_text(longest_oid);
    m.attempt = from.get<std::uint64_t>();
    return !m.oid.empty();
}

void put(byte_writer& to, ending const& m) {
    to.put(static_cast<std::uint8_t>(m.at)).put_text(m.reason);
}
bool get(byte_reader& from, ending& m) {
    auto const at = from.get<std::uint8_t>();
    m.at = static_cast<cluster::standing>(at);
    m.reason = from.get_text(longest_reason);
    return at <= static_cast<std::uint8_t>(cluster::standing::aborted);
}

void put(byte_writer& to, why const& m) { to.put_text(m.reason); }
bool get(byte_reader& from, why& m) {
    m.reason = from.get_text(longest_reason);
    return true;
}

void put(byte_writer& to, remaining const& m) {
    put_levels(to, m.levels);
    put_list(to, m.unresolved, [&](order_id const& oid) { to.put_text(oid); });
}
bool get(byte_reader& from, remaining& m) {
    return get_levels(from, m.levels) && get_list(from, m.unresolved, most_unresolved,
                                                  [&] { return from.get_text(longest_oid); });
}

void put(byte_writer& to, order_request const& m) {
    to.put_text(m.oid).put(m.attempt);
    put_items(to, m.items);
    put_levels(to, m.levels);
}
bool get(byte_reader& from, order_request& m) {
    m.oid = from.get_text(longest_oid);
    m.attempt = from.get<std::uint64_t>();
    return get_items(from, m.items) && get_levels(from, m.levels) && !m.oid.empty();
}

void put(byte_writer& to, cup const& m) {
    to.put(m.attempt).put(m.robot);
    put_takes(to, m.takes);
}
bool get(byte_reader& from, cup& m) {
    m.attempt = from.get<std::uint64_t>();
    m.robot = from.get<std::uint32_t>();
    return get_takes(from, m.takes);
}

void put(byte_writer& to, levels_known const& m) { put_levels(to, m.levels); }
bool get(byte_reader& from, levels_known& m) { return get_levels(from, m.levels); }

void put(byte_writer& to, presence const& m) {
    to.put(static_cast<std::uint8_t>((m.current ? 1U : 0U) | (m.done ? 2U : 0U)));
    if (m.current) put(to, *m.current);
}
bool get(byte_reader& from, presence& m) {
    auto const flags = from.get<std::uint8_t>();
    m.done = (flags & 2U) != 0;
    if ((flags & 1U) != 0) {
        m.current.emplace();
        if (!get(from, *m.current)) return false;
    }
    return flags <= 3;
}

void put(byte_writer& to, holding const& m) {
    put_list(to, m.held, [&](attempt_at const& a) { put(to, a); });
}
bool get(byte_reader& from, holding& m) {
    return get_list(from, m.held, most_held, [&] {
        attempt_at a;
        get(from, a);
        return a;
    });
}

void put(byte_writer& to, known_epoch const& m) { to.put(m.highest); }
bool get(byte_reader& from, known_epoch& m) {
    m.highest = from.get_epoch();
    return true;
}

}  // namespace detail

}  // namespace rondo::shop
