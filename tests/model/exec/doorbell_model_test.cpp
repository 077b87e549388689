// The bell that ends a worker's sleep in its io_context, explored.
#include "rondo/core/parker.hpp"
#include "rondo/exec/detail/doorbell.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;

// A bell in a house where other noises end a sleep as well.
class house final : public detail::doorbell {
  public:
    int rings() const noexcept { return rings_; }
    void noise() noexcept { parker_.unpark(); }

  private:
    void sleep(time_point) noexcept override {
        parker_.park();
        if (posted_.exchange(false, std::memory_order_acquire)) rang();
    }
    void ring() noexcept override {
        rings_ = rings_ + 1;  // one at a time
        RONDO_CHECK_EXPECT(!posted_.exchange(true, std::memory_order_release));
        parker_.unpark();
    }

    parker parker_;
    atomic<bool> posted_{false};
    cell<int> rings_{0};
};

TEST(DoorbellModel, AnUnparkIsNotLost) {
    EXPECT_HOLDS([] {
        house h;
        cell<int> message{0};
        thread sleeper{[&] {
            h.park(time_point::max());
            RONDO_CHECK_EXPECT(message == 1);
        }};
        message = 1;
        h.unpark();
        sleeper.join();
    });
}

// Two who ring, and a noise in between: one ring is under way at a time.
TEST(DoorbellModel, ItIsNotRungAgainBeforeItRang) {
    EXPECT_HOLDS([] {
        house h;
        atomic<int> told{0};
        thread sleeper{[&] {
            while (told.load(std::memory_order_relaxed) != 2) h.park(time_point::max());
        }};
        thread other{[&] {
            told.fetch_add(1, std::memory_order_relaxed);
            h.unpark();
        }};
        told.fetch_add(1, std::memory_order_relaxed);
        h.noise();
        h.unpark();
        other.join();
        sleeper.join();
    });
}

}  // namespace
}  // namespace rondo
