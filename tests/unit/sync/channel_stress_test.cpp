// Channels with real threads, for the sanitizers and for what only a machine's own timing finds.
// One vocabulary for all of them:
//
//   smoke        one value
//   spsc         one sender, one receiver, many values: order and number
//   mpsc         several senders (broadcast: several receivers)
//   close        one side ends while the other is at work; every value is accounted for
//   destructors  values with memory of their own, some of which nobody receives
//   stress       all of it, with stops and deadlines at random; the seed fixes what each thread
//   does
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/stop.hpp"
#include "rondo/sync/broadcast.hpp"
#include "rondo/sync/mpsc.hpp"
#include "rondo/sync/oneshot.hpp"
#include "support/seed.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;

constexpr int many = 20'000;
constexpr int senders = 3;
constexpr int endings = 50;

// A value with memory of its own, which counts those that are alive.
class tracked {
  public:
    tracked(std::atomic<int>& alive, int n) : alive_(&alive), number_(std::make_unique<int>(n)) {
        alive_->fetch_add(1);
    }
    tracked(tracked const& other) : tracked(*other.alive_, other.number()) {}
    tracked(tracked&& other) noexcept
        : alive_(std::exchange(other.alive_, nullptr)), number_(std::move(other.number_)) {}
    tracked& operator=(tracked other) noexcept {
        std::swap(alive_, other.alive_);
        std::swap(number_, other.number_);
        return *this;
    }
    ~tracked() {
        if (alive_ != nullptr) alive_->fetch_sub(1);
    }
    int number() const { return *number_; }

  private:
    std::atomic<int>* alive_;
    std::unique_ptr<int> number_;
};

// --- oneshot ---------------------------------------------------------------------------------

TEST(OneshotStress, Smoke) {
    auto [tx, rx] = oneshot::channel<int>();
    std::jthread const sends{[mine = std::move(tx)]() mutable { EXPECT_TRUE(mine.send(7)); }};
    EXPECT_EQ(rx.blocking_recv(), 7);
}

TEST(OneshotStress, Spsc) {
    auto [asks, questions] = mpsc::unbounded<oneshot::sender<int>>();
    std::jthread const answers{[mine = std::move(questions)]() mutable {
        int next = 0;
        while (auto q = mine.blocking_recv()) EXPECT_TRUE(q->send(next++));
    }};
    for (int i = 0; i < many; ++i) {
        auto [tx, rx] = oneshot::channel<int>();
        ASSERT_TRUE(asks.send(std::move(tx)));
        ASSERT_EQ(rx.blocking_recv(), i);
    }
    auto const done = std::move(asks);
}

TEST(OneshotStress, Close) {
    auto [hand_over, taken_over] = mpsc::channel<oneshot::sender<int>>(1);
    std::atomic<int> refused{0};
    std::jthread sends{[&, mine = std::move(taken_over)]() mutable {
        while (auto tx = mine.blocking_recv()) refused += tx->send(7) ? 0 : 1;
    }};
    int missed = 0;
    for (int i = 0; i < many; ++i) {
        auto [tx, rx] = oneshot::channel<int>();
        ASSERT_TRUE(hand_over.blocking_send(std::move(tx)));
        rx.close();
        if (!rx.try_recv()) ++missed;
    }
    {
        auto const done = std::move(hand_over);
    }
    sends.join();
    EXPECT_EQ(missed, refused.load()) << "what was not refused was received";
}

TEST(OneshotStress, Destructors) {
    std::atomic<int> alive{0};
    {
        auto [hand_over, taken_over] = mpsc::channel<oneshot::receiver<tracked>>(4);
        std::jthread const drops{[mine = std::move(taken_over)]() mutable {
            for (int i = 0; auto rx = mine.blocking_recv(); ++i) {
                if (i % 2 == 0) (void)rx->try_recv();
            }
        }};
        for (int i = 0; i < many; ++i) {
            auto [tx, rx] = oneshot::channel<tracked>();
            ASSERT_TRUE(hand_over.blocking_send(std::move(rx)));
            if (i % 3 != 0) (void)tx.send(tracked{alive, i});
        }
        auto const done = std::move(hand_over);
    }
    EXPECT_EQ(alive.load(), 0);
}

