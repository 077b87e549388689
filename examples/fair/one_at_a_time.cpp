// A printer that does one page at a time, and two who print: one sends a book, the other a letter.
// A permit costs what its job turned out to cost: who prints photographs pays for them.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/executor.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/fair/gate.hpp"

namespace {

using printer = rondo::fair::gate<std::string>;

// [gate]
rondo::task<void> print(printer* at, std::string who, std::uint64_t effort, std::string* order) {
    auto turn = co_await at->acquire(who);
    if (!turn) co_return;     // evicted, too late, closed: turn.error() says it
    co_await rondo::yield();  // prints
    *order += who;
    turn->release(effort);  // what it has come to; 1 was paid
}
// [/gate]

rondo::task<void> office(printer* at, std::string* order) {
    rondo::executor& here = *rondo::executor::current();
    std::vector<rondo::join_handle<void>> jobs;
    for (int page = 0; page < 20; ++page) {
        jobs.push_back(rondo::spawn(here, print(at, "b", 1, order)));  // the book
    }
    for (int photo = 0; photo < 4; ++photo) {
        jobs.push_back(rondo::spawn(here, print(at, "p", 5, order)));
    }
    co_await rondo::yield();
    jobs.push_back(rondo::spawn(here, print(at, "L", 1, order)));  // the letter
    for (auto& job : jobs) (void)co_await job.join();
}

}  // namespace

int main() {
    rondo::fair::gate_config<std::string> config;
    config.max_in_flight = 1;
    config.quantum = 1;
    printer at{std::move(config)};
    std::string order;
    rondo::block_on(office(&at, &order));
    std::printf("in this order: %s\n", order.c_str());
    // The letter did not wait for the book, and a photograph comes after some five pages.
    bool const right = order.size() == 25 && order.find('L') < 6 && order.rfind('p') > 10 &&
                       at.stats().in_flight == 0;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
