// What admission costs when there is room: the same requests through a gateway with [admission] and
// one without, to an upstream that answers at once.
//
// Both gateways run all the time; 32 clients ask one of them, then the other, for a tenth of a
// second each, RONDO_BENCH_ROUNDS (100) times, and who begins changes: a slow moment of the machine
// falls on both alike.
//
//   admission on=../s off=../s ratio=0.99 quartiles=0.98..1.01
//
// The ratio is the median of those of the rounds.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "events.hpp"
#include "load.hpp"
#include "sides.hpp"
#include "support/child_process.hpp"
#include "upstream.hpp"

namespace {

using namespace rondo::bench;

constexpr double of_a_turn = 0.1;  // seconds
constexpr std::size_t clients = 32;

std::string const server =
    "[[server]]\nlisten = '127.0.0.1:%p'\nmax_connections = 9000\nforward = '127.0.0.1:%u'\n";
std::string const admission =
    "[admission]\nmax_in_flight = 1024\n"
    "[tenants]\nkey = ['header:x-tenant']\ntrusted = ['127.0.0.1']\n";

double rate(side const& at) {
    return static_cast<double>(saturate(at.port(), clients, of_a_turn)) / of_a_turn;
}

double quantile(std::vector<double>& of, double q) {
    std::ranges::sort(of);
    return of[static_cast<std::size_t>(q * static_cast<double>(of.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view{argv[1]} == "upstream") {
        serve_upstream(static_cast<std::uint16_t>(std::atoi(argv[2])), {1, {}});
    }
    char const* const set = std::getenv("RONDO_BENCH_ROUNDS");
    int const rounds = set != nullptr ? std::max(std::atoi(set), 1) : 100;
    allow_many_files();
    std::uint16_t const port = free_port();
    rondo::test::child_process const upstream{{"/proc/self/exe", "upstream", std::to_string(port)}};
    if (!listens(port)) return EXIT_FAILURE;
    auto const with =
        side::start_rondo("on", "[gateway]\nlog = 'warn'\n" + admission + server, port);
    auto const without = side::start_rondo("off", "[gateway]\nlog = 'warn'\n" + server, port);
    if (with == nullptr || without == nullptr) return EXIT_FAILURE;
    std::vector<double> on;
    std::vector<double> off;
    std::vector<double> ratios;
    for (int round = 0; round <= rounds; ++round) {
        double const first = rate(round % 2 == 0 ? *with : *without);
        double const second = rate(round % 2 == 0 ? *without : *with);
        if (round == 0) continue;  // warms up
        on.push_back(round % 2 == 0 ? first : second);
        off.push_back(round % 2 == 0 ? second : first);
        ratios.push_back(on.back() / off.back());
    }
    std::printf("admission on=%.0f/s off=%.0f/s ratio=%.3f quartiles=%.3f..%.3f\n",
                quantile(on, 0.5), quantile(off, 0.5), quantile(ratios, 0.5),
                quantile(ratios, 0.25), quantile(ratios, 0.75));
    return EXIT_SUCCESS;
}
