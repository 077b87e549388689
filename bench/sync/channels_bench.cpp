// Messages between tasks, beside Tokio and, where it has the like, Boost.Asio's channels.
//
// ping_pong_oneshot          two channels are made and a task is spawned that answers, each time
// oneshot_create_send_recv   in one task
// mpsc_bounded_spsc          one sender, room for 1024; _mpsc: four senders; _cap1: room for one
// mpsc_unbounded_spsc        one sender; _mpsc: four
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "../support/driver.hpp"
#include "../support/tasks.hpp"
#include "rondo/sync/mpsc.hpp"
#include "rondo/sync/oneshot.hpp"

namespace {

using namespace rondo::bench;
using rondo::environment;
using rondo::join_handle;
using rondo::task;
namespace mpsc = rondo::mpsc;
namespace oneshot = rondo::oneshot;

// --- oneshot ---

task<void> answers(oneshot::receiver<int> asked, oneshot::sender<int> answer) {
    auto const question = co_await asked.recv();
    count();
    (void)answer.send(*question);
}

task<duration> ping_pong_oneshot(std::size_t n) {
    environment const& env = co_await rondo::this_environment();
    stopwatch const watch;
    for (std::size_t i = 0; i < n; ++i) {
        auto [ask, asked] = oneshot::channel<int>();
        auto [answer, answered] = oneshot::channel<int>();
        spawn_here(env, answers(std::move(asked), std::move(answer))).detach();
        (void)ask.send(1);
        (void)co_await answered.recv();
        count();
    }
    co_return watch.elapsed();
}

task<duration> oneshot_in_one_task(std::size_t n) {
    std::uint64_t sum = 0;
    stopwatch const watch;
    for (std::size_t i = 0; i < n; ++i) {
        auto [sender, receiver] = oneshot::channel<std::uint64_t>();
        (void)sender.send(i);
        auto const received = co_await receiver.recv();
        sum += *received;
    }
    asm volatile("" ::"r"(sum));
    co_return watch.elapsed();
}

// --- mpsc ---

template <class Receiver>
task<void> receives(Receiver receiver, std::size_t expected) {
    std::uint64_t sum = 0;
    std::size_t received = 0;
    for (;;) {
        auto const value = co_await receiver.recv();
        if (!value) break;
        sum += *value;
        ++received;
        count();
    }
    asm volatile("" ::"r"(sum));
    RONDO_ASSERT(received == expected, "every message arrives once");
}

task<void> sends(mpsc::unbounded_sender<std::uint64_t> sender, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        (void)sender.send(i);
        count();
    }
    co_return;
}

// Starts the consumer, then the producers, each with a sender of its own, and waits for the
// consumer.
template <class Ends>
task<duration> pass(Ends ends, std::size_t producers, std::size_t n) {
    environment const& env = co_await rondo::this_environment();
    std::size_t const each = n / producers;
    stopwatch const watch;
    auto consumer = spawn_here(env, receives(std::move(ends.receiver), each * producers));
    for (std::size_t i = 1; i < producers; ++i) {
        spawn_here(env, sends(ends.sender, each)).detach();
    }
    spawn_here(env, sends(std::move(ends.sender), each)).detach();
    (void)co_await consumer.join();
    co_return watch.elapsed();
}

task<duration> unbounded_spsc(std::size_t n) {
    return pass(mpsc::unbounded<std::uint64_t>(), 1, n);
}
task<duration> unbounded_mpsc(std::size_t n) {
    return pass(mpsc::unbounded<std::uint64_t>(), 4, n);
}

}  // namespace

int main(int argc, char** argv) {
    using enum place;
    std::vector<workload> const all{
        on(mt, "ping_pong_oneshot", 200'000, ping_pong_oneshot),
        on(ct, "ping_pong_oneshot", 200'000, ping_pong_oneshot),
        on(ct, "oneshot_create_send_recv", 2'000'000, oneshot_in_one_task),
        on(mt, "mpsc_unbounded_spsc", 1'000'000, unbounded_spsc),
        on(ct, "mpsc_unbounded_spsc", 1'000'000, unbounded_spsc),
        on(mt, "mpsc_unbounded_mpsc", 1'000'000, unbounded_mpsc),
    };
    return run("sync", argc, argv, all);
}