TEST(OneshotStress, Stress) {
    std::mt19937_64 random{test::seed(1)};
    for (int i = 0; i < 2000; ++i) {
        auto [tx, rx] = oneshot::channel<int>();
        stop_source stop;
        std::uint64_t const choice = random();
        std::jthread const sends{[mine = std::move(tx), choice]() mutable {
            if (choice % 3 != 0) (void)mine.send(7);
        }};
        std::jthread const stops{[&, choice] {
            if (choice % 5 != 0) stop.request_stop();
        }};
        auto got = rx.blocking_recv(stop.token());
        if (!got && got.error() == oneshot::recv_error::stopped) got = rx.blocking_recv();
        ASSERT_EQ(got.has_value(), choice % 3 != 0) << "a stop loses nothing";
    }
}

// --- mpsc ------------------------------------------------------------------------------------

TEST(MpscStress, Smoke) {
    auto [tx, rx] = mpsc::channel<int>(1);
    std::jthread const sends{[&tx] { EXPECT_TRUE(tx.blocking_send(7)); }};
    EXPECT_EQ(rx.blocking_recv(), 7);
}

TEST(MpscStress, Spsc) {
    for (std::size_t capacity : {1U, 2U, 100U}) {
        auto [tx, rx] = mpsc::channel<int>(capacity);
        std::jthread const sends{[mine = std::move(tx)] {
            for (int i = 0; i < many; ++i) EXPECT_TRUE(mine.blocking_send(i));
        }};
        for (int i = 0; i < many; ++i) ASSERT_EQ(rx.blocking_recv(), i);
        EXPECT_FALSE(rx.blocking_recv());
        EXPECT_EQ(rx.capacity(), capacity);
    }
}

TEST(MpscStress, SpscUnbounded) {
    auto [tx, rx] = mpsc::unbounded<int>();
    std::jthread const sends{[mine = std::move(tx)] {
        for (int i = 0; i < 5 * many; ++i) EXPECT_TRUE(mine.send(i));
    }};
    for (int i = 0; i < 5 * many; ++i) ASSERT_EQ(rx.blocking_recv(), i);
    EXPECT_FALSE(rx.blocking_recv());
}

struct numbered {
    int sender;
    int number;
};

// Each sender's values are in its order.
void expect_in_order(std::array<int, senders>& next, numbered got) {
    ASSERT_EQ(got.number, next.at(static_cast<std::size_t>(got.sender))++);
}

TEST(MpscStress, Mpsc) {
    auto [tx, rx] = mpsc::channel<numbered>(10);
    std::vector<std::jthread> threads;
    for (int s = 0; s < senders; ++s) {
        threads.emplace_back([mine = tx, s] {
            for (int i = 0; i < many; ++i) {
                if (i % 7 == 0) {
                    auto room = mine.blocking_reserve();
                    EXPECT_TRUE(room && room->send({s, i}));
                } else {
                    EXPECT_TRUE(mine.blocking_send({s, i}));
                }
            }
        });
    }
    {
        auto const done = std::move(tx);
    }
    std::array<int, senders> next{};
    while (auto const got = rx.blocking_recv()) expect_in_order(next, *got);
    for (int n : next) EXPECT_EQ(n, many);
    EXPECT_EQ(rx.capacity(), 10U);
}

TEST(MpscStress, MpscUnbounded) {
    auto [tx, rx] = mpsc::unbounded<numbered>();
    std::vector<std::jthread> threads;
    for (int s = 0; s < senders; ++s) {
        threads.emplace_back([mine = tx, s] {
            for (int i = 0; i < many; ++i) EXPECT_TRUE(mine.send({s, i}));
        });
    }
    {
        auto const done = std::move(tx);
    }
    std::array<int, senders> next{};
    std::vector<numbered> batch;
    while (rx.blocking_recv_many(batch, 50)) {
        for (numbered const n : batch) expect_in_order(next, n);
        batch.clear();
    }
    for (int n : next) EXPECT_EQ(n, many);
}

TEST(MpscStress, Close) {
    for (int round = 0; round < endings; ++round) {
        auto [tx, rx] = mpsc::channel<int>(2);
        std::atomic<int> accepted{0};
        std::vector<std::jthread> threads;
        for (int s = 0; s < senders; ++s) {
            threads.emplace_back([&accepted, mine = tx] {
                while (mine.blocking_send(1)) accepted.fetch_add(1);
            });
        }
        int received = 0;
        for (int i = 0; i < 20; ++i) received += *rx.blocking_recv();
        rx.close();
        while (auto const got = rx.blocking_recv()) received += *got;
        threads.clear();
        ASSERT_EQ(received, accepted.load());
        ASSERT_EQ(rx.capacity(), 2U);
    }
}

