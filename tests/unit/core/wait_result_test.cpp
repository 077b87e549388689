// What a wait that ended early gives: values that come back, errors of the operation's own.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <expected>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/core/wait_error.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;

// --- a primitive that gives back what it could not take --------------------------------------

// One place for one value: put() waits for the place, take() for the value.
class place final : wait_queue {
  public:
    class put_op : public waiter {
      public:
        put_op(place& to, std::string value) noexcept
            : waiter(to), to_(to), value_(std::move(value)) {}
        bool ready() noexcept {
            std::lock_guard const guard{to_.lock()};
            return !to_.has_waiters() && to_.store(*this);
        }
        void take() noexcept {}
        void hand_on() noexcept {}
        std::pair<wait_error, std::string> refuse(wait_error why) noexcept {
            return {why, std::move(value_)};
        }

      private:
        friend place;
        place& to_;
        std::string value_;
    };

    bounded_wait<put_op> put(std::string value, stop_token token) noexcept {
        return {put_op{*this, std::move(value)}, token};
    }
    std::string remove() noexcept {
        std::string out;
        serve([&] { out = std::exchange(value_, std::nullopt).value(); });
        return out;
    }

  private:
    bool store(put_op& op) noexcept {
        if (value_) return false;
        value_ = std::move(op.value_);
        return true;
    }
    bool grant(waiter& first) noexcept override { return store(static_cast<put_op&>(first)); }

    std::optional<std::string> value_;
};

TEST(BoundedWait, AnOperationMayGiveBackWhatItCouldNotDeliver) {
    manual_loop loop;
    place p;
    stop_source source;
    auto const put = [](place& to, std::string s, stop_token token) -> task<std::string> {
        auto r = co_await to.put(std::move(s), token);
        co_return r ? std::string{"delivered"} : "refused " + r.error().second;
    };
    auto a = spawn(loop, put(p, "a", {}));
    auto b = spawn(loop, put(p, "b", {}));
    auto c = spawn(loop, put(p, "c", source.token()));
    loop.run_ready();
    source.request_stop();
    EXPECT_EQ(p.remove(), "a");
    loop.run_ready();
    EXPECT_EQ(p.remove(), "b");
    EXPECT_EQ(a.blocking_join().value(), "delivered");
    EXPECT_EQ(b.blocking_join().value(), "delivered");
    EXPECT_EQ(c.blocking_join().value(), "refused c");
}

// --- a primitive with errors of its own ------------------------------------------------------

enum class pass_error : std::uint8_t { closed, stopped, timed_out };

// Opens or closes once; until then those who want to pass wait.
class gate final : wait_queue {
  public:
    class pass_op : public waiter {
      public:
        explicit pass_op(gate& g) noexcept : waiter(g), gate_(g) {}
        bool ready() noexcept {
            std::lock_guard const guard{gate_.lock()};
            return gate_.open_.has_value();
        }
        std::expected<int, pass_error> take() noexcept {
            if (!gate_.open_.value()) return std::unexpected{pass_error::closed};
            return 1;
        }
        void hand_on() noexcept {}
        pass_error refuse(wait_error why) noexcept { return reason<pass_error>(why); }

      private:
        gate& gate_;
    };

    wait<pass_op> pass() noexcept { return pass_op{*this}; }
    bounded_wait<pass_op> pass(stop_token token) noexcept { return {pass_op{*this}, token}; }
    bounded_wait<pass_op> pass_for(clock::duration patience) noexcept {
        return {pass_op{*this}, patience};
    }
    std::expected<int, pass_error> blocking_pass(stop_token token) {
        return blocking_wait(pass_op{*this}, token);
    }
    void decide(bool open) noexcept {
        serve([&] { open_ = open; });
    }

  private:
    bool grant(waiter&) noexcept override { return open_.has_value(); }

    std::optional<bool> open_;
};

TEST(BoundedWait, AnOperationWithErrorsOfItsOwnHasOneResultInEveryForm) {
    using result = std::expected<int, pass_error>;
    auto const plain = [](gate& g) -> task<result> { co_return co_await g.pass(); };
    auto const by_token = [](gate& g, stop_token t) -> task<result> {
        co_return co_await g.pass(t);
    };
    auto const in_time = [](gate& g) -> task<result> { co_return co_await g.pass_for(1s); };
    manual_loop loop;
    stop_source source;
    gate closes, opens;
    auto late = spawn(loop, in_time(closes));
    loop.advance(1s);
    auto stopped = spawn(loop, by_token(closes, source.token()));
    auto closed = spawn(loop, plain(closes));
    auto closed_in_time = spawn(loop, in_time(closes));
    auto passed = spawn(loop, by_token(opens, source.token()));
    loop.run_ready();
    opens.decide(true);
    source.request_stop();
    closes.decide(false);
    loop.run_ready();
    EXPECT_EQ(late.blocking_join().value().error(), pass_error::timed_out);
    EXPECT_EQ(stopped.blocking_join().value().error(), pass_error::stopped);
    EXPECT_EQ(closed.blocking_join().value().error(), pass_error::closed);
    EXPECT_EQ(closed_in_time.blocking_join().value().error(), pass_error::closed);
    EXPECT_EQ(passed.blocking_join().value().value(), 1);
    EXPECT_EQ(opens.blocking_pass({}).value(), 1);
}

}  // namespace
}  // namespace rondo
