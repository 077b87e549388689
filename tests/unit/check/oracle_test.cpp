// oracle_test.cpp: random programs, explored and compared with the axioms of the memory model.
//
// The oracle shares nothing with the checker. It takes every order in which the operations of a
// program can be executed, lets every load read every store before it, and throws out what the
// axioms forbid: with happens-before as a relation, computed anew for each candidate, instead of
// clocks; coherence as "no access that happens before saw a newer store"; and S as "no seq_cst
// access before, of the same object, saw a newer store". What is left must be exactly what the
// checker produces.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "rondo/check/check.hpp"
#include "support/seed.hpp"

namespace {

namespace check = rondo::check;
using order = std::memory_order;

struct operation {
    enum kind { load, store, add, exchange_if } what;
    std::size_t object;
    int value;    // stored or added; for exchange_if the expected one
    int desired;  // exchange_if
    order how;
    order on_failure;
};
using program = std::vector<std::vector<operation>>;  // of each thread
using outcomes = std::set<std::string>;               // values read, in order of thread and place

constexpr std::size_t objects = 2;
constexpr std::size_t most_threads = 3;
constexpr std::size_t most_operations = 3;

bool acquires(order o) { return o == order::acquire || o == order::acq_rel || o == order::seq_cst; }
bool releases(order o) { return o == order::release || o == order::acq_rel || o == order::seq_cst; }

using results = std::array<std::array<std::string, most_operations>, most_threads>;

std::string in_one_line(results const& values) {
    std::string line;
    for (auto const& thread : values) {
        for (auto const& value : thread) line += value;
    }
    return line;
}

class oracle {
  public:
    explicit oracle(program const& of) : program_(of), next_(of.size(), 0) {
        for (std::size_t i = 0; i < objects; ++i) {
            events_.push_back({.thread = none, .object = i, .writes = true, .value = 0});
            stores_[i].push_back(i);
        }
        extend();
    }
    [[nodiscard]] outcomes const& allowed() const { return allowed_; }

  private:
    static constexpr std::size_t none = ~std::size_t{0};

    struct event {
        std::size_t thread;
        std::size_t object;
        bool writes = false;
        std::size_t reads_from = none;
        int value = 0;  // written
        order how = order::relaxed;
    };

    void extend() {
        bool ended = true;
        for (std::size_t thread = 0; thread < program_.size(); ++thread) {
            if (next_[thread] == program_[thread].size()) continue;
            ended = false;
            perform(thread, program_[thread][next_[thread]]);
        }
        if (ended) allowed_.insert(in_one_line(values_));
    }

    void perform(std::size_t thread, operation const& op) {
        // A copy: add() appends to the original and takes away again.
        auto const before = stores_[op.object];
        std::size_t const newest = before.back();
        int const value = events_[newest].value;
        event const plain{.thread = thread, .object = op.object, .how = op.how};
        auto const read = [&](std::size_t from, order how) {
            event e = plain;
            e.reads_from = from;
            e.how = how;
            return e;
        };
        auto const read_and_write = [&](int written) {
            event e = read(newest, op.how);
            e.writes = true;
            e.value = written;
            return e;
        };
        switch (op.what) {
            case operation::store: {
                event e = plain;
                e.writes = true;
                e.value = op.value;
                add(e);
                break;
            }
            case operation::add:
                add(read_and_write(value + op.value));
                break;
            case operation::load:
                for (std::size_t const from : before) add(read(from, op.how));
                break;
            case operation::exchange_if:
                if (value == op.value) add(read_and_write(op.desired));
                for (std::size_t const from : before) {
                    if (events_[from].value != op.value) add(read(from, op.on_failure));
                }
                break;
        }
    }

    void add(event const& e) {
        std::string& result = values_[e.thread][next_[e.thread]];
        events_.push_back(e);
        if (e.reads_from == none || is_coherent()) {
            if (e.reads_from != none) result = std::to_string(events_[e.reads_from].value) + ",";
            if (e.writes) stores_[e.object].push_back(events_.size() - 1);
            ++next_[e.thread];
            extend();
            --next_[e.thread];
            if (e.writes) stores_[e.object].pop_back();
            result.clear();
        }
        events_.pop_back();
    }

    // Whether the last event may read what it reads. Ids grow along the modification order.
    [[nodiscard]] bool is_coherent() const {
        event const& last = events_.back();
        auto const happened = happens_before_last();
        for (std::size_t i = 0; i + 1 < events_.size(); ++i) {
            event const& e = events_[i];
            if (e.object != last.object) continue;
            std::size_t const saw = e.writes ? i : e.reads_from;
            bool const in_s = i >= objects && e.how == order::seq_cst && last.how == order::seq_cst;
            if (saw > last.reads_from && (happened[i] || in_s)) return false;
        }
        return true;
    }

