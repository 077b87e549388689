// container.hpp: what the token of a flavour carries: what is left in the container, and what is
// reserved of it for cups that are not paid for yet.
//
// Guarantee      after clamp() no more is left than the ledger has. After top_up() it is just that
//                when nobody has reserved anything. (What is reserved is not subtracted: of what
//                was just paid for it is in both.)
// Put back       is also what may have been paid for, if nobody knows. That is the safe side: what
//                is not there the ledger does not sell, what no token shows nobody can buy.
// Bounds         most_reserved cups; while there is no room, nothing can be taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rondo/cluster/message.hpp"

namespace rondo::shop {

struct reservation {
    cluster::member_run robot;
    std::uint64_t cup = 0;  // a number that the robot has given it
    std::uint32_t grams = 0;

    friend bool operator==(reservation const&, reservation const&) = default;
};

class container {
  public:
    static constexpr std::size_t most_reserved = 16;

    explicit container(std::uint64_t left = 0) noexcept : left_(left) {}
    static std::optional<container> read(std::span<std::byte const> content);
    std::vector<std::byte> write() const;

    std::uint64_t left() const noexcept { return left_; }
    std::uint64_t reserved() const noexcept;

    enum class taken : std::uint8_t { yes, not_enough, no_room };
    taken reserve(reservation const& r, std::size_t most = most_reserved);
    // What becomes of a reservation: what was used does not come back.
    enum class fate : std::uint8_t { kept, used, put_back };
    template <class FateOf>
    void settle(FateOf fate_of) {
        std::erase_if(reserved_, [&](reservation const& r) {
            fate const now = fate_of(r);
            if (now == fate::put_back) left_ += r.grams;
            return now != fate::kept;
        });
    }
    void clamp(std::uint64_t ledger_has) noexcept;
    void top_up(std::uint64_t ledger_has) noexcept;

    friend bool operator==(container const&, container const&) = default;

  private:
    std::uint64_t left_;
    std::vector<reservation> reserved_;
};

}  // namespace rondo::shop
