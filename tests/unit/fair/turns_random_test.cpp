// The order of turns at random, against a model that walks every round and looks for the next one
// among all; and the share bound over every stretch of the order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "rondo/fair/detail/turns.hpp"
#include "support/seed.hpp"

namespace rondo::fair {
namespace {

using detail::entry;
using detail::tenant;
using detail::turns;

// The same rules over plain maps, with a search through all tenants for each turn.
class model {
  public:
    explicit model(std::uint64_t quantum) : quantum_(quantum) {}

    struct task {
        int id;
        std::uint64_t cost;
    };
    using turn_key = std::tuple<std::uint64_t, int, std::int64_t>;
    struct account {
        std::uint32_t weight = 1;
        using backlog = std::array<std::deque<task>, 3>;
        backlog tasks;
        backlog held_back;
        std::uint64_t credit = 0;
        std::uint64_t credited = 0;  // the round
        std::uint64_t served = 0;    // the last round in which it was
        // While it has tasks: in which round, in which part of it, after whom.
        turn_key turn;

        static bool empty(backlog const& all) {
            return std::ranges::all_of(all, [](auto const& t) { return t.empty(); });
        }
        static bool is_first(backlog const& all, int id) {
            return std::ranges::any_of(
                all, [&](auto const& t) { return !t.empty() && t.front().id == id; });
        }
        // The largest cost of those that are the first of their priority.
        static std::uint64_t dearest_first(backlog const& all) {
            std::uint64_t most = 0;
            for (auto const& t : all) most = std::max(most, t.empty() ? 0 : t.front().cost);
            return most;
        }
        static std::deque<task>& first(backlog& all) {
            return *std::ranges::find_if(all, [](auto const& t) { return !t.empty(); });
        }
        bool idle() const { return empty(tasks); }
        bool in_line() const { return !empty(tasks) || !empty(held_back); }
        std::deque<task>& first() { return first(tasks); }
    };
    enum part : int { as_new, under_way, out_of_wheel, in_ring };

    std::map<std::size_t, account> accounts;

    void add(std::size_t who, task t, priority rank) {
        account& x = accounts[who];
        bool const was_idle = x.idle();
        x.tasks[static_cast<std::size_t>(rank)].push_back(t);
        if (was_idle) {
            bool const waits = x.served == round_ || new_ones_ == turns::front_turns;
            come(x, waits);
            if (waits || x.credit < t.cost) {
                schedule(x);
                return;
            }
            ++new_ones_;
            x.turn = {round_, as_new, ++stamp_};
        } else if (x.first().back().id == t.id && x.first().size() == 1) {
            first_changed(x);
        }
    }

    int next() {
        for (;;) {
            auto const least = std::ranges::min_element(accounts, {}, [](auto const& at) {
                return at.second.idle() ? turn_key{~std::uint64_t{0}, 0, 0} : at.second.turn;
            });
            if (least == accounts.end() || least->second.idle()) return -1;
            account& x = least->second;
            if (std::get<0>(x.turn) > round_) enter(std::get<0>(x.turn));
            while (x.credited < round_) {  // every round is walked
                x.credit += quantum_ * x.weight;
                ++x.credited;
            }
            task const t = x.first().front();
            if (t.cost > x.credit) {
                if (std::get<1>(x.turn) == as_new) --new_ones_;
                schedule(x);
                continue;
            }
            x.credit -= t.cost;
            x.served = round_;
            x.first().pop_front();
            if (std::get<1>(x.turn) == as_new) {
                x.turn = {round_, in_ring, ++stamp_};
            } else {
                x.turn = {round_, under_way, 0};
            }
            if (x.idle()) left();
            return t.id;
        }
    }

    void remove(std::size_t who, int id) {
        account& x = accounts[who];
        bool const was_first = account::is_first(x.tasks, id);
        for (auto& tasks : x.tasks) {
            std::erase_if(tasks, [&](task const& t) { return t.id == id; });
        }
        one_is_gone(x, was_first);
    }

