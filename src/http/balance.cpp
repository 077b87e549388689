// Algorithm
//   One word for each upstream says until when it is set aside, and how many times in a row it has
//   failed:
//
//     well      0                      succeeded(): stays        failed(): paused, 1 failure
//     paused    until > now            failed() of an old turn: stays
//     due       until <= now           take(): paused for as long as after the last failure, with
//                                      1 failure more; this turn is a trial
//     on trial  looks like paused      succeeded(): well         failed(): paused, by that number,
//                                                                also after succeeded()
//                                      undecided(): due, with 1 failure less
//
//   A trial counts as a failure from its beginning: if nobody reports an outcome by the end of its
//   pause another one follows, and has twice the time.
//
// Races considered
//   Two threads find it due: one exchange wins, the other sees it paused and goes elsewhere. A
//   success of a request that was in flight when the upstream was set aside makes it well early:
//   it did answer.
#include "rondo/http/balance.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace rondo::http {

namespace {

constexpr unsigned failure_bits = 8;
constexpr std::uint64_t most_failures = (std::uint64_t{1} << failure_bits) - 1;

std::uint64_t milliseconds(clock::duration d) noexcept {
    auto const ms = std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(ms, 0));
}

std::uint64_t milliseconds(time_point t) noexcept { return milliseconds(t.time_since_epoch()); }

std::vector<std::pair<std::uint32_t, std::uint32_t>> with_themselves(
    std::vector<std::uint32_t> const& weights) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    pairs.reserve(weights.size());
    for (std::uint32_t const w : weights) pairs.emplace_back(w, w);
    return pairs;
}

}  // namespace

balance::balance(std::vector<std::uint32_t> const& weights, options o)
    : ring_(with_themselves(weights)),
      health_(std::make_unique<atomic<health>[]>(weights.size())),
      options_(o) {}

balance::health balance::pack(std::uint64_t until_ms, std::uint64_t failures) noexcept {
    return (until_ms << failure_bits) | std::min(failures, most_failures);
}

balance::state balance::state_of(health h, time_point now) noexcept {
    if (h == 0) return state::well;
    return (h >> failure_bits) > milliseconds(now) ? state::paused : state::due;
}

// In milliseconds, after so many in a row.
std::uint64_t balance::end_of_pause(std::uint64_t failures, time_point now) const noexcept {
    std::uint64_t const longest = milliseconds(options_.longest_pause);
    std::uint64_t pause = std::max<std::uint64_t>(milliseconds(options_.first_pause), 1);
    for (std::uint64_t i = 1; i < failures && pause < longest; ++i) pause *= 2;
    return milliseconds(now) + std::min(pause, longest);
}

std::optional<balance::turn> balance::take(std::size_t index, time_point now) noexcept {
    // relaxed, here and below: the word stands for itself, nothing else is read because of it.
    health seen = health_[index].load(std::memory_order_relaxed);
    switch (state_of(seen, now)) {
        case state::well:
            return turn{index};
        case state::due: {
            std::uint64_t const failures = seen & most_failures;
            health const on_trial = pack(end_of_pause(failures, now), failures + 1);
            if (health_[index].compare_exchange_strong(seen, on_trial, std::memory_order_relaxed)) {
                return turn{index, true, on_trial};
            }
            return std::nullopt;
        }
        case state::paused:
            break;
    }
    return std::nullopt;
}

// One of those that are well, each as often as its weight says.
std::optional<balance::turn> balance::spare(std::optional<std::size_t> except,
                                            time_point now) noexcept {
    auto const usable = [&](std::size_t i) {
        return i != except && ring_[i] != 0 && health_[i].load(std::memory_order_relaxed) == 0;
    };
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < size(); ++i) sum += usable(i) ? ring_[i] : 0;
    if (sum == 0) {
        // Nobody is well; somebody may be due.
        for (std::size_t i = 0; i < size(); ++i) {
            if (i == except || ring_[i] == 0) continue;
            if (auto const t = take(i, now)) return t;
        }
        return std::nullopt;
    }
    std::uint64_t ticket = spared_.fetch_add(1, std::memory_order_relaxed) % sum;
    for (std::size_t i = 0; i < size(); ++i) {
        if (!usable(i)) continue;
        if (ticket < ring_[i]) return turn{i};
        ticket -= ring_[i];
    }
    return std::nullopt;  // somebody failed between the two loops
}

balance::turn balance::next(time_point now) noexcept {
    std::size_t const index = ring_.next_index();
    if (auto const t = take(index, now)) return *t;
    if (auto const t = spare(index, now)) return *t;
    return {index};
}

std::optional<balance::turn> balance::other_than(std::size_t index, time_point now) noexcept {
    return spare(index, now);
}

void balance::succeeded(turn t) noexcept {
    atomic<health>& h = health_[t.index];
    // Most of the time it is well, and the line stays shared between processors.
    if (h.load(std::memory_order_relaxed) != 0) h.store(0, std::memory_order_relaxed);
}

void balance::failed(turn t, time_point now) noexcept {
    health seen = health_[t.index].load(std::memory_order_relaxed);
    while (true) {
        if (!t.trial && seen != 0) return;  // it is set aside already
        // A trial has been counted. A success of its own may have ended the row since.
        std::uint64_t const row = std::max(seen & most_failures, t.mark & most_failures);
        std::uint64_t const failures = std::max<std::uint64_t>(row, 1);
        health const next = pack(end_of_pause(failures, now), failures);
        if (health_[t.index].compare_exchange_weak(seen, next, std::memory_order_relaxed)) return;
    }
}

void balance::undecided(turn t) noexcept {
    if (t.mark == 0) return;
    health seen = t.mark;  // else something has been decided, or there is another trial
    health_[t.index].compare_exchange_strong(seen, pack(0, (seen & most_failures) - 1),
                                             std::memory_order_relaxed);
}

bool balance::set_aside(std::size_t index, time_point now) const noexcept {
    return state_of(health_[index].load(std::memory_order_relaxed), now) == state::paused;
}

}  // namespace rondo::http
