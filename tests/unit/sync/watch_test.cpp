// Watch: who sees which value, and what each end learns of the other. What happens when they meet
// in one instant is model-checked in tests/model/sync/watch_model_test.cpp.
#include "rondo/sync/watch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/sync/notify.hpp"
#include "support/counted.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::census;
using test::counted;
using test::foreign;
using test::manual_loop;
using watch::changed_error;
using watch::channel;
using watch::try_changed_error;

using changed = std::expected<void, changed_error>;

// Ends the life of a channel's end.
template <class End>
void drop(End& end) {
    [[maybe_unused]] auto const gone = std::move(end);
}

task<changed> wait_for_change(watch::receiver<int>& rx) { co_return co_await rx.changed(); }

// --- values ----------------------------------------------------------------------------------

TEST(Watch, ANewReceiverHasSeenTheCurrentValue) {
    auto [tx, rx] = channel(1);
    EXPECT_EQ(*rx.borrow(), 1);
    EXPECT_FALSE(rx.borrow().has_changed());
    EXPECT_EQ(rx.has_changed(), false);
    EXPECT_EQ(rx.try_changed().error(), try_changed_error::unchanged);
    EXPECT_EQ(*tx.borrow(), 1);
}

TEST(Watch, ASentValueIsThereAndUnseen) {
    auto [tx, rx] = channel<std::string>("a");
    EXPECT_TRUE(tx.send("b"));
    EXPECT_EQ(rx.has_changed(), true);
    EXPECT_TRUE(rx.borrow().has_changed());
    EXPECT_EQ(*rx.borrow(), "b");
    EXPECT_EQ(rx.borrow()->size(), 1U);
    EXPECT_EQ(rx.has_changed(), true) << "borrow() does not mark it as seen";
    EXPECT_TRUE(rx.borrow_and_update().has_changed());
    EXPECT_EQ(rx.has_changed(), false);
    EXPECT_FALSE(rx.borrow_and_update().has_changed());
}

TEST(Watch, OfManyValuesTheLastIsSeen) {
    auto [tx, rx] = channel(0);
    for (int i = 1; i <= 5; ++i) EXPECT_TRUE(tx.send(i));
    EXPECT_TRUE(rx.try_changed());
    EXPECT_EQ(*rx.borrow(), 5);
    EXPECT_FALSE(rx.try_changed());
}

TEST(Watch, ValuesCanBeMarkedAsSeenOrNot) {
    auto [tx, rx] = channel(0);
    rx.mark_changed();
    EXPECT_EQ(rx.has_changed(), true);
    EXPECT_TRUE(rx.try_changed());
    rx.mark_changed();
    rx.mark_changed();
    rx.mark_unchanged();
    EXPECT_EQ(rx.has_changed(), false);
    EXPECT_TRUE(tx.send(1));
    rx.mark_unchanged();
    EXPECT_EQ(rx.has_changed(), false);
}

TEST(Watch, SendReplaceGivesTheOldValueAndNeedsNoReceiver) {
    watch::sender<std::unique_ptr<int>> tx{std::make_unique<int>(1)};
    auto const refused = tx.send(std::make_unique<int>(2));
    ASSERT_FALSE(refused);
    EXPECT_EQ(*refused.error(), 2) << "it comes back";
    EXPECT_EQ(*tx.send_replace(std::make_unique<int>(3)), 1);
    EXPECT_EQ(**tx.borrow(), 3);
    auto rx = tx.subscribe();
    EXPECT_EQ(**rx.borrow(), 3);
    EXPECT_EQ(rx.has_changed(), false);
}

TEST(Watch, SendModifyChangesItInItsPlace) {
    auto [tx, rx] = channel(std::vector<int>{1});
    int const* const place = rx.borrow()->data();
    tx.send_modify([](std::vector<int>& v) { v[0] = 2; });
    EXPECT_TRUE(rx.try_changed());
    EXPECT_EQ(rx.borrow()->data(), place);
    EXPECT_EQ(rx.borrow()->front(), 2);
}

TEST(Watch, SendIfModifiedTellsOnlyWhatTheFunctionSays) {
    auto [tx, rx] = channel(1);
    EXPECT_FALSE(tx.send_if_modified([](int& v) {
        v = 2;
        return false;
    }));
    EXPECT_EQ(rx.has_changed(), false);
    EXPECT_EQ(*rx.borrow(), 2);
    EXPECT_TRUE(tx.send_if_modified([](int& v) {
        v = 3;
        return true;
    }));
    EXPECT_EQ(rx.has_changed(), true);
}

