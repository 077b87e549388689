// The intake by itself, in one thread: who is let in, and who is told.
#include "rondo/exec/detail/intake.hpp"

#include <gtest/gtest.h>

#include <array>

namespace rondo::detail {
namespace {

struct idle_job final : job {
    idle_job() noexcept : job([](job&) noexcept {}) {}
};

// A push that counts its wake-ups.
class push final : public intake::push_op {
  public:
    push(intake& into, job& j) noexcept : push_op(into, j) {
        wake_with({[](void* p) noexcept { ++static_cast<push*>(p)->woken; }, this});
    }
    intake::outcome take() noexcept { return decided(); }
    int woken = 0;
};

class IntakeTest : public testing::Test {
  protected:
    void fill(std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            ASSERT_EQ(intake_.try_push(jobs_.at(i)), intake::outcome::accepted);
        }
    }
    job* take() {
        bool unused = false;
        return intake_.take(seat_, nullptr, unused);
    }

    std::array<idle_job, 6> jobs_;
    thread_seat seat_;
    intake intake_{4, 1, 1};
};

TEST_F(IntakeTest, WhoWaitsIsLetInAtOneHalfAndNotOvertakenBefore) {
    fill(4);
    push waits{intake_, jobs_[4]};
    ASSERT_FALSE(waits.enter());
    EXPECT_EQ(take(), &jobs_[0]);
    EXPECT_EQ(intake_.try_push(jobs_[5]), intake::outcome::full);
    EXPECT_EQ(waits.woken, 0);
    EXPECT_EQ(take(), &jobs_[1]);
    EXPECT_EQ(waits.woken, 1);
    EXPECT_EQ(waits.take(), intake::outcome::accepted);
    for (std::size_t const i : {2U, 3U, 4U}) EXPECT_EQ(take(), &jobs_.at(i));
}

TEST_F(IntakeTest, RefusingTellsWhoWaits) {
    fill(4);
    push waits{intake_, jobs_[4]};
    ASSERT_FALSE(waits.enter());
    intake_.refuse();
    EXPECT_EQ(waits.woken, 1);
    EXPECT_EQ(waits.take(), intake::outcome::closed);
    EXPECT_EQ(intake_.try_push(jobs_[5]), intake::outcome::closed);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(take(), &jobs_.at(i));
}

TEST_F(IntakeTest, WhoWasWokenAlreadyDoesNotGetUpByItself) {
    ASSERT_EQ(intake_.lie_down(seat_), intake::rest::look_again);
    EXPECT_TRUE(intake_.get_up(seat_));
    ASSERT_EQ(intake_.lie_down(seat_), intake::rest::look_again);
    EXPECT_TRUE(intake_.idle());
    fill(1);
    EXPECT_FALSE(intake_.idle());
    EXPECT_FALSE(intake_.get_up(seat_));
    seat_.park();  // returns at once
    EXPECT_EQ(take(), &jobs_[0]);
}

TEST_F(IntakeTest, NobodyIsWokenWhileSomebodySearches) {
    intake two{4, 2, 1};
    thread_seat other;
    ASSERT_EQ(two.lie_down(other), intake::rest::look_again);
    ASSERT_EQ(two.lie_down(seat_), intake::rest::look_again);
    ASSERT_EQ(two.try_push(jobs_[0]), intake::outcome::accepted);
    seat_.park();  // returns at once: the last who lay down was woken, and searches
    ASSERT_EQ(two.try_push(jobs_[1]), intake::outcome::accepted);
    EXPECT_TRUE(two.get_up(other));  // so it was asleep
    bool left_search = true;
    EXPECT_EQ(two.take(other, nullptr, left_search), &jobs_[0]);
    EXPECT_FALSE(left_search);
    EXPECT_EQ(two.take(seat_, nullptr, left_search), &jobs_[1]);
    EXPECT_TRUE(left_search);
}

// The worker that was woken has lost its processor, as far as one can tell.
TEST_F(IntakeTest, WhoIsWokenAndDoesNotComeIsNotWaitedForWhileJobsPileUp) {
    std::array<idle_job, 64> many;
    intake three{64, 3, 1};
    thread_seat first, second, third;
    for (thread_seat* const s : {&third, &second, &first}) {
        ASSERT_EQ(three.lie_down(*s), intake::rest::look_again);
    }
    auto const push_up_to = [&](std::size_t size) {
        while (three.size() < size) {
            ASSERT_EQ(three.try_push(many.at(three.size())), intake::outcome::accepted);
        }
    };
    push_up_to(1);
    first.park();  // returns at once, and is not heard of again
    push_up_to(15);
    EXPECT_TRUE(three.get_up(second));  // it sleeps still
    ASSERT_EQ(three.lie_down(second), intake::rest::stay_up);
    for (std::size_t i = 0; i < 15; ++i) {
        bool unused = false;
        EXPECT_EQ(three.take(second, nullptr, unused), &many.at(i));
    }
    ASSERT_EQ(three.lie_down(second), intake::rest::park);  // as the first one searches
    push_up_to(16);
    EXPECT_FALSE(three.get_up(second));
    second.park();  // returns at once
    push_up_to(31);
    EXPECT_TRUE(three.get_up(third));
    bool unused = false;
    while (three.take(third, nullptr, unused) != nullptr) {
    }
}

// The same for jobs that come many at a time, and pass the number at which one more is woken.
TEST_F(IntakeTest, WhoIsWokenAndDoesNotComeIsNotWaitedForByManyAtOnce) {
    std::array<idle_job, 130> many;
    intake two{4, 2, 1};
    thread_seat first, second;
    for (thread_seat* const s : {&second, &first}) {
        ASSERT_EQ(two.lie_down(*s), intake::rest::look_again);
    }
    ASSERT_TRUE(two.post(many[0]));
    first.park();  // returns at once, and is not heard of again
    job_queue others;
    for (std::size_t i = 1; i < many.size(); ++i) others.push(many.at(i));
    ASSERT_TRUE(two.post_all(others));
    EXPECT_FALSE(two.get_up(second));
    bool unused = false;
    while (two.take(second, nullptr, unused) != nullptr) {
    }
}

// It is full, but by the time that the one who pushes would wait everything has been taken.
TEST_F(IntakeTest, WhoIsLetInWithoutAWaitWakesASleeper) {
    fill(4);
    push late{intake_, jobs_[4]};
    ASSERT_FALSE(late.ready());
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(take(), &jobs_.at(i));
    ASSERT_EQ(intake_.lie_down(seat_), intake::rest::look_again);
    ASSERT_TRUE(late.enter());
    EXPECT_EQ(late.take(), intake::outcome::accepted);
    EXPECT_FALSE(intake_.get_up(seat_));  // it was woken
    seat_.park();                         // returns at once
    EXPECT_EQ(take(), &jobs_[4]);
}

// The worker takes the job and sleeps again, all before the one who pushed it goes on.
TEST_F(IntakeTest, APushThatDidNotWaitWakesOnce) {
    ASSERT_EQ(intake_.lie_down(seat_), intake::rest::look_again);
    push accepted{intake_, jobs_[0]};
    ASSERT_TRUE(accepted.ready());
    seat_.park();  // returns at once
    ASSERT_EQ(take(), &jobs_[0]);
    ASSERT_EQ(intake_.lie_down(seat_), intake::rest::look_again);
    EXPECT_EQ(accepted.take(), intake::outcome::accepted);
    EXPECT_TRUE(intake_.get_up(seat_));  // nobody woke it
}

}  // namespace
}  // namespace rondo::detail