    [[nodiscard]] std::vector<bool> happens_before_last() const {
        std::vector<std::vector<bool>> before(events_.size(),
                                              std::vector<bool>(events_.size(), false));
        for (std::size_t i = objects; i < events_.size(); ++i) {
            auto const after = [&](std::size_t earlier) {
                before[i][earlier] = true;
                for (std::size_t k = 0; k < earlier; ++k) {
                    if (before[earlier][k]) before[i][k] = true;
                }
            };
            for (std::size_t k = 0; k < i; ++k) {
                if (k < objects || events_[k].thread == events_[i].thread) after(k);
            }
            if (events_[i].reads_from == none || !acquires(events_[i].how)) continue;
            // Every release store whose release sequence holds the one that was read.
            for (std::size_t w = events_[i].reads_from; w != none && events_[w].writes;
                 w = events_[w].reads_from) {
                if (w >= objects && releases(events_[w].how)) after(w);
            }
        }
        return before.back();
    }

    program const& program_;
    std::vector<std::size_t> next_;
    std::vector<event> events_;
    std::array<std::vector<std::size_t>, objects> stores_;  // in modification order
    results values_;
    outcomes allowed_;
};

std::string perform(check::atomic<int>& object, operation const& op) {
    switch (op.what) {
        case operation::load:
            return std::to_string(object.load(op.how)) + ",";
        case operation::store:
            object.store(op.value, op.how);
            return {};
        case operation::add:
            return std::to_string(object.fetch_add(op.value, op.how)) + ",";
        case operation::exchange_if:
            break;
    }
    int value = op.value;
    object.compare_exchange_strong(value, op.desired, op.how, op.on_failure);
    return std::to_string(value) + ",";
}

outcomes explored(program const& given) {
    outcomes seen;
    auto const result = check::explore({.preemptions = -1}, [&] {
        std::array<check::atomic<int>, objects> memory;
        results values;
        auto const run = [&](std::size_t thread) {
            for (std::size_t i = 0; i < given[thread].size(); ++i) {
                values[thread][i] = perform(memory[given[thread][i].object], given[thread][i]);
            }
        };
        std::array<check::thread, most_threads> threads;
        for (std::size_t t = 1; t < given.size(); ++t) {
            threads[t] = check::thread([&run, t] { run(t); });
        }
        run(0);
        for (std::size_t t = 1; t < given.size(); ++t) threads[t].join();
        check::untracked_memory const guard;
        seen.insert(in_one_line(values));
    });
    EXPECT_TRUE(result.ok) << result.error;
    EXPECT_TRUE(result.complete);
    return seen;
}

program random_program(std::mt19937_64& random) {
    auto const below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    auto const one_of = [&](std::vector<order> const& from) { return from[below(from.size())]; };
    std::vector<order> const loads{order::relaxed, order::acquire, order::seq_cst};
    std::vector<order> const stores{order::relaxed, order::release, order::seq_cst};
    std::vector<order> const both{order::relaxed, order::acquire, order::release, order::acq_rel,
                                  order::seq_cst};
    std::vector<operation::kind> const kinds{
        operation::load,  operation::load,  operation::load, operation::store,
        operation::store, operation::store, operation::add,  operation::exchange_if};
    program made(2 + below(2));
    for (auto& thread : made) {
        thread.resize(made.size() == 2 ? 2 + below(2) : 1 + below(2));
        for (auto& op : thread) {
            op.what = kinds[below(kinds.size())];
            op.object = below(objects);
            op.value =
                static_cast<int>(op.what == operation::exchange_if ? below(3) : 1 + below(2));
            op.desired = static_cast<int>(1 + below(3));
            op.how = one_of(op.what == operation::load    ? loads
                            : op.what == operation::store ? stores
                                                          : both);
            op.on_failure = one_of(loads);
        }
    }
    return made;
}

std::string text_of(program const& shown) {
    constexpr std::array names{"load", "store", "add", "exchange_if"};
    std::string text;
    for (auto const& thread : shown) {
        for (auto const& op : thread) {
            text += std::string(names[op.what]) + " object " + std::to_string(op.object) +
                    " value " + std::to_string(op.value) + " order " +
                    std::to_string(static_cast<int>(op.how)) + "; ";
        }
        text += "|| ";
    }
    return text;
}

TEST(Oracle, RandomProgramsHaveExactlyTheOutcomesThatTheAxiomsAllow) {
    std::mt19937_64 random(rondo::test::seed(1));
    for (int i = 0; i < 300; ++i) {
        program const each = random_program(random);
        EXPECT_EQ(explored(each), oracle(each).allowed()) << text_of(each);
    }
}

}  // namespace
