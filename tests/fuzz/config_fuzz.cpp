// Any text as a configuration: it is read, or refused with errors that have their place in it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rondo/config.hpp"

namespace {

void demand(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace rondo::gateway;
    std::string_view const text{reinterpret_cast<char const*>(data), size};
    config_result const loaded = parse(text, "/nonexistent");
    if (!loaded) {
        demand(!loaded.error().empty());
        auto const lines = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
        for (diagnostic const& d : loaded.error()) {
            demand(!d.problem.empty());
            demand(d.at.line >= 1 && d.at.line <= lines + 1);
        }
        return 0;
    }
    demand(!loaded->servers.empty());
    for (server_config const& s : loaded->servers) {
        demand(!s.listen.empty() && !s.routes.empty() && s.max_connections > 0);
        for (route const& r : s.routes) demand(r.uri.starts_with('/'));
    }
    return 0;
}
