#include "rondo/core/assert.hpp"

#include <cstdio>
#include <cstdlib>

#ifdef RONDO_CHECKED
#include <string>

#include "rondo/check/explore.hpp"
#endif

namespace rondo::detail {

void assertion_failed(char const* what, char const* expression, char const* file,
                      int line) noexcept {
#ifdef RONDO_CHECKED
    if (check::running()) {
        check::fail(std::string{what} + " (" + expression + ") at " + file + ":" +
                    std::to_string(line));
    }
#endif
    std::fprintf(stderr, "rondo: %s: assertion `%s` failed at %s:%d\n", what, expression, file,
                 line);
    std::fflush(stderr);
    std::abort();
}

}  // namespace rondo::detail
