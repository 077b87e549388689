// charged_twice: a bug that takes days to show, found in a moment and replayed at will.
//
// Clients place orders all day. When the payment service does not answer within two seconds they
// ask again, so the service must not charge an order twice. It looks into its books first, but
// between that look and the entry it waits for the bank. Now and then the network holds a request
// back for just as long as it takes the client to repeat it, and both find the books empty.
//
// In a sim::world a day takes milliseconds and is determined by its seed: we try seeds until one
// shows the bug, replay that seed to see what happened, and try the corrected service, which makes
// its entry before it asks the bank, with all of them.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>

#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/seeds.hpp"
#include "rondo/sim/world.hpp"

namespace {

using namespace std::chrono_literals;
using namespace rondo;

std::string hours_minutes_seconds(time_point t) {
    auto const ms = std::chrono::floor<std::chrono::milliseconds>(t.time_since_epoch());
    std::chrono::hh_mm_ss const parts{ms};
    char text[32];
    std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03d", static_cast<int>(parts.hours().count()),
                  static_cast<int>(parts.minutes().count()),
                  static_cast<int>(parts.seconds().count()),
                  static_cast<int>(parts.subseconds().count()));
    return text;
}

class day_of_orders {
  public:
    static constexpr int clients = 3;
    static constexpr int orders_per_client = 24 * 60;

    day_of_orders(std::uint64_t seed, bool corrected, std::optional<int> watched = {})
        : corrected_(corrected), watched_(watched), world_({.seed = seed}) {}

    // [run]
    sim::outcome run() {
        for (int c = 0; c < clients; ++c) world_.spawn(client(c)).detach();
        return world_.run();
    }
    // [/run]

    std::optional<int> charged_twice() const { return charged_twice_; }
    sim::world const& world() const { return world_; }

  private:
    // [client]
    task<void> client(int number) {
        for (int i = 0; i < orders_per_client; ++i) {
            co_await place(number * orders_per_client + i);
            co_await sleep_for(1min);
        }
    }

    task<void> place(int order) {
        for (int attempt = 1; attempt <= 5; ++attempt) {
            note(order, "the client asks");
            join_handle<void> request = world_.spawn(charge(order));
            auto const answer = co_await request.join_until(world_.now() + 2s);
            if (answer) co_return;
            note(order, "the client has no answer yet");
            co_await sleep_for(500ms);
        }
    }
    // [/client]

    // [service]
    task<void> charge(int order) {
        co_await network();
        if (books_.contains(order)) co_return;  // it was charged, this is a repetition
        if (corrected_) books_.insert(order);
        note(order, "the service finds no entry and asks the bank");
        clock::duration const delay = world_.random().between(20ms, 80ms);
        co_await sleep_for(delay);
        note(order, "the bank has charged the order");
        books_.insert(order);
        if (!charged_.insert(order).second) charged_twice_ = order;
        co_await network();
    }
    // [/service]

    task<void> network() {
        bool const held_back = world_.random().chance(0.0005);
        clock::duration const delay =
            held_back ? world_.random().between(1s, 4s) : world_.random().between(2ms, 30ms);
        co_await sleep_for(delay);
    }

    void note(int order, char const* what) const {
        if (order != watched_) return;
        std::printf("    %s  %s\n", hours_minutes_seconds(world_.now()).c_str(), what);
    }

    bool corrected_;
    std::optional<int> watched_;
    std::set<int> books_;
    std::set<int> charged_;  // what really happened, for the check
    std::optional<int> charged_twice_;
    sim::world world_;
};

void require(bool condition, char const* what) {
    if (condition) return;
    std::printf("this should not be: %s\n", what);
    std::exit(EXIT_FAILURE);
}

}  // namespace

int main() {
    constexpr std::uint64_t days = 30;
    auto const began = std::chrono::steady_clock::now();

    // [find]
    std::optional<std::uint64_t> found;
    for (std::uint64_t const seed : sim::seeds(days)) {
        day_of_orders day{seed, false};
        require(day.run() == sim::outcome::finished, "a day that does not end");
        std::optional<int> const order = day.charged_twice();
        if (!order) continue;
        std::printf("seed %llu: order %d was charged twice\n",
                    static_cast<unsigned long long>(seed), *order);
        found = seed;

        std::printf("the same seed again, watching that order:\n");
        day_of_orders again{seed, false, order};
        require(again.run() == sim::outcome::finished, "a day that does not end");
        require(again.charged_twice() == order, "another order");
        require(again.world().trace_hash() == day.world().trace_hash(), "another day");
        std::printf("the same %llu turns, digest %016llx\n",
                    static_cast<unsigned long long>(again.world().turns()),
                    static_cast<unsigned long long>(again.world().trace_hash()));
        break;
    }
    // [/find]
    if (std::getenv("RONDO_SEED") == nullptr) require(found.has_value(), "no seed shows the bug");

    int right_days = 0;
    for (std::uint64_t const seed : sim::seeds(days)) {
        day_of_orders day{seed, true};
        require(day.run() == sim::outcome::finished, "a day that does not end");
        require(!day.charged_twice(), "the corrected service charges twice");
        ++right_days;
    }
    auto const took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - began);
    std::printf("the corrected service: %d days, %d orders each, none charged twice\n", right_days,
                day_of_orders::clients * day_of_orders::orders_per_client);
    std::printf("all of this took %lld ms\n", static_cast<long long>(took.count()));
}