TEST(MpscStress, CloseUnbounded) {
    for (int round = 0; round < endings; ++round) {
        auto [tx, rx] = mpsc::unbounded<int>();
        std::atomic<int> accepted{0};
        std::vector<std::jthread> threads;
        for (int s = 0; s < senders; ++s) {
            threads.emplace_back([&accepted, mine = tx] {
                while (mine.send(1)) accepted.fetch_add(1);
            });
        }
        int received = 0;
        for (int i = 0; i < 100; ++i) received += *rx.blocking_recv();
        rx.close();
        while (auto const got = rx.blocking_recv()) received += *got;
        threads.clear();
        ASSERT_EQ(received, accepted.load());
    }
}

// The receiver goes in the middle; nothing that was sent stays in the channel, although senders
// live on.
TEST(MpscStress, Destructors) {
    for (int round = 0; round < endings; ++round) {
        std::atomic<int> alive{0};
        auto [bounded_tx, bounded_rx] = mpsc::channel<tracked>(5);
        auto [tx, rx] = mpsc::unbounded<tracked>();
        std::vector<std::jthread> threads;
        for (int s = 0; s < senders; ++s) {
            threads.emplace_back([&alive, mine = bounded_tx, s] {
                while (mine.blocking_send(tracked{alive, s})) {
                }
            });
            threads.emplace_back([&alive, mine = tx, s] {
                while (mine.send(tracked{alive, s})) {
                }
            });
        }
        for (int i = 0; i < 50; ++i) {
            EXPECT_TRUE(bounded_rx.blocking_recv());
            EXPECT_TRUE(rx.blocking_recv());
        }
        {
            auto const gone = std::move(bounded_rx);
            auto const gone_too = std::move(rx);
        }
        threads.clear();
        ASSERT_EQ(alive.load(), 0);
        ASSERT_TRUE(bounded_tx.is_closed() && tx.is_closed());
    }
}

TEST(MpscStress, Stress) {
    std::uint64_t const seed = test::seed(1);
    std::atomic<int> alive{0};
    std::atomic<int> sent{0};
    int received = 0;
    {
        auto [tx, rx] = mpsc::channel<tracked>(3);
        std::vector<std::jthread> threads;
        for (int s = 0; s < senders; ++s) {
            threads.emplace_back([&, mine = tx, s] {
                std::mt19937_64 random{seed + static_cast<std::uint64_t>(s)};
                for (int i = 0; i < many / 10; ++i) {
                    stop_source stop;
                    switch (random() % 5) {
                        case 0:
                            sent += mine.try_send(tracked{alive, i}) ? 1 : 0;
                            break;
                        case 1:
                            sent += mine.blocking_send_for(tracked{alive, i}, 1us) ? 1 : 0;
                            break;
                        case 2: {
                            std::jthread const stops{[&stop] { stop.request_stop(); }};
                            sent += mine.blocking_send(tracked{alive, i}, stop.token()) ? 1 : 0;
                            break;
                        }
                        case 3:
                            (void)mine.blocking_reserve_many_for(2, 1us);
                            break;
                        default:
                            auto room = mine.blocking_reserve_owned();
                            sent += room->send(tracked{alive, i}) ? 1 : 0;
                    }
                }
            });
        }
        {
            auto const done = std::move(tx);
        }
        std::mt19937_64 random{seed};
        for (bool open = true; open;) {
            auto const got = random() % 2 == 0 ? rx.blocking_recv_for(1us) : rx.blocking_recv();
            if (got) ++received;
            open = got || got.error() != mpsc::recv_error::closed;
        }
        EXPECT_EQ(rx.capacity(), 3U);
    }
    EXPECT_EQ(received, sent.load());
    EXPECT_EQ(alive.load(), 0);
}

// --- broadcast -------------------------------------------------------------------------------

