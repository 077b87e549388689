// Twenty requests, three at a time. A large one has to wait until all three permits are its own,
// and is not overtaken meanwhile; closing the semaphore turns away whoever has not begun.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/semaphore.hpp"

namespace {

using namespace std::chrono_literals;

class service {
  public:
    // [acquire]
    // Holds `weight` permits for as long as it takes; they go back at the end of the scope.
    rondo::task<void> request(std::size_t weight) {
        auto const permit = co_await limit_.acquire(weight);
        if (!permit) {
            ++turned_away_;  // closed
            co_return;
        }
        in_flight_ += weight;
        most_ = std::max(most_, in_flight_);
        co_await rondo::sleep_for(1ms);
        in_flight_ -= weight;
        ++served_;
    }
    // [/acquire]

    rondo::task<void> day() {
        rondo::environment const& here = co_await rondo::this_environment();
        std::vector<rondo::join_handle<void>> requests;
        for (int i = 0; i < 20; ++i) {
            requests.push_back(spawn(*here.where, request(i == 6 ? 3 : 1)));
        }
        while (served_ < 12) co_await rondo::sleep_for(100us);
        limit_.close();
        for (auto& r : requests) (void)co_await r.join();
    }

    bool report() const {
        std::printf("at most %zu at a time, %d served, %d turned away\n", most_, served_,
                    turned_away_);
        return most_ == 3 && in_flight_ == 0 && served_ >= 12 && turned_away_ > 0 &&
               served_ + turned_away_ == 20;
    }

  private:
    rondo::semaphore limit_{3};
    std::size_t in_flight_ = 0;
    std::size_t most_ = 0;
    int served_ = 0;
    int turned_away_ = 0;
};

}  // namespace

int main() {
    service s;
    rondo::block_on(s.day());
    return s.report() ? EXIT_SUCCESS : EXIT_FAILURE;
}
