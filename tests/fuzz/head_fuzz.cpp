// What the scan of a head accepts it accepts however it comes; what it gives is inside the block.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rondo/core/assert.hpp"
#include "rondo/http/head.hpp"

namespace {

namespace http = rondo::http;

void check_fields(std::string_view block, http::fields all) {
    for (http::field const& f : all) {
        RONDO_ASSERT(f.name.data() >= block.data() && f.name.data() < block.data() + block.size(),
                     "a name is in the block");
        RONDO_ASSERT(f.value.find_first_of(std::string_view{"\r\n\0", 3}) == f.value.npos,
                     "a value is one line");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text{reinterpret_cast<char const*>(data), size};
    http::limits const most;
    std::array<http::field, 100> table;

    // In one piece and byte by byte, the search finds the same.
    http::head_search at_once;
    auto const found = at_once.look(text, most);
    http::head_search slowly;
    auto step = http::head_search::found::nothing_yet;
    for (std::size_t n = 1; n <= size && step == http::head_search::found::nothing_yet; ++n) {
        step = slowly.look(text.substr(0, n), most);
    }
    RONDO_ASSERT(size == 0 || found == step, "how it is cut does not matter");

    std::string_view block = text;
    if (found == http::head_search::found::complete) {
        RONDO_ASSERT(slowly.length() == at_once.length(), "and neither does the length");
        block = text.substr(at_once.skip(), at_once.length());
    }
    if (auto const head = http::scan_request(block, most, table)) {
        RONDO_ASSERT(block.ends_with("\r\n\r\n"), "what is accepted has an end");
        RONDO_ASSERT(head->path.starts_with('/') || head->path == "*", "a path is one");
        RONDO_ASSERT(head->fields.has("host") || head->minor == 0, "there is a host");
        RONDO_ASSERT(head->framing != http::framing::until_close, "a request has an end");
        check_fields(block, head->fields);
    }
    if (auto const head = http::scan_response(block, most, table, false)) {
        RONDO_ASSERT(head->status >= 100 && head->status <= 999, "a status is one");
        check_fields(block, head->fields);
    }
    if (auto const trailer = http::scan_trailer(block, table)) check_fields(block, *trailer);
    return 0;
}
