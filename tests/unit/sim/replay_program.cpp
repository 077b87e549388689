// replay_program <seed> <noise>: runs two programs in worlds and prints their digests.
//
// The noise is memory allocated beforehand: it moves what the program allocates to other addresses.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "crossing.hpp"
#include "outage.hpp"

int main(int argc, char** argv) {
    if (argc != 3) return EXIT_FAILURE;
    std::uint64_t const seed = std::strtoull(argv[1], nullptr, 10);
    std::vector<std::unique_ptr<char[]>> noise(std::strtoull(argv[2], nullptr, 10));
    for (auto& block : noise) block = std::make_unique<char[]>(1000);

    rondo::test::crossing c{{.seed = seed}};
    rondo::test::outage o{seed};
    bool const right = c.run().empty() && o.run().empty();
    std::printf("%016llx%016llx", static_cast<unsigned long long>(c.world().trace_hash()),
                static_cast<unsigned long long>(o.digest()));
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