    void add_held_back(std::size_t who, task t, priority rank) {
        account& x = accounts[who];
        if (!x.in_line()) come(x, x.served == round_);
        x.held_back[static_cast<std::size_t>(rank)].push_back(t);
    }
    void hold_back(std::size_t who, int id, priority rank) {
        account& x = accounts[who];
        bool const was_first = account::is_first(x.tasks, id);
        auto& from = x.tasks[static_cast<std::size_t>(rank)];
        x.held_back[static_cast<std::size_t>(rank)].push_front(from.back());
        from.pop_back();
        one_is_gone(x, was_first);
    }
    void call_up(std::size_t who) {
        account& x = accounts[who];
        auto& from = account::first(x.held_back);
        task const t = from.front();
        auto const rank = static_cast<priority>(&from - x.held_back.data());
        bool const was_aside = x.idle();
        from.pop_front();
        if (!was_aside) {
            add(who, t, rank);
            return;
        }
        std::uint64_t const quantum = quantum_ * x.weight;
        while (x.credited < round_) {  // every round is walked
            ++x.credited;
            x.credit = std::min(x.credit, t.cost - 1 + turns::kept_quanta * quantum) + quantum;
        }
        x.tasks[static_cast<std::size_t>(rank)].push_back(t);
        if (x.credit < t.cost) {
            schedule(x);
            return;
        }
        for (auto& [other, y] : accounts) {  // its turn goes on later
            bool const begun = y.turn == turn_key{round_, under_way, 0};
            if (other != who && !y.idle() && begun) y.turn = {round_, in_ring, --interrupted_};
        }
        x.turn = {round_, under_way, 0};
    }
    bool holds_back(std::size_t who, int id) const {
        auto const has_it = [&](auto const& tasks) {
            return std::ranges::find(tasks, id, &task::id) != tasks.end();
        };
        return std::ranges::any_of(accounts.at(who).held_back, has_it);
    }
    void remove_held_back(std::size_t who, int id) {
        for (auto& tasks : accounts[who].held_back) {
            std::erase_if(tasks, [&](task const& t) { return t.id == id; });
        }
        left();
    }

  private:
    void come(account& x, bool waits) {
        std::uint64_t const quantum = quantum_ * x.weight;
        std::uint64_t const own = x.credited == round_ ? std::min(x.credit, quantum) : quantum;
        x.credited = round_;
        x.credit = waits ? 0 : own;
    }
    void one_is_gone(account& x, bool was_first) {
        if (x.idle()) {
            if (std::get<1>(x.turn) == as_new) --new_ones_;
            left();
        } else if (was_first) {
            bool const now = std::get<0>(x.turn) == round_;
            catch_up(x, now ? round_ - 1 : round_);
            std::uint64_t const own = now && x.credited == round_ ? quantum_ * x.weight : 0;
            x.credit = std::min(x.credit, account::dearest_first(x.tasks) - 1 + own);
            first_changed(x);
        }
    }
    void catch_up(account& x, std::uint64_t round) {
        while (x.credited < round) {
            x.credit += quantum_ * x.weight;
            ++x.credited;
        }
    }
    void left() {
        if (std::ranges::none_of(accounts, [](auto const& at) { return at.second.in_line(); })) {
            enter(round_ + 1);
        }
    }
    void enter(std::uint64_t round) {
        round_ = round;
        new_ones_ = 0;
    }
    void first_changed(account& x) {
        bool const in_wheel = std::get<1>(x.turn) == out_of_wheel;
        if (!in_wheel || std::get<0>(x.turn) == round_) return;
        catch_up(x, round_);
        schedule(x);
    }
    // The first round, of those to come, in which it can pay.
    void schedule(account& x) {
        std::uint64_t rounds = 1;
        while (x.credit + rounds * quantum_ * x.weight < x.first().front().cost) ++rounds;
        x.turn = {round_ + rounds, rounds == 1 ? in_ring : out_of_wheel, ++stamp_};
    }

