// A line is an order within its bounds, or is refused with a reason.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rondo/core/assert.hpp"
#include "shop/order.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace rondo::shop;
    auto const read = parse_order({reinterpret_cast<char const*>(data), size});
    if (!read) {
        RONDO_ASSERT(!read.error().empty(), "what is refused has a reason");
        return 0;
    }
    RONDO_ASSERT(!read->items.empty() && read->items.size() <= most_items, "1 to 8 items");
    for (item const& i : read->items) {
        RONDO_ASSERT(i.grams >= 1 && i.grams <= most_grams, "1 to 2000 grams");
        RONDO_ASSERT(i.flavour.size() <= longest_flavour, "a short name");
    }
    return 0;
}
