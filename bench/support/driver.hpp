// driver.hpp: workloads of ours beside the same workloads of other programs.
//
// A workload is a function of ours and the names under which peer programs (bench/peers) have the
// same thing. Peers are programs of their own, since some are in Rust, and so that none is measured
// in a process that another one has warmed up.
//
// Method         ours and the peers take turns, one run of each per round, and the order moves on
//                by one each round. RONDO_BENCH_ROUNDS says how many rounds (9). Each run warms up
//                with a tenth of its operations. What is printed is the median.
// Pinned         the rounds of a workload with threads are repeated, three at most, with the whole
//                process on one processor: what it costs when nothing passes between cores.
//                Co-located     one thread did over nine tenths of the operations: such a run is to
//                be compared with others that are, or with the pinned one.
// Missing        a peer that was not built is reported in one line, with the packages it needs.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace rondo::bench {

// One of the programs in bench/peers, asked for one of its workloads.
struct peer {
    std::string name;     // what it is called in the output: tokio
    std::string program;  // tokio_peer
    std::string workload;
    std::string param;
};

struct workload {
    std::string name;              // spawn_join_mt
    std::function<double()> ours;  // ns per operation; it counts as tally.hpp says
    std::vector<peer> peers;
    bool threads = true;  // false: one thread does everything, and is not counted
};

// The main() of a bench: without arguments all workloads, else those whose names begin with one of
// them. Returns what main() should.
int run(char const* module, int argc, char** argv, std::vector<workload> const& all);

}  // namespace rondo::bench
