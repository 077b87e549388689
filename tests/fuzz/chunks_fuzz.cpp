// A chunked body gives the same data, the same end and the same refusal, however it is cut. The
// first byte says where.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rondo/core/assert.hpp"
#include "rondo/http/body.hpp"

namespace {

namespace http = rondo::http;

struct decoded {
    std::string data;
    std::size_t consumed = 0;
    bool ended = false;
    bool refused = false;
    friend bool operator==(decoded const&, decoded const&) = default;
};

decoded decode(std::string_view text, std::size_t piece) {
    http::limits const most;
    http::chunk_decoder decoder{most};
    decoded d;
    std::size_t have = 0;
    for (;;) {
        auto const step = decoder.next(text.substr(d.consumed, have - d.consumed));
        if (!step) {
            d.refused = true;
            d.consumed = 0;  // where it was noticed may differ
            return d;
        }
        d.data += step->data;
        d.consumed += step->consumed;
        RONDO_ASSERT(d.consumed <= have, "nothing is consumed that is not there");
        if (step->ended) {
            d.ended = true;
            return d;
        }
        if (!step->data.empty()) continue;
        if (have == text.size()) return d;
        have = std::min(have + piece, text.size());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    if (size == 0) return 0;
    std::string_view const text{reinterpret_cast<char const*>(data) + 1, size - 1};
    decoded const at_once = decode(text, size);
    decoded const cut = decode(text, std::size_t{1} + data[0] % 16);
    RONDO_ASSERT(at_once == cut, "how it is cut does not matter");
    return 0;
}