TEST(Watch, AnExceptionOfTheModifyingFunctionTellsNobodyAndBreaksNothing) {
    auto [tx, rx] = channel(1);
    auto const fails = [](int& v) {
        v = 2;
        throw std::runtime_error{"no"};
    };
    EXPECT_THROW(tx.send_modify(fails), std::runtime_error);
    EXPECT_EQ(rx.has_changed(), false);
    EXPECT_EQ(*rx.borrow(), 2) << "what it had done stays";
    EXPECT_TRUE(tx.send(3));
    EXPECT_EQ(*rx.borrow_and_update(), 3);
}

// Uses the channel that it is a value of when it is destroyed.
class looks_back {
  public:
    looks_back(std::function<void()> f)
        : at_end_(std::make_unique<std::function<void()>>(std::move(f))) {}
    looks_back(looks_back&&) noexcept = default;
    looks_back& operator=(looks_back&&) noexcept = default;
    ~looks_back() {
        if (at_end_) (*at_end_)();
    }

  private:
    std::unique_ptr<std::function<void()>> at_end_;
};

TEST(Watch, ADestructorOfAValueMayUseTheChannel) {
    std::optional<watch::sender<looks_back>> tx;
    int looked = 0;
    tx.emplace(looks_back{[&] {
        ++looked;
        tx->send_modify([](looks_back&) {});
        (void)tx->borrow();
    }});
    auto rx = tx->subscribe();
    EXPECT_TRUE(tx->send(looks_back{[] {}}));
    EXPECT_EQ(looked, 1);
}

TEST(Watch, ValuesLiveAsLongAsTheyAreCurrentOrTheChannelIsThere) {
    census lives;
    {
        auto [tx, rx] = channel(counted{lives, 1});
        EXPECT_EQ(lives.alive(), 1);
        EXPECT_TRUE(tx.send(counted{lives, 2}));
        EXPECT_EQ(lives.alive(), 1);
        drop(tx);
        EXPECT_EQ(rx.borrow()->number, 2);
    }
    EXPECT_EQ(lives.alive(), 0);
}

// --- waiting for a change --------------------------------------------------------------------

TEST(Watch, EveryoneWhoWaitsIsToldOfAChange) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    std::vector<watch::receiver<int>> receivers(100, rx);
    std::vector<join_handle<changed>> waiting;
    waiting.reserve(receivers.size());
    for (auto& r : receivers) waiting.push_back(spawn(loop, wait_for_change(r)));
    loop.run_ready();
    EXPECT_TRUE(tx.send(1));
    EXPECT_FALSE(waiting[0].ended()) << "nobody runs inside send()";
    loop.run_ready();
    for (auto& t : waiting) EXPECT_TRUE(t.blocking_join().value());
    for (auto& r : receivers) EXPECT_EQ(r.has_changed(), false) << "it is marked as seen";
}

TEST(Watch, AValueThatWasNotSeenIsNotWaitedFor) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    auto copy = rx;
    EXPECT_TRUE(tx.send(1));
    auto t = spawn(loop, wait_for_change(rx));
    EXPECT_TRUE(loop.step());
    EXPECT_TRUE(t.ended());
    EXPECT_EQ(copy.has_changed(), true) << "each has its own mark";
    auto second = copy;
    EXPECT_TRUE(second.try_changed()) << "and a copy has that of its original";
}

TEST(Watch, AChangeIsOneThatIsUnseenWhenItIsAwaitedNotWhenTheWaitWasMade) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    auto t = spawn(loop, [](watch::receiver<int>& r, watch::sender<int> const& s) -> task<bool> {
        auto made_early = r.changed();
        EXPECT_TRUE(s.send(1));
        EXPECT_EQ(*r.borrow_and_update(), 1);
        auto const told = co_await std::move(made_early);
        co_return told.has_value();
    }(rx, tx));
    loop.run_ready();
    ASSERT_FALSE(t.ended()) << "it has seen what there is";
    EXPECT_TRUE(tx.send(2));
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), true);
}