    std::uint64_t const quantum_;
    std::uint64_t round_ = 1;
    std::uint32_t new_ones_ = 0;
    std::int64_t stamp_ = 0;
    std::int64_t interrupted_ = 0;
};

struct numbered : entry {
    numbered(terms const& t, int number) : entry(t), id(number) {}
    int id;
};

// How far the work of a tenant has got ahead of that of another: over any stretch of the time in
// which it is followed.
class lead {
  public:
    void serve(double difference) {
        now_ += difference;
        low_ = std::min(low_, now_);
    }
    void begin() { now_ = low_ = 0; }
    double largest() const { return now_ - low_; }

  private:
    double now_ = 0;
    double low_ = 0;
};

struct weights_and_costs {
    std::size_t tenants;
    std::uint64_t quantum;
    std::uint32_t most_weight;
    std::uint64_t most_cost;
    bool removes;
    bool holds_back = false;
};

// What was taken of every two tenants, while one was in line and the other took turns.
class pairs {
  public:
    using tenants = std::vector<std::unique_ptr<tenant>>;

    pairs(tenants const& who, weights_and_costs const& how)
        : who_(who), how_(how), ahead_(how.tenants, std::vector<lead>(how.tenants)) {}

    void comes(std::size_t i) {
        for (lead& of_another : ahead_[i]) of_another.begin();
    }
    void takes_turns(std::size_t i) {
        for (auto& of : ahead_) of[i].begin();
    }
    void served(std::size_t i, std::uint64_t cost) {
        double const share = static_cast<double>(cost) / who_[i]->weight();
        for (std::size_t j = 0; j < who_.size(); ++j) {
            if (j == i) continue;
            ahead_[j][i].serve(-share);
            if (who_[j]->tasks().empty()) continue;
            ahead_[i][j].serve(share);
            worst_ = std::max(worst_, ahead_[i][j].largest() / bound(i, j));
        }
    }
    // The largest difference over any stretch of the order, as a part of its bound.
    double worst() const { return worst_; }

  private:
    double bound(std::size_t i, std::size_t j) const {
        auto const most = static_cast<double>(how_.most_cost);
        std::uint64_t const quanta = how_.holds_back ? 2 + turns::kept_quanta : 2;
        return most / who_[i]->weight() + most / who_[j]->weight() +
               static_cast<double>(quanta * how_.quantum);
    }

    tenants const& who_;
    weights_and_costs const& how_;
    std::vector<std::vector<lead>> ahead_;
    double worst_ = 0;
};

// The order and the model, side by side.
class comparison {
  public:
    comparison(std::uint64_t seed, weights_and_costs const& how)
        : how_(how), random_(seed), order_(how.quantum), expected_(how.quantum) {
        for (std::size_t i = 0; i < how.tenants; ++i) {
            auto const weight = static_cast<std::uint32_t>(upto(how.most_weight));
            who_.push_back(std::make_unique<tenant>(weight));
            expected_.accounts[i].weight = weight;
        }
    }

    void step(std::uint64_t arrivals) {
        std::uint64_t const dice = random_() % 100;
        if (dice < arrivals) {
            arrive();
        } else if (how_.holds_back && random_() % 2 == 0) {
            hold_back_or_call_up(random_() % how_.tenants);
        } else if (dice < 95 || !how_.removes) {
            take();
        } else if (!live_.empty()) {
            remove();
        }
        if (dice % 8 == 0) order_.forget();
    }
    void drain() {
        for (std::size_t i = 0; i < how_.tenants; ++i) {
            while (!who_[i]->held_back().empty()) call_up(i);
        }
        while (!order_.empty() && !testing::Test::HasFatalFailure()) take();
        take();
        while (order_.forget() != nullptr) {
        }
    }
    double worst() const { return shares_.worst(); }

  private:
    std::uint64_t upto(std::uint64_t n) { return random_() % n + 1; }

