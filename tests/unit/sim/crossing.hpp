// crossing.hpp: a small program with everything that a schedule can change; checks itself.
//
// Walkers cross a bridge that holds a few at a time. They ask for one or two places, wait as long
// as they please, sleep on the bridge, are called back (stopped) now and then, and try again.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "after.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "rondo/sim/world.hpp"
#include "support/permits.hpp"

namespace rondo::test {

class crossing {
  public:
    static constexpr std::size_t places = 3;
    static constexpr int walkers = 6;
    static constexpr int tries = 5;

    explicit crossing(sim::options chosen) : world_(chosen) {}

    // Empty if all went well, else what did not.
    std::string run() {
        std::vector<join_handle<void>> handles;
        for (int i = 0; i < walkers; ++i) handles.push_back(world_.spawn(walk()));
        world_.spawn(call_back(&handles)).detach();
        sim::outcome const how = world_.run();
        if (how != sim::outcome::finished) return sim::describe(how);
        if (!world_.take_unobserved().empty()) complain("a task threw");
        if (bridge_.available() != places) complain("places were lost or made up");
        if (on_bridge_ != 0) complain("somebody never left the bridge");
        if (crossed_ + gave_up_ + called_back_ != tries * walkers) complain("a try has no end");
        return wrong_;
    }

    sim::world& world() noexcept { return world_; }
    int crossed() const noexcept { return crossed_; }
    int gave_up() const noexcept { return gave_up_; }
    int called_back() const noexcept { return called_back_; }

  private:
    // Counts who is on the bridge, however they leave it.
    class stay {
      public:
        stay(crossing& c, std::size_t n) noexcept : crossing_(c), n_(n) {
            crossing_.on_bridge_ += n_;
            if (crossing_.on_bridge_ > places) crossing_.complain("the bridge holds too many");
        }
        ~stay() { crossing_.on_bridge_ -= n_; }
        stay(stay const&) = delete;
        stay& operator=(stay const&) = delete;

      private:
        crossing& crossing_;
        std::size_t n_;
    };

    void complain(char const* what) {
        if (wrong_.empty()) wrong_ = what;
    }
    clock::duration some_time() {
        return std::chrono::milliseconds{world_.random().below(5)};  // few values: many ties
    }

    task<void> cross(std::size_t n) {
        permits::permit const p = co_await bridge_.acquire(n);
        stay const here{*this, n};
        co_await after(some_time());
    }
    task<bool> cross_by(std::size_t n, time_point deadline) {
        auto p = co_await bridge_.acquire_until(n, deadline);
        if (!p) co_return false;
        stay const here{*this, n};
        co_await after(some_time());
        co_return true;
    }

    task<bool> try_once(std::size_t n) {
        switch (world_.random().below(4)) {
            case 0: {
                co_await cross(n);
                co_return true;
            }
            case 1: {
                time_point const deadline = world_.now() + some_time();
                co_return co_await cross_by(n, deadline);
            }
            case 2: {
                auto const r = co_await with_timeout(cross(n), some_time());
                co_return r.has_value();
            }
            default: {
                auto const r = co_await when_any(cross(n), after(some_time()));
                co_return r.index() == 0;
            }
        }
    }

    // Notes a try that ended without a result.
    class unended {
      public:
        explicit unended(crossing& c, int& done) noexcept : crossing_(c), done_(done) {}
        ~unended() { crossing_.called_back_ += tries - done_; }
        unended(unended const&) = delete;
        unended& operator=(unended const&) = delete;

      private:
        crossing& crossing_;
        int& done_;
    };

    task<void> walk() {
        int done = 0;
        unended const rest{*this, done};
        while (done < tries) {
            std::size_t const n = 1 + world_.random().below(2);
            bool const crossed = co_await try_once(n);
            ++(crossed ? crossed_ : gave_up_);
            ++done;
        }
    }

    task<void> call_back(std::vector<join_handle<void>>* handles) {
        for (int i = 0; i < 2; ++i) {
            clock::duration const span = some_time();
            co_await after(span);
            world_.random().pick(*handles).request_stop();
        }
    }

    permits bridge_{places};
    std::size_t on_bridge_ = 0;
    int crossed_ = 0;
    int gave_up_ = 0;
    int called_back_ = 0;
    std::string wrong_;
    sim::world world_;
};

}  // namespace rondo::test
