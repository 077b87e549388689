// Algorithm
//   The order of turns in a weighted cycle is that of R. Tijdeman, "The chairman assignment
//   problem" (Discrete Mathematics 32, 1980). Of n candidates with weights w and the sum S, turn t
//   (from 1) goes to the one with the earliest deadline among those that are eligible, where a
//   candidate that has had c turns
//       is eligible   from t >= S (c + e) / w        with e = 1 / (2n - 2)
//       is due        at       S (c + 1 - e) / w
//   Whoever is eligible is at least e of a turn behind its share; there always is one, because
//   the candidates together are one turn behind. The paper proves that then nobody is ever ahead
//   of its share, or behind it, by more than 1 - e.
//
//   Rejected: the "smooth" order of nginx (add every weight to its counter, take the largest,
//   subtract S). It visits every candidate for every turn, and has no such bound: {5, 1, 1} gives
//   a a b a c a a, four in a row over the end of the cycle, where three are enough.
//
// Invariants
//   I1  all products stay below 2^53: n and w are at most 2^16, S at most 2^17.
#include "rondo/sync/ring.hpp"

#include <algorithm>
#include <numeric>
#include <queue>

namespace rondo::detail {

namespace {

struct candidate {
    std::uint32_t index;
    std::uint64_t weight;
    std::uint64_t had = 0;
};

// The weights that are not 0, as small as their ratios allow, the sum cut down to about `longest`.
std::vector<candidate> candidates_of(std::span<std::uint32_t const> weights,
                                     std::uint32_t longest) {
    std::vector<candidate> all;
    for (std::uint32_t i = 0; i < weights.size(); ++i) {
        if (weights[i] != 0) all.push_back({i, weights[i]});
    }
    auto const divide = [&] {
        std::uint64_t divisor = 0;
        for (candidate const& c : all) divisor = std::gcd(divisor, c.weight);
        std::uint64_t sum = 0;
        for (candidate& c : all) sum += c.weight /= divisor;
        return sum;
    };
    std::uint64_t const sum = divide();
    if (sum > longest) {
        for (candidate& c : all) {
            c.weight = std::max<std::uint64_t>(1, c.weight * longest / sum);
        }
        divide();
    }
    return all;
}

}  // namespace

std::vector<std::uint32_t> interleave(std::span<std::uint32_t const> weights,
                                      std::uint32_t longest_cycle) {
    std::vector<candidate> all = candidates_of(weights, longest_cycle);
    RONDO_ASSERT(!all.empty(), "a weighted ring has at least one value with a weight above 0");
    RONDO_ASSERT(all.size() <= longest_cycle, "a weighted ring has no more values than turns");
    if (all.size() == 1) return {all.front().index};

    std::uint64_t const q = 2 * all.size() - 2;  // 1 / e
    std::uint64_t sum = 0;
    for (candidate const& c : all) sum += c.weight;

    // The first turn for which a candidate is eligible.
    auto const eligible_at = [&](candidate const& c) {
        std::uint64_t const scaled = sum * (q * c.had + 1);
        return (scaled + q * c.weight - 1) / (q * c.weight);
    };
    auto const later_eligible = [&](candidate const* a, candidate const* b) {
        return eligible_at(*a) > eligible_at(*b);
    };
    auto const later_due = [&](candidate const* a, candidate const* b) {
        std::uint64_t const left = (q * (a->had + 1) - 1) * b->weight;  // I1
        std::uint64_t const right = (q * (b->had + 1) - 1) * a->weight;
        return left != right ? left > right : a->index > b->index;
    };
    std::priority_queue<candidate*, std::vector<candidate*>, decltype(later_eligible)> waiting{
        later_eligible};
    std::priority_queue<candidate*, std::vector<candidate*>, decltype(later_due)> eligible{
        later_due};

    for (candidate& c : all) waiting.push(&c);
    std::vector<std::uint32_t> cycle;
    cycle.reserve(sum);
    while (cycle.size() < sum) {
        std::uint64_t const turn = cycle.size() + 1;
        while (!waiting.empty() && eligible_at(*waiting.top()) <= turn) {
            eligible.push(waiting.top());
            waiting.pop();
        }
        candidate& next = *eligible.top();
        eligible.pop();
        cycle.push_back(next.index);
        ++next.had;
        waiting.push(&next);
    }
    return cycle;
}

}  // namespace rondo::detail
