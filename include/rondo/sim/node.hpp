// node.hpp: one simulated machine: what runs on it, its sockets and its disk; it can lose power.
//
//   task<void> serve(sim::node* self) { ... }             // or any function of a datagram_network
//   sim::node server{w, net, 1, serve};
//   server.start();
//   w.run_for(10s);
//   server.crash();                                       // memory is gone, the disk as it was
//   server.start();                                       // the program again, from its beginning
//
// A node is an executor with timers and a datagram_network: the environment of the program that
// runs on it. Everything it does to the world goes through these and through its disk.
//
// Crash          1. the node is fenced: its jobs and timers do not run any more, what it sends goes
//                nowhere, what arrives for it is not heard, its disk accepts nothing and forgets
//                what was not synced. 2. the frames of its tasks are destroyed, those of the newest
//                task first. Destructors run, with no effect on the world; nothing else does: no
//                stop is asked for, no shielded clean-up goes on. Who joins a task from elsewhere
//                learns that it was stopped.
//                A node that crashes in a turn of its own (a failed sync ends the process) runs on
//                to the end of that turn, fenced.
// Pause          as when a process is stopped with a signal: nothing runs, datagrams pile up in its
//                sockets until they are full, and after resume() every timer is late.
// Structure      a task may refer to what an older task holds, as it is destroyed before it. What
//                is to vanish in a crash lives in the frames of the program's tasks.
// Foreign        coroutines that wait on a node which crashes are not resumed; their owner destroys
//                them.
// Lifetime       after the world and the network, and gone before them; destruction is a crash.
// Thread safety  none, as of the world.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "rondo/core/datagram.hpp"
#include "rondo/core/executor.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/sim/disk.hpp"
#include "rondo/sim/network.hpp"
#include "rondo/sim/random.hpp"
#include "rondo/sim/world.hpp"

namespace rondo::sim {

class node final : public executor, public datagram_network, timer_service {
  public:
    using program = std::function<task<void>(node*)>;

    // The program begins with start(), and again with each further one.
    node(sim::world& w, network& net, host address, program p, disk_options d = {});
    ~node();
    node(node const&) = delete;
    node& operator=(node const&) = delete;

    void start();
    void crash();
    void pause();
    void resume();
    // A crash in the middle of what the node does to its disk, in the turn in which that happens;
    // see disk::fail_after().
    void crash_in_write(std::uint64_t operations) { disk_.fail_after(operations); }

    bool is_up() const noexcept { return state_ != state::off; }
    bool is_paused() const noexcept { return state_ == state::paused; }
    // How often it was started.
    std::uint64_t starts() const noexcept { return starts_; }
    host address() const noexcept { return address_; }

    // Starts a task on the node, which is up: see rondo::spawn.
    template <class T>
    join_handle<T> spawn(task<T> t) {
        return rondo::spawn(*this, std::move(t));
    }

    // For the program; another sequence after each start.
    random_source& random() noexcept { return random_; }
    sim::disk& disk() noexcept { return disk_; }
    sim::world& world() noexcept { return world_; }

    time_point now() const noexcept override { return world_.now(); }
    void post(job& j) noexcept override;
    timer_service& timers() noexcept override { return *this; }
    void unobserved(std::exception_ptr exception) noexcept override;

  private:
    friend sim::world;

    enum class state : std::uint8_t { off, running, paused };

    bound open(endpoint local, datagram_options chosen) override;
    void add(timer& t, time_point deadline) noexcept override;
    bool cancel(timer& t) noexcept override;
    void began(live_task& t) noexcept override;
    void ended(live_task& t) noexcept override { rondo::live_tasks::remove(t); }
    void fence();
    void abandon() noexcept;

    sim::world& world_;
    network& network_;
    host const address_;
    program const program_;
    random_source seeds_;
    random_source random_;
    sim::disk disk_;
    state state_ = state::off;
    std::uint64_t starts_ = 0;
    std::unique_ptr<detail::place> place_;  // a new one for each start
    std::vector<job*> held_;                // while it is paused
};

}  // namespace rondo::sim
