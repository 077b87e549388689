// A PROXY header is the same when it is read in the steps that it asks for as at once, and no byte
// behind it is asked for.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rondo/core/assert.hpp"
#include "rondo/http/detail/announcement.hpp"

namespace {

using rondo::http::detail::announcement;
using rondo::http::detail::longest_announcement;
using rondo::http::detail::read_announcement;

using state = announcement::state;

// As far as it gets; `have` is what it has asked for.
announcement read_in_steps(std::string_view text, std::size_t& have) {
    for (;;) {
        announcement const step = read_announcement(text.substr(0, have));
        if (step.is != state::incomplete) return step;
        RONDO_ASSERT(step.needed > 0, "it goes on");
        RONDO_ASSERT(have + step.needed <= longest_announcement, "it is not longer than it may be");
        if (have + step.needed > text.size()) return step;
        have += step.needed;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text{reinterpret_cast<char const*>(data), size};
    announcement const at_once = read_announcement(text);
    RONDO_ASSERT(at_once.is != state::complete || at_once.size <= size, "it is there");
    std::size_t have = 0;
    announcement const step = read_in_steps(text, have);
    if (step.is == state::complete) {
        RONDO_ASSERT(have == step.size, "nothing is read but the header");
        RONDO_ASSERT(at_once.is == state::complete && at_once.size == step.size, "the same");
        RONDO_ASSERT(at_once.client == step.client, "the same client");
    } else if (step.is == state::malformed) {
        RONDO_ASSERT(at_once.is == state::malformed, "more bytes do not mend it");
    }
    return 0;
}
