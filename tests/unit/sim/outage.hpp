// outage.hpp: a small service under every fault there is; its digest tells one run from another.
//
// Clients send numbers to a server until it has acknowledged them; the server writes each to its
// disk and syncs before it answers. The network loses, doubles and delays; nodes crash, also in the
// middle of a write, and are paused.
#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "echo.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/node.hpp"

namespace rondo::test {

class outage {
  public:
    explicit outage(std::uint64_t seed) : world_({.seed = seed}) {}

    // Empty if all went well, else what did not.
    std::string run() {
        using namespace std::chrono_literals;
        server_.start();
        one_.start();
        two_.start();
        for (int i = 0; i < 20; ++i) {
            if (world_.run_for(world_.random().between(0ms, 300ms)) == sim::outcome::out_of_turns) {
                return "out of turns";
            }
            disturb();
        }
        net_.set({});
        server_.crash_in_write(0);
        net_.heal();
        for (sim::node* n : {&server_, &one_, &two_}) {
            n->resume();
            if (!n->is_up()) n->start();
        }
        if (world_.run_for(60s) == sim::outcome::out_of_turns) return "out of turns";
        for (int const number : acknowledged_) {
            if (!on_disk().contains(number)) return "an acknowledged number is not on the disk";
        }
        return acknowledged_.size() < 20 ? "a client has not finished" : "";
    }

    std::uint64_t digest() {
        std::uint64_t d = world_.trace_hash();
        sim::network_counts const& n = net_.counts();
        sim::disk_counts const& k = server_.disk().counts();
        for (std::uint64_t const word :
             {n.sent, n.lost, n.doubled, n.arrived, n.overtaken, n.unheard, k.writes, k.syncs,
              k.sectors_lost, k.power_failures}) {
            d = sim::random_source::scramble(d + word);
        }
        return d;
    }
    std::size_t acknowledged() const noexcept { return acknowledged_.size(); }
    std::uint64_t crashes() const noexcept { return server_.starts() - 1; }

  private:
    static constexpr std::size_t record = 8;

    void disturb() {
        sim::node* const all[] = {&server_, &one_, &two_};
        sim::node& victim = *world_.random().pick(all);
        switch (world_.random().below(6)) {
            case 0:
                victim.crash();
                break;
            case 1:
                server_.crash_in_write(1 + world_.random().below(5));
                break;
            case 2:
                victim.pause();
                break;
            case 3:
                net_.cut(victim.address(), 1);
                break;
            default:
                net_.heal();
                for (sim::node* n : all) {
                    n->resume();
                    if (!n->is_up()) n->start();
                }
        }
    }

    std::set<int> on_disk() {
        std::set<int> found;
        sim::disk::file const f = server_.disk().open("log", sim::disk::make::yes).value();
        std::vector<std::byte> bytes(f.size().value());
        (void)f.read(0, bytes);
        std::string const text{reinterpret_cast<char const*>(bytes.data()), bytes.size()};
        for (std::size_t at = 0; at + record <= text.size(); at += record) {
            int number = 0;
            char const* const begin = text.data() + at;
            auto const [end, error] = std::from_chars(begin, begin + record, number);
            if (error == std::errc{} && *end == '\n') found.insert(number);
        }
        return found;
    }

    task<void> serve(sim::node* self) {
        std::unique_ptr<datagram_socket> const s = self->bind({0, 7}).value();
        std::set<int> known = on_disk();
        for (;;) {
            auto d = co_await s->receive();
            int const number = std::stoi(to_string(*d));
            if (!known.contains(number) && !append(self, number)) continue;
            known.insert(number);
            s->send_to(d->from, d->bytes);
        }
    }
    // At the end, in a whole record; what a crash has left of one is written over.
    static bool append(sim::node* self, int number) {
        auto const f = self->disk().open("log", sim::disk::make::yes);
        if (!f) return false;
        std::uint64_t const end = f->size().value() / record * record;
        std::string line = std::to_string(number) + "\n";
        line.resize(record);
        return f->write(end, to_bytes(line)) && f->sync();
    }

    task<void> ask(sim::node* self, int first) {
        using namespace std::chrono_literals;
        std::unique_ptr<datagram_socket> const s = self->bind({0, 0}).value();
        for (int number = first; number < first + 10;) {
            s->send_to({1, 7}, to_bytes(std::to_string(number)));
            clock::duration const patience = self->random().between(20ms, 200ms);
            auto const answer = co_await s->receive_for(patience);
            if (!answer || to_string(*answer) != std::to_string(number)) continue;
            acknowledged_.insert(number);
            ++number;
        }
    }

    sim::world world_;
    sim::network net_{world_,
                      {.most_delay = std::chrono::milliseconds{20},
                       .loss = 0.2,
                       .duplication = 0.1,
                       .straggling = 0.1}};
    std::set<int> acknowledged_;
    sim::node server_{world_, net_, 1, [this](sim::node* n) { return serve(n); }};
    sim::node one_{world_, net_, 2, [this](sim::node* n) { return ask(n, 100); }};
    sim::node two_{world_, net_, 3, [this](sim::node* n) { return ask(n, 200); }};
};

}  // namespace rondo::test
