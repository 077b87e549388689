// Any target: what is accepted stays below the root, and comes back as it is from a Location.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rondo/http/detail/file_path.hpp"

namespace {

void demand(bool holds) {
    if (!holds) std::abort();
}

void check(rondo::http::detail::file_path const& path) {
    std::string_view rest = path.name;
    demand(!rest.starts_with('/') && !rest.ends_with('/'));
    demand(!rest.empty() || path.directory);
    while (!rest.empty()) {
        std::size_t const slash = rest.find('/');
        std::string_view const segment = rest.substr(0, slash);
        demand(!segment.empty() && segment != "." && segment != "..");
        for (char const c : segment) demand(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
        if (slash == std::string_view::npos) break;
        rest.remove_prefix(slash + 1);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace rondo::http::detail;
    std::string_view const target{reinterpret_cast<char const*>(data), size};
    auto const path = file_path_of(target);
    if (!path) return 0;
    check(*path);
    std::string const location = target_of(*path);
    demand(location.starts_with('/') && !location.starts_with("//"));
    auto const again = file_path_of(location);
    demand(again && again->name == path->name && again->directory == path->directory);
    return 0;
}