    void arrive() {
        std::size_t const i = random_() % how_.tenants;
        terms const t{.cost = upto(how_.most_cost), .priority = priority(random_() % 3)};
        ++id_;
        auto& e = live_[id_] = std::make_unique<numbered>(t, id_);
        owner_[id_] = i;
        bool const idle = who_[i]->tasks().empty();
        bool const none_held_back = who_[i]->held_back().empty();
        if (idle && none_held_back) shares_.comes(i);
        if (how_.holds_back && (!none_held_back || random_() % 3 == 0)) {
            order_.add_held_back(*who_[i], *e);
            expected_.add_held_back(i, {id_, t.cost}, t.priority);
            return;
        }
        if (idle) shares_.takes_turns(i);
        order_.add(*who_[i], *e);
        expected_.add(i, {id_, t.cost}, t.priority);
    }
    void hold_back_or_call_up(std::size_t i) {
        if (!who_[i]->held_back().empty() && random_() % 3 != 0) {
            call_up(i);
        } else if (!who_[i]->tasks().empty()) {
            auto& e = static_cast<numbered&>(*who_[i]->tasks().newest_of_lowest());
            order_.hold_back(e);
            expected_.hold_back(i, e.id, e.rank);
        }
    }
    void call_up(std::size_t i) {
        if (who_[i]->tasks().empty()) shares_.takes_turns(i);
        order_.call_up(*who_[i]);
        expected_.call_up(i);
    }
    void take() {
        entry* const e = order_.next();
        int const wanted = expected_.next();
        ASSERT_EQ(e == nullptr ? -1 : static_cast<numbered*>(e)->id, wanted);
        if (e == nullptr) return;
        shares_.served(owner_[wanted], e->cost);
        live_.erase(wanted);
    }
    void remove() {
        auto const nth = static_cast<std::ptrdiff_t>(random_() % live_.size());
        auto const at = std::next(live_.begin(), nth);
        std::size_t const i = owner_[at->first];
        if (expected_.holds_back(i, at->first)) {
            order_.remove_held_back(*at->second);
            expected_.remove_held_back(i, at->first);
        } else {
            order_.remove(*at->second);
            expected_.remove(i, at->first);
        }
        live_.erase(at);
    }

    weights_and_costs const how_;
    std::mt19937_64 random_;
    turns order_;
    model expected_;
    pairs::tenants who_;
    std::map<int, std::unique_ptr<numbered>> live_;
    std::map<int, std::size_t> owner_;
    pairs shares_{who_, how_};
    int id_ = 0;
};

// Consumers that take tasks and put some of them back: at once, or while others go on.
class second_thoughts {
  public:
    second_thoughts(std::uint64_t seed, weights_and_costs const& how, bool at_once)
        : how_(how), at_once_(at_once), random_(seed), order_(how.quantum) {
        for (std::size_t i = 0; i < how.tenants; ++i) {
            who_.push_back(
                std::make_unique<tenant>(static_cast<std::uint32_t>(upto(how.most_weight))));
        }
    }

    void step(std::uint64_t arrivals) {
        if (random_() % 100 < arrivals) return arrive();
        if (!in_hand_.empty() && random_() % 2 == 0) return decide();
        entry* const e = order_.next();
        if (e == nullptr) return;
        in_hand_.push_back(static_cast<numbered*>(e));
        if (at_once_) decide();
        if (random_() % 8 == 0) order_.forget();
    }
    // Each task is taken for good once.
    void drain() {
        while (!in_hand_.empty() || !order_.empty()) {
            if (in_hand_.empty()) in_hand_.push_back(static_cast<numbered*>(order_.next()));
            decide();
        }
        EXPECT_TRUE(live_.empty());
        while (order_.forget() != nullptr) {
        }
    }
    double worst() const { return shares_.worst(); }

  private:
    std::uint64_t upto(std::uint64_t n) { return random_() % n + 1; }

    void arrive() {
        std::size_t const i = random_() % how_.tenants;
        terms const t{.cost = upto(how_.most_cost), .priority = priority(random_() % 3)};
        ++id_;
        owner_[id_] = i;
        auto& e = live_[id_] = std::make_unique<numbered>(t, id_);
        if (who_[i]->tasks().empty()) {
            shares_.comes(i);
            shares_.takes_turns(i);
        }
        order_.add(*who_[i], *e);
    }
    void decide() {
        auto const at = in_hand_.begin() + static_cast<std::ptrdiff_t>(random_() % in_hand_.size());
        numbered& e = **at;
        in_hand_.erase(at);
        if (random_() % 3 != 0) return take(e);
        auto const since = e.owner->active_since();
        order_.put_back(e);
        EXPECT_EQ(e.owner->active_since(), since);
        if (!at_once_) return;
        // Only those who are new come before it.
        for (std::size_t others = 0; others < how_.tenants; ++others) {
            auto& next = static_cast<numbered&>(*order_.next());
            bool const again = &next == &e;
            take(next);
            if (again) return;
        }
        ADD_FAILURE() << "it was not the first again";
    }
    void take(numbered& e) {
        shares_.served(owner_[e.id], e.cost);
        live_.erase(e.id);
    }

