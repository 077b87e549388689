#include "watch.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace rondo::http::detail {
namespace {

using namespace std::chrono_literals;

class somebody : public watched {
  public:
    explicit somebody(watch& by) : watched(by) {}
    using watched::in;

  private:
    void expired() noexcept override {}
};

// real time: what is asked is whether a deadline is so long from now
void let_pass(clock::duration d) {
    for (time_point const end = clock::now() + d; clock::now() < end;) {
    }
}

TEST(Watch, GivesAtLeastTheTimeThatIsAskedFor) {
    watch w{50ms};
    somebody const s{w};
    for (int i = 0; i < 100; ++i) {
        let_pass(1ms);
        if (i % 10 == 0) w.look();
        time_point const now = clock::now();
        EXPECT_GE(s.in(1s), now + 1s);
    }
}

TEST(Watch, GivesItAlsoAfterATurnThatHeldUpTheNextLook) {
    watch w{5ms};
    somebody const s{w};
    let_pass(100ms);
    time_point const now = clock::now();
    EXPECT_GE(s.in(1s), now + 1s);
}

TEST(Watch, GivesItAlsoWhileTheNextLookIsThatOfALongerTick) {
    watch w{10s};
    somebody const s{w};
    w.tick(5ms);
    let_pass(100ms);
    time_point const now = clock::now();
    EXPECT_GE(s.in(1s), now + 1s);
}

TEST(Watch, IsNeverOverWithTheLongestTime) {
    watch w{5ms};
    somebody const s{w};
    EXPECT_EQ(s.in(clock::duration::max()), time_point::max());
    let_pass(20ms);
    EXPECT_EQ(s.in(clock::duration::max()), time_point::max());
}

}  // namespace
}  // namespace rondo::http::detail