TEST(BroadcastStress, Smoke) {
    auto [tx, rx] = broadcast::channel<int>(1);
    std::jthread const sends{[&tx] { EXPECT_EQ(tx.send(7), 1U); }};
    EXPECT_EQ(rx.blocking_recv(), 7);
}

// Receives to the end: the values come in order, and those that are missing are accounted for.
void expect_all_accounted_for(broadcast::receiver<tracked> rx, int count) {
    int next = 0;
    for (;;) {
        auto const got = rx.blocking_recv();
        if (got) {
            ASSERT_EQ(got->number(), next++);
        } else if (got.error().why == broadcast::recv_failure::lagged) {
            next += static_cast<int>(got.error().missed);
        } else {
            break;
        }
    }
    EXPECT_EQ(next, count);
}

TEST(BroadcastStress, Spsc) {
    for (std::size_t capacity : {1U, 2U, 100U}) {
        std::atomic<int> alive{0};
        {
            auto [tx, rx] = broadcast::channel<tracked>(capacity);
            std::jthread const sends{[&alive, mine = std::move(tx)] {
                for (int i = 0; i < many; ++i) EXPECT_EQ(mine.send(tracked{alive, i}), 1U);
            }};
            expect_all_accounted_for(std::move(rx), many);
        }
        EXPECT_EQ(alive.load(), 0);
    }
}

TEST(BroadcastStress, Mpsc) {
    std::atomic<int> alive{0};
    {
        auto [tx, rx] = broadcast::channel<tracked>(3);
        std::vector<std::jthread> threads;
        for (int r = 0; r < 3; ++r) {
            threads.emplace_back([mine = tx.subscribe()]() mutable {
                expect_all_accounted_for(std::move(mine), many);
            });
        }
        {
            auto const gone = std::move(rx);
        }
        for (int i = 0; i < many; ++i) EXPECT_EQ(tx.send(tracked{alive, i}), 3U);
        auto const done = std::move(tx);
    }
    EXPECT_EQ(alive.load(), 0);
}

TEST(BroadcastStress, Close) {
    for (int round = 0; round < endings; ++round) {
        auto [tx, rx] = broadcast::channel<int>(4);
        std::vector<std::jthread> threads;
        for (int s = 0; s < 2; ++s) {
            threads.emplace_back([mine = tx] {
                while (mine.send(1)) {
                }
            });
        }
        std::jthread const waits{[mine = std::move(tx)] { mine.blocking_closed(); }};
        for (int i = 0; i < 20; ++i) (void)rx.blocking_recv();
        auto const gone = std::move(rx);
    }
}

TEST(BroadcastStress, Destructors) {
    for (int round = 0; round < endings; ++round) {
        std::atomic<int> alive{0};
        {
            broadcast::sender<tracked> const tx{2};
            std::vector<std::jthread> threads;
            for (int r = 0; r < 3; ++r) {
                threads.emplace_back([mine = tx.subscribe(), r]() mutable {
                    for (int i = 0; i < 20 * r; ++i) (void)mine.try_recv();
                });
            }
            for (int i = 0; i < 100; ++i) (void)tx.send(tracked{alive, i});
            threads.clear();
            ASSERT_EQ(alive.load(), 0) << "no receiver is left, so no value is";
        }
    }
}

TEST(BroadcastStress, Stress) {
    std::uint64_t const seed = test::seed(1);
    std::atomic<int> alive{0};
    {
        broadcast::sender<tracked> tx{4};
        std::vector<std::jthread> threads;
        for (std::uint64_t r = 0; r < 3; ++r) {
            threads.emplace_back([seed, r, mine = std::optional{tx.subscribe()}]() mutable {
                std::mt19937_64 random{seed + r};
                for (bool open = true; open;) {
                    if (random() % 100 == 0) mine = mine->resubscribe();
                    auto const got =
                        random() % 2 == 0 ? mine->blocking_recv_for(1us) : mine->blocking_recv();
                    open = got || got.error().why != broadcast::recv_failure::closed;
                }
            });
        }
        std::vector<std::jthread> sending;
        for (int s = 0; s < 2; ++s) {
            sending.emplace_back([&alive, mine = tx] {
                for (int i = 0; i < many; ++i) (void)mine.send(tracked{alive, i});
            });
        }
        auto const done = std::move(tx);
    }
    EXPECT_EQ(alive.load(), 0);
}

}  // namespace
}  // namespace rondo
