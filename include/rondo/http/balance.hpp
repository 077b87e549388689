// balance.hpp: whose turn it is among several upstreams, by weight, leaving out those that fail.
//
//   http::balance backends{{3, 1}};                    // weights
//   auto turn = backends.next(now);
//   ... call upstream number turn.index ...
//   if (failed) backends.failed(turn, now); else backends.succeeded(turn);
//
// Guarantee      in turn, evenly interleaved (sync/ring.hpp), however many threads ask. Turns of
//                one that is set aside go to the others, by weight.
// Set aside      an upstream that fails gets no turns for `first_pause`. Then one request tries it,
//                while the others still go elsewhere: if that fails too, the pause doubles, up to
//                `longest_pause`; a success ends it. One that succeeded and fails after all, as an
//                answer that breaks off, has failed. If nothing is heard of a trial for as long as
//                the pause was there is another, and the next after twice as long: one that does
//                not answer is tried less and less often too.
// All down       if every upstream is set aside they get their turns all the same: a wrong
//                diagnosis must not take the whole service away.
// Weight 0       never gets a turn.
// What counts    is the caller's to say; failures of requests that were in flight when it was set
//                aside change nothing.
// Time           is what the caller says; milliseconds are told apart.
// Thread safety  every member may be called concurrently, but for the destructor.
// Memory order   none: nothing is published by it.
// Allocation     in the constructor only.
// Example        examples/http/backends.cpp
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rondo/core/policy.hpp"
#include "rondo/sync/ring.hpp"

namespace rondo::http {

class balance {
  public:
    struct options {
        clock::duration first_pause = std::chrono::seconds{1};
        clock::duration longest_pause = std::chrono::seconds{30};
    };
    struct turn {
        std::size_t index;
        bool trial = false;      // it had been set aside, and this shows whether it is well again
        std::uint64_t mark = 0;  // of a trial, for us
    };

    // At least one weight is above 0.
    explicit balance(std::vector<std::uint32_t> const& weights) : balance(weights, options{}) {}
    balance(std::vector<std::uint32_t> const& weights, options o);

    turn next(time_point now) noexcept;
    // For a second attempt. Nothing if there is no other that is well.
    std::optional<turn> other_than(std::size_t index, time_point now) noexcept;

    void succeeded(turn t) noexcept;
    void failed(turn t, time_point now) noexcept;
    // Nothing is known: if it was a trial, the next request is one.
    void undecided(turn t) noexcept;

    std::size_t size() const noexcept { return ring_.size(); }
    bool set_aside(std::size_t index, time_point now) const noexcept;

  private:
    // The end of the pause in milliseconds, and in the lowest bits the number of failures in a
    // row; 0 if it is well.
    using health = std::uint64_t;
    enum class state : std::uint8_t { well, paused, due };

    static health pack(std::uint64_t until_ms, std::uint64_t failures) noexcept;
    static state state_of(health h, time_point now) noexcept;
    std::uint64_t end_of_pause(std::uint64_t failures, time_point now) const noexcept;
    std::optional<turn> take(std::size_t index, time_point now) noexcept;
    std::optional<turn> spare(std::optional<std::size_t> except, time_point now) noexcept;

    weighted_ring<std::uint32_t> ring_;  // of the weights
    std::unique_ptr<atomic<health>[]> health_;
    atomic<std::uint64_t> spared_{0};
    options options_;
};

}  // namespace rondo::http
