// robots.hpp: members of a token ring in the simulator, and what always has to hold for them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rondo/cluster/bytes.hpp"
#include "rondo/cluster/token_ring.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/node.hpp"

namespace rondo::cluster::test {

using namespace std::chrono_literals;

inline endpoint at(member_id id) { return {id, 7}; }

inline std::vector<std::byte> to_bytes(std::uint64_t number) {
    std::vector<std::byte> bytes;
    byte_writer{bytes}.put(number);
    return bytes;
}
inline std::uint64_t to_number(std::vector<std::byte> const& bytes) {
    return byte_reader{bytes}.get<std::uint64_t>();
}

struct settings {
    std::vector<std::string> names{"lemon", "mint"};
    ring_options ring{.linger = 20ms};
    bool works = true;  // robots take tokens all the time
    clock::duration scooping = 5ms;
};

// One member: it takes every token in turn and adds one to it.
class robot {
  public:
    robot(sim::world& w, sim::network& net, member_id id, std::vector<address> all,
          settings const& chosen)
        : id_(id),
          all_(std::move(all)),
          settings_(chosen),
          node_(w, net, id, [this](sim::node* n) { return live(n); }) {}

    sim::node& node() { return node_; }
    token_ring* now() { return node_.is_up() ? ring_ : nullptr; }
    member_id id() const { return id_; }
    // What renew gives, from now on.
    void set_names(std::vector<std::string> names) { settings_.names = std::move(names); }

    std::map<std::string, int> visits;  // in this run
    std::string violation;
    std::uint64_t least = 0;  // what REMAINS says: a counter is at least this when it is renewed
    std::uint64_t renewals = 0;
    std::map<std::string, std::uint64_t> made_from;
    bool renews = true;
    bool renews_slowly = false;

  private:
    task<answer> serve(message m) {
        answer given = ring_->serve(m);
        co_return given;
    }
    task<std::vector<token>> renew(std::vector<token> lost, std::vector<std::string> held) {
        ++renewals;
        co_await sleep_for(renews_slowly ? 10s : 1ms);
        std::vector<token> made;
        if (!renews) co_return made;
        for (std::string const& name : settings_.names) {
            if (std::ranges::find(held, name) != held.end()) continue;
            auto const copy = std::ranges::find(lost, name, &token::name);
            std::uint64_t const n = copy == lost.end() ? 0 : to_number(copy->content);
            if (copy != lost.end()) made_from[name] = n;
            made.push_back({name, to_bytes(std::max(n, least))});
        }
        co_return made;
    }
    void arrived(std::string const& name, token_place const& p) {
        if (p <= last_[name]) violation = "what a run accepts does not rise";
        last_[name] = p;
    }
    task<void> work() {
        for (;;) {
            for (std::string const& name : settings_.names) {
                {
                    held_token t = co_await ring_->take(name);
                    ++visits[name];
                    co_await sleep_for(settings_.scooping);
                    if (t.is_valid()) t.content() = to_bytes(to_number(t.content()) + 1);
                }
                co_await sleep_for(1ms);
            }
        }
    }
    task<void> live(sim::node* self) {
        ring_ = nullptr;
        visits.clear();
        last_.clear();
        auto const service = [this](message m) { return serve(std::move(m)); };
        auto const run = static_cast<std::uint32_t>(self->starts() * 100 + id_);
        peer me{self->bind(at(id_)).value(),
                secret{},
                {id_, self->starts()},
                service,
                {.jitter_seed = run}};
        ring_options options = settings_.ring;
        options.jitter_seed = run;
        token_ring ring{me, all_,
                        [this](std::vector<token> lost, std::vector<std::string> held) {
                            return renew(std::move(lost), std::move(held));
                        },
                        options,
                        [this](std::string const& name, token_place const& p,
                               std::vector<std::byte>&) { arrived(name, p); }};
        ring_ = &ring;
        auto receiving = self->spawn(me.run());
        auto working = self->spawn(settings_.works ? work() : idle());
        co_await ring.run();
    }
    static task<void> idle() { co_return; }

    member_id id_;
    std::vector<address> all_;
    settings settings_;
    std::map<std::string, token_place> last_;
    token_ring* ring_ = nullptr;
    sim::node node_;
};

// Robots, and the invariant that is checked at every step of time:
//   I4  a generation of a token has one holder at most; what a run accepts rises, and so do the
//       rings that it is in.
class robots {
  public:
    robots(std::uint64_t seed, member_id count, sim::conditions c, settings const& chosen = {})
        : names_(chosen.names), world_({.seed = seed}), net_(world_, c) {
        std::vector<address> all;
        for (member_id id = 1; id <= count; ++id) all.push_back({at(id), id});
        for (address const& a : all) robots_.emplace_back(world_, net_, a.id, all, chosen);
    }

    void start_all() {
        for (robot& r : robots_) r.node().start();
    }
    void run_for(clock::duration span) {
        for (auto const end = world_.now() + span; world_.now() < end;) {
            (void)world_.run_for(2ms);
            check();
        }
    }
    robot& of(member_id id) { return *std::next(robots_.begin(), id - 1); }
    // All that are up are in one ring, nobody else is, and every robot is visited by every token.
    bool turns_within(clock::duration span) {
        for (robot& r : robots_) r.visits.clear();
        for (auto const end = world_.now() + span; world_.now() < end;) {
            run_for(20ms);
            if (turns()) return true;
        }
        return false;
    }
    std::size_t up() {
        return static_cast<std::size_t>(
            std::ranges::count_if(robots_, [](robot& r) { return r.node().is_up(); }));
    }

    sim::world& world() { return world_; }
    sim::network& net() { return net_; }
    std::list<robot>& all() { return robots_; }
    std::string violation;
    std::set<generation> generations;

  private:
    bool turns() {
        std::size_t const count = up();
        std::optional<ring_epoch> in;
        for (robot& r : robots_) {
            if (r.now() == nullptr) continue;
            if (r.now()->members().size() != count) return false;
            if (in && *in != r.now()->epoch()) return false;
            in = r.now()->epoch();
            for (std::string const& name : names_) {
                if (r.visits[name] < 2) return false;
            }
        }
        return true;
    }
    void check() {
        std::set<std::pair<std::string, generation>> held;
        for (robot& r : robots_) {
            if (!r.violation.empty()) violation = r.violation;
            if (r.now() == nullptr) continue;
            ring_epoch& last = rings_[{r.id(), r.node().starts()}];
            if (r.now()->epoch() < last) violation = "a run goes back to an older ring";
            last = r.now()->epoch();
            for (token_view const& t : r.now()->tokens()) {
                if (t.place != token_place{}) generations.insert(t.place.gen);
                bool const holds = t.state == token_state::here || t.state == token_state::taken;
                if (holds && !held.insert({t.name, t.place.gen}).second) {
                    violation = "two hold one generation of " + t.name;
                }
            }
        }
    }

    std::vector<std::string> names_;
    std::map<member_run, ring_epoch> rings_;
    sim::world world_;
    sim::network net_;
    std::list<robot> robots_;
};

inline constexpr sim::conditions bad{
    .most_delay = 20ms, .loss = 0.3, .duplication = 0.2, .straggling = 0.1, .straggle = 500ms};

}  // namespace rondo::cluster::test