TEST(Watch, WhoIsStillInLineSeesTheLatestValue) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    auto t = spawn(loop, wait_for_change(rx));
    loop.run_ready();
    EXPECT_TRUE(tx.send(1));
    EXPECT_TRUE(tx.send(2));
    loop.run_ready();
    EXPECT_TRUE(t.blocking_join().value());
    EXPECT_EQ(*rx.borrow(), 2);
    EXPECT_EQ(rx.has_changed(), false);
}

TEST(Watch, AModificationThatTellsNobodyWakesNobody) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    auto t = spawn(loop, wait_for_change(rx));
    loop.run_ready();
    tx.send_if_modified([](int&) { return false; });
    EXPECT_EQ(loop.run_ready(), 0U);
    tx.send_modify([](int&) {});
    loop.run_ready();
    EXPECT_TRUE(t.ended());
}

// --- close -----------------------------------------------------------------------------------

TEST(Watch, TheLastSendersEndIsToldOnceTheLastValueIsSeen) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    auto other = tx;
    EXPECT_TRUE(tx.send(1));
    drop(tx);
    EXPECT_EQ(rx.has_changed(), true);
    drop(other);
    EXPECT_EQ(rx.has_changed().error(), changed_error::closed);
    EXPECT_TRUE(rx.try_changed()) << "the last value is still to be seen";
    EXPECT_EQ(rx.try_changed().error(), try_changed_error::closed);
    EXPECT_EQ(rx.blocking_changed().error(), changed_error::closed);
    EXPECT_EQ(*rx.borrow(), 1);
}

TEST(Watch, WhoWaitsIsToldThatTheLastSenderHasGone) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    auto t = spawn(loop, wait_for_change(rx));
    loop.run_ready();
    drop(tx);
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value().error(), changed_error::closed);
}

TEST(Watch, ASenderLearnsThatTheLastReceiverHasGone) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    auto other = rx;
    auto const waits = [](watch::sender<int>& s) -> task<void> { co_await s.closed(); };
    auto t = spawn(loop, waits(tx));
    drop(rx);
    loop.run_ready();
    EXPECT_FALSE(t.ended() || tx.is_closed());
    drop(other);
    EXPECT_TRUE(tx.is_closed());
    loop.run_ready();
    EXPECT_TRUE(t.ended());
    auto again = tx.subscribe();
    EXPECT_FALSE(tx.is_closed()) << "it is open again";
    EXPECT_TRUE(tx.send(1));
    EXPECT_EQ(again.has_changed(), true);
}

TEST(Watch, ClosedHasEveryForm) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    stop_source source;
    source.request_stop();
    EXPECT_EQ(tx.blocking_closed(source.token()).error(), wait_error::stopped);
    EXPECT_EQ(tx.blocking_closed_for(1us).error(), wait_error::timed_out);
    EXPECT_EQ(tx.blocking_closed_until(clock::now()).error(), wait_error::timed_out);
    auto t = spawn(loop, [](watch::sender<int>& s, stop_token stop) -> task<int> {
        auto const stopped = co_await s.closed(stop);
        auto const late = co_await s.closed_for(1s);
        auto const in_time = co_await s.closed_until(time_point::max());
        co_return (stopped ? 0 : 1) + (late ? 0 : 1) + (in_time ? 1 : 0);
    }(tx, source.token()));
    loop.advance(1s);
    drop(rx);
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 3);
    tx.blocking_closed();
}

TEST(Watch, TheEndsAreCounted) {
    auto [tx, rx] = channel(0);
    EXPECT_EQ(tx.sender_count(), 1U);
    EXPECT_EQ(tx.receiver_count(), 1U);
    {
        auto const tx2 = tx;
        auto const rx2 = rx, rx3 = tx2.subscribe();
        EXPECT_EQ(tx.sender_count(), 2U);
        EXPECT_EQ(tx.receiver_count(), 3U);
        EXPECT_TRUE(tx.same_channel(tx2));
        EXPECT_TRUE(rx.same_channel(rx3));
    }
    EXPECT_EQ(tx.sender_count(), 1U);
    EXPECT_EQ(tx.receiver_count(), 1U);
    auto other = channel(0);
    EXPECT_FALSE(tx.same_channel(other.sender));
    EXPECT_FALSE(rx.same_channel(other.receiver));
    tx = other.sender;
    rx = other.receiver;
    EXPECT_TRUE(tx.same_channel(other.sender));
    EXPECT_TRUE(rx.same_channel(other.receiver));
    EXPECT_EQ(tx.sender_count(), 2U);
    EXPECT_EQ(tx.receiver_count(), 2U);
}

