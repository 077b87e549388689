#include "view.hpp"

#include <array>
#include <cstdint>
#include <utility>

namespace rondo::shop {

std::vector<queue_view> queues_of(cluster::peer const& p) {
    cluster::peer_options const& bounds = p.options();
    return {{"requests that are served", p.being_served(), bounds.served_at_once},
            {"answers that are kept", p.remembered(), bounds.remembered}};
}

std::string to_text(cluster::peer_counts const& c) {
    auto const refused = [&c](cluster::refusal r) {
        return c.refused[static_cast<std::size_t>(r)];
    };
    using enum cluster::refusal;
    static_assert(cluster::refusals == 5);
    std::array<std::pair<std::uint64_t, char const*>, 9> const dropped{{
        {refused(wrong_size), "of a wrong size"},
        {refused(not_ours), "of something else"},
        {refused(other_cluster), "of another cluster"},
        {refused(not_signed), "not signed with our key"},
        {refused(wrong_length), "of a wrong length"},
        {c.for_another, "for another member"},
        {c.unasked, "that answer nothing"},
        {c.forged, "in the name of another"},
        {c.overloaded, "too many at once"},
    }};
    std::uint64_t all = 0;
    std::string reasons;
    for (auto const& [count, reason] : dropped) {
        all += count;
        if (count == 0) continue;
        reasons += (reasons.empty() ? " (" : ", ") + std::to_string(count) + " " + reason;
    }
    if (!reasons.empty()) reasons += ")";
    return std::to_string(c.served) + " requests served, " + std::to_string(c.repeated) +
           " repeated, " + std::to_string(c.sent_again) + " sent again; " + std::to_string(all) +
           " datagrams dropped" + reasons;
}

}  // namespace rondo::shop