    weights_and_costs const how_;
    bool const at_once_;
    std::mt19937_64 random_;
    turns order_;
    pairs::tenants who_;
    std::map<int, std::unique_ptr<numbered>> live_;
    std::map<int, std::size_t> owner_;
    std::vector<numbered*> in_hand_;
    pairs shares_{who_, how_};
    int id_ = 0;
};

void put_back_often(std::uint64_t usual_seed, weights_and_costs const& how) {
    std::uint64_t const seed = test::seed(usual_seed);
    double worst = 0;
    for (std::uint64_t i = 0; i < 50 && !testing::Test::HasFailure(); ++i) {
        bool const at_once = i % 2 == 0;
        second_thoughts run{seed + i, how, at_once};
        for (int step = 0; step < 2'000; ++step) run.step(step / 200 % 2 == 0 ? 60 : 25);
        run.drain();
        if (at_once) worst = std::max(worst, run.worst());
    }
    EXPECT_LE(worst, 1.0);
    std::printf("[    share ] the largest difference was %.0f %% of its bound\n", 100 * worst);
}

void follow_the_model_often(std::uint64_t usual_seed, weights_and_costs const& how) {
    std::uint64_t const seed = test::seed(usual_seed);
    double worst = 0;
    for (std::uint64_t i = 0; i < 25; ++i) {
        comparison both{seed + i, how};
        for (std::uint64_t step = 0; step < 4'000; ++step) {
            SCOPED_TRACE(step);
            both.step(step / 400 % 2 == 0 ? 60 : 35);  // in waves, so that tenants come and go
            if (testing::Test::HasFatalFailure()) return;
        }
        both.drain();
        worst = std::max(worst, both.worst());
    }
    if (how.removes) return;  // who takes back what it saved for gets less
    EXPECT_LE(worst, 1.0);
    std::printf("[    share ] the largest difference was %.0f %% of its bound\n", 100 * worst);
}

TEST(FairTurnsAtRandom, EqualWeightsAndSmallCostsFollowTheModelWithinTheBound) {
    follow_the_model_often(1, {5, 4, 1, 3, false});
}
TEST(FairTurnsAtRandom, WeightsAndCostsAboveTheQuantumFollowTheModelWithinTheBound) {
    follow_the_model_often(2, {6, 3, 5, 40, false});
}
TEST(FairTurnsAtRandom, CostsFarAboveTheQuantumFollowTheModelWithinTheBound) {
    follow_the_model_often(3, {4, 1, 3, 900, false});
}
TEST(FairTurnsAtRandom, TasksThatAreTakenOutOfTurnFollowTheModel) {
    follow_the_model_often(4, {6, 3, 4, 30, true});
}
TEST(FairTurnsAtRandom, TasksThatAreHeldBackFollowTheModelWithinTheBound) {
    follow_the_model_often(5, {5, 4, 3, 3, false, true});
    follow_the_model_often(6, {6, 3, 4, 40, false, true});
    follow_the_model_often(7, {3, 1, 3, 300, false, true});
}
TEST(FairTurnsAtRandom, TasksThatAreTakenOutWhileTheyAreHeldBackFollowTheModel) {
    follow_the_model_often(8, {6, 3, 4, 30, true, true});
    follow_the_model_often(9, {3, 8, 1, 3, true, true});
}

TEST(FairTurnsAtRandom, WhatIsPutBackIsFirstAgainWithinTheBound) {
    put_back_often(10, {5, 4, 2, 3, false});
    put_back_often(11, {4, 2, 3, 40, false});
}

}  // namespace
}  // namespace rondo::fair