// --- stop and deadlines ----------------------------------------------------------------------

TEST(Watch, AStoppedWaitHasMarkedNothingAsSeen) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    auto head = spawn(loop, wait_for_change(rx));
    auto other = rx;
    auto behind = spawn(loop, wait_for_change(other));
    loop.run_ready();
    head.request_stop();
    EXPECT_TRUE(tx.send(1));
    loop.run_ready();
    EXPECT_EQ(head.blocking_join().error(), wait_error::stopped);
    EXPECT_EQ(rx.has_changed(), true);
    EXPECT_TRUE(behind.blocking_join().value());
}

TEST(Watch, ATokenOrADeadlineEndsTheWaitWithAValue) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    stop_source source;
    auto a = rx, b = rx, c = rx;
    auto by_token = spawn(loop, [](watch::receiver<int>& r, stop_token t) -> task<changed> {
        co_return co_await r.changed(t);
    }(a, source.token()));
    auto late = spawn(loop, [](watch::receiver<int>& r) -> task<changed> {
        co_return co_await r.changed_for(1s);
    }(b));
    auto in_time = spawn(loop, [](watch::receiver<int>& r, time_point d) -> task<changed> {
        co_return co_await r.changed_until(d);
    }(c, loop.now() + 2s));
    loop.advance(1s);
    source.request_stop();
    EXPECT_TRUE(tx.send(1));
    loop.run_ready();
    EXPECT_EQ(by_token.blocking_join().value().error(), changed_error::stopped);
    EXPECT_EQ(late.blocking_join().value().error(), changed_error::timed_out);
    EXPECT_TRUE(in_time.blocking_join().value());
}

TEST(Watch, LosingAWhenAnyMarksNothingAsSeen) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    notify other;
    auto t = spawn(loop, [](watch::receiver<int>& r, notify& n) -> task<std::size_t> {
        auto const first = co_await when_any(r.changed(), n.notified());
        co_return first.index();
    }(rx, other));
    loop.run_ready();
    other.notify_one();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 1U);
    EXPECT_TRUE(tx.send(1));
    EXPECT_EQ(rx.has_changed(), true);
}

// --- wait_for --------------------------------------------------------------------------------

using found = std::expected<int, changed_error>;

task<found> wait_for_more_than(watch::receiver<int>& rx, int limit) {
    auto const r = co_await rx.wait_for([=](int v) { return v > limit; });
    if (!r) co_return std::unexpected{r.error()};
    co_return **r;
}

TEST(Watch, WaitForEndsWithAValueThatIsRight) {
    manual_loop loop;
    auto [tx, rx] = channel(5);
    auto t = spawn(loop, wait_for_more_than(rx, 5));
    for (int v : {1, 5, 2}) {
        loop.run_ready();
        EXPECT_TRUE(tx.send(v));
    }
    loop.run_ready();
    EXPECT_FALSE(t.ended());
    EXPECT_TRUE(tx.send(6));
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 6);
    EXPECT_EQ(rx.has_changed(), false);
}

TEST(Watch, WaitForLooksAtTheCurrentValueFirstAlsoIfItIsClosed) {
    manual_loop loop;
    auto [tx, rx] = channel(6);
    drop(tx);
    auto right = spawn(loop, wait_for_more_than(rx, 5)),
         wrong = spawn(loop, wait_for_more_than(rx, 7));
    loop.run_ready();
    EXPECT_EQ(right.blocking_join().value(), 6);
    EXPECT_EQ(wrong.blocking_join().value().error(), changed_error::closed);
}

TEST(Watch, AnExceptionOfThePredicateGoesToItsCaller) {
    auto [tx, rx] = channel(1);
    auto const throws = [](int) -> bool { throw std::runtime_error{"no"}; };
    EXPECT_THROW((void)rx.blocking_wait_for(throws), std::runtime_error);
    EXPECT_TRUE(tx.send(2)) << "nothing is left locked";
}

TEST(Watch, AWaitForThatLosesAWhenAnyHasSeenWhatCameMeanwhileAndNothingElse) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    notify other;
    auto t = spawn(loop, [](watch::receiver<int>& r, notify& n) -> task<std::size_t> {
        auto const first = co_await when_any(wait_for_more_than(r, 5), n.notified());
        co_return first.index();
    }(rx, other));
    loop.run_ready();
    EXPECT_TRUE(tx.send(1));
    loop.run_ready();
    EXPECT_EQ(rx.has_changed(), false);
    other.notify_one();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 1U);
    EXPECT_EQ(*rx.borrow(), 1) << "the value is still there";
    EXPECT_TRUE(tx.send(9));
    EXPECT_EQ(rx.has_changed(), true);
}

