// Messages between tasks, beside Tokio and, where it has the like, Boost.Asio's channels.
//
// ping_pong_oneshot          two channels are made and a task is spawned that answers, each time
// oneshot_create_send_recv   in one task
// mpsc_bounded_spsc          one sender, room for 1024; _mpsc: four senders; _cap1: room for one
// mpsc_unbounded_spsc        one sender; _mpsc: four
// broadcast                  one sender, four receivers, room for 1024; nobody falls behind: a
//                            receiver gives a permit back after each 512 messages, and the sender
//                            takes one of each before it sends 512. Per message sent.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../support/driver.hpp"
#include "../support/tasks.hpp"
#include "rondo/sync/broadcast.hpp"
#include "rondo/sync/mpsc.hpp"
#include "rondo/sync/oneshot.hpp"
#include "rondo/sync/semaphore.hpp"

namespace {

using namespace rondo::bench;
using rondo::environment;
using rondo::join_handle;
using rondo::task;
namespace broadcast = rondo::broadcast;
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

task<void> sends(mpsc::sender<std::uint64_t> sender, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        (void)co_await sender.send(i);
        count();
    }
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

template <std::size_t Producers, std::size_t Capacity>
task<duration> bounded(std::size_t n) {
    return pass(mpsc::channel<std::uint64_t>(Capacity), Producers, n);
}
task<duration> unbounded_spsc(std::size_t n) {
    return pass(mpsc::unbounded<std::uint64_t>(), 1, n);
}
task<duration> unbounded_mpsc(std::size_t n) {
    return pass(mpsc::unbounded<std::uint64_t>(), 4, n);
}

// --- broadcast ---

constexpr std::size_t listeners = 4;
constexpr std::size_t batch = 512;

task<void> listens(broadcast::receiver<std::uint64_t> receiver, rondo::semaphore& room,
                   std::size_t expected) {
    std::uint64_t sum = 0;
    std::size_t received = 0;
    for (;;) {
        auto const value = co_await receiver.recv();
        if (!value) break;
        sum += *value;
        count();
        if (++received % batch == 0) room.add_permits(1);
    }
    asm volatile("" ::"r"(sum));
    RONDO_ASSERT(received == expected, "nobody falls behind");
}

task<void> announces(broadcast::sender<std::uint64_t> sender, rondo::semaphore& room,
                     std::size_t n) {
    for (std::size_t sent = 0; sent < n;) {
        auto taken = co_await room.acquire(listeners);
        taken->forget();
        for (std::size_t const end = sent + batch; sent < end; ++sent) {
            (void)sender.send(sent);
            count();
        }
    }
}

task<duration> one_to_four(std::size_t n) {
    environment const& env = co_await rondo::this_environment();
    std::size_t const whole_batches = n / batch * batch;
    rondo::semaphore room{listeners};
    broadcast::sender<std::uint64_t> sender{2 * batch};
    std::vector<join_handle<void>> receivers;
    for (std::size_t i = 0; i < listeners; ++i) {
        receivers.push_back(spawn_here(env, listens(sender.subscribe(), room, whole_batches)));
    }
    stopwatch const watch;
    auto sending = spawn_here(env, announces(std::move(sender), room, whole_batches));
    (void)co_await sending.join();
    co_await join_all(receivers);
    co_return watch.elapsed();
}

peer asio_channel(std::string const& workload, std::string const& param) {
    return {"asio_channel", "asio_peer", workload, param};
}

}  // namespace

int main(int argc, char** argv) {
    using enum place;
    std::vector<workload> const all{
        on(mt, "ping_pong_oneshot", 200'000, ping_pong_oneshot),
        on(ct, "ping_pong_oneshot", 200'000, ping_pong_oneshot),
        on(ct, "oneshot_create_send_recv", 2'000'000, oneshot_in_one_task),
        on(mt, "mpsc_bounded_spsc", 1'000'000, bounded<1, 1024>,
           {asio_channel("mpsc_bounded_spsc", "mt")}),
        on(ct, "mpsc_bounded_spsc", 1'000'000, bounded<1, 1024>,
           {asio_channel("mpsc_bounded_spsc", "ct")}),
        on(mt, "mpsc_bounded_mpsc", 1'000'000, bounded<4, 1024>),
        on(mt, "mpsc_bounded_cap1", 300'000, bounded<1, 1>,
           {asio_channel("mpsc_bounded_cap1", "mt")}),
        on(ct, "mpsc_bounded_cap1", 300'000, bounded<1, 1>,
           {asio_channel("mpsc_bounded_cap1", "ct")}),
        on(mt, "mpsc_unbounded_spsc", 1'000'000, unbounded_spsc),
        on(ct, "mpsc_unbounded_spsc", 1'000'000, unbounded_spsc),
        on(mt, "mpsc_unbounded_mpsc", 1'000'000, unbounded_mpsc),
        on(mt, "broadcast", 204'800, one_to_four),
    };
    return run("sync", argc, argv, all);
}
