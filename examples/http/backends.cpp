// Three upstreams, one of which fails for a while: who gets the requests?
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "rondo/http/balance.hpp"

using namespace std::chrono_literals;

namespace {

// [turns]
// `broken` fails; who got the requests is written down, a letter each.
std::string send(rondo::http::balance& backends, int requests, rondo::time_point now,
                 std::size_t broken) {
    std::string served;
    for (int i = 0; i < requests; ++i) {
        auto const turn = backends.next(now);
        served += static_cast<char>('a' + turn.index);
        if (turn.index == broken) {
            backends.failed(turn, now);  // no more turns for a while
        } else {
            backends.succeeded(turn);
        }
    }
    return served;
}
// [/turns]

}  // namespace

int main() {
    constexpr std::size_t nobody = 3;
    rondo::http::balance backends{{2, 1, 1}};
    rondo::time_point const start = rondo::clock::now();

    std::string const well = send(backends, 8, start, nobody);
    std::string const failing = send(backends, 8, start, 0);
    std::string const tried = send(backends, 8, start + 1s, nobody);
    std::printf("all are well:      %s\n", well.c_str());
    std::printf("a fails:           %s\n", failing.c_str());
    std::printf("a is tried again:  %s\n", tried.c_str());

    auto const count = [](std::string const& s) { return std::count(s.begin(), s.end(), 'a'); };
    bool const right = count(well) == 4 && count(failing) == 1 && count(tried) >= 4;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