TEST(Watch, WaitForHasOneLimitForAllItsWaits) {
    manual_loop loop;
    auto [tx, rx] = channel(0);
    auto const waits = [](watch::receiver<int>& r) -> task<found> {
        auto const f = co_await r.wait_for_for([](int v) { return v > 9; }, 3s);
        if (!f) co_return std::unexpected{f.error()};
        co_return **f;
    };
    auto t = spawn(loop, waits(rx));
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(t.ended());
        EXPECT_TRUE(tx.send(i));
        loop.advance(1s);
    }
    EXPECT_EQ(t.blocking_join().value().error(), changed_error::timed_out);
}

TEST(Watch, WaitForHasEveryForm) {
    auto [tx, rx] = channel(0);
    auto const never = [](int) { return false; };
    auto const always = [](int) { return true; };
    stop_source source;
    source.request_stop();
    EXPECT_EQ(rx.blocking_wait_for(never, source.token()).error(), changed_error::stopped);
    EXPECT_EQ(rx.blocking_wait_for_for(never, 1us).error(), changed_error::timed_out);
    EXPECT_EQ(rx.blocking_wait_for_until(never, clock::now()).error(), changed_error::timed_out);
    EXPECT_EQ(**rx.blocking_wait_for(always), 0);
    manual_loop loop;
    auto t = spawn(loop, [](watch::receiver<int>& r, stop_token s) -> task<int> {
        auto const no = [](int) { return false; };
        int right = 0;
        {
            auto const stopped = co_await r.wait_for(no, s);
            right += !stopped && stopped.error() == changed_error::stopped ? 1 : 0;
        }
        {
            auto const late = co_await r.wait_for_until(no, time_point{});
            right += !late && late.error() == changed_error::timed_out ? 1 : 0;
        }
        co_return right;
    }(rx, source.token()));
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 2);
}

// --- other worlds ----------------------------------------------------------------------------

TEST(Watch, ThreadsWaitInEveryForm) {
    auto [tx, rx] = channel(0);
    EXPECT_EQ(rx.blocking_changed_for(1us).error(), changed_error::timed_out);
    EXPECT_EQ(rx.blocking_changed_until(clock::now()).error(), changed_error::timed_out);
    stop_source source;
    std::atomic<int> seen{0};
    std::thread thread{[&, mine = rx]() mutable {
        while (mine.blocking_changed(source.token())) seen = *mine.borrow();
    }};
    for (int i = 1; i <= 100; ++i) {
        EXPECT_TRUE(tx.send(i));
        while (i % 10 == 0 && seen != i) std::this_thread::yield();
    }
    source.request_stop();
    thread.join();
    EXPECT_EQ(seen, 100);
}

TEST(Watch, ManyThreadsSendModifyAndBorrow) {
    auto [tx, rx] = channel(std::pair{0, 0});
    std::atomic<bool> done{false};
    std::vector<std::thread> readers, writers;
    for (int i = 0; i < 2; ++i) {
        readers.emplace_back([&, mine = rx]() mutable {
            while (!done) {
                auto const now = mine.borrow_and_update();
                EXPECT_EQ(now->first, now->second);
            }
        });
        writers.emplace_back([mine = tx] {
            for (int n = 0; n < 2000; ++n) {
                mine.send_modify([](auto& v) {
                    ++v.first;
                    ++v.second;
                });
            }
        });
    }
    for (std::thread& t : writers) t.join();
    done = true;
    for (std::thread& t : readers) t.join();
    EXPECT_EQ(rx.borrow()->first, 4000);
}

TEST(Watch, AForeignCoroutineWaitsToo) {
    auto [tx, rx] = channel(0);
    int seen = 0;
    auto const waits = [](watch::receiver<int>& r, int& got) -> foreign {
        changed const c = co_await r.changed();
        got = c ? *r.borrow() : -1;
    };
    waits(rx, seen);
    EXPECT_TRUE(tx.send(7));
    EXPECT_EQ(seen, 7);
}

}  // namespace
}  // namespace rondo
