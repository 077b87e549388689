// A bounded mpsc channel, explored: room, permits and the end. What it shares with the unbounded
// one is explored there. Each scenario with room ends by counting it: none may be lost, none made.
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "rondo/core/executor.hpp"
#include "rondo/sync/mpsc.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using mpsc::recv_error;
using mpsc::send_error;
using mpsc::try_recv_error;

using parcel = std::unique_ptr<cell<int>>;
parcel pack(int n) { return std::make_unique<cell<int>>(n); }

constexpr time_point soon{std::chrono::seconds{1}};  // the model lets it pass at any moment

// Kills mpsc_keep_the_room_of_what_was_received.
TEST(MpscModel, ASenderWaitsForRoomAndGetsIt) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = mpsc::channel<parcel>(1);
            thread sends{[&tx] {
                RONDO_CHECK_EXPECT(tx.blocking_send(pack(1)));
                RONDO_CHECK_EXPECT(tx.blocking_send(pack(2)));
            }};
            RONDO_CHECK_EXPECT(**rx.blocking_recv() == 1);
            RONDO_CHECK_EXPECT(**rx.blocking_recv() == 2);
            sends.join();
            RONDO_CHECK_EXPECT(tx.capacity() == 1);
        },
        1);
}

// Kills mpsc_use_a_permit_twice.
TEST(MpscModel, TwoSendersTakeTurnsAtOnePlace) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = mpsc::channel<int>(1);
            thread one{[&tx] { RONDO_CHECK_EXPECT(tx.blocking_send(1)); }};
            thread two{[&tx] { RONDO_CHECK_EXPECT(tx.blocking_send(2)); }};
            int const first = *rx.blocking_recv();
            one.join();
            two.join();
            RONDO_CHECK_EXPECT(first + *rx.try_recv() == 3);
            RONDO_CHECK_EXPECT(tx.capacity() == 1 && rx.is_empty());
        },
        2);
}

// Kills mpsc_keep_the_room_of_what_was_received.
TEST(MpscModel, ASendThatIsStoppedGivesItsValueBackOrHasSentIt) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = mpsc::channel<parcel>(1);
            RONDO_CHECK_EXPECT(tx.try_send(pack(1)));
            stop_source stop;
            cell<bool> sent{false};
            thread sends{[&] {
                auto const r = tx.blocking_send(pack(2), stop.token());
                sent = r.has_value();
                if (!r) RONDO_CHECK_EXPECT(r.error().why == send_error::stopped);
                if (!r) RONDO_CHECK_EXPECT(*r.error().value == 2);
            }};
            thread stops{[&] { stop.request_stop(); }};
            RONDO_CHECK_EXPECT(**rx.blocking_recv() == 1);
            sends.join();
            stops.join();
            auto const second = rx.try_recv();
            RONDO_CHECK_EXPECT(second.has_value() == sent);
            RONDO_CHECK_EXPECT(tx.capacity() == 1);
        },
        1);
}

// Kills mpsc_keep_the_room_of_what_was_received.
TEST(MpscModel, ASenderThatGivesUpLetsTheNextHaveTheRoom) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = mpsc::channel<int>(1);
            RONDO_CHECK_EXPECT(tx.try_send(0));
            cell<bool> sent{false};
            thread gives_up{[&] { sent = tx.blocking_send_until(1, soon).has_value(); }};
            thread persists{[&tx] { RONDO_CHECK_EXPECT(tx.blocking_send(2)); }};
            RONDO_CHECK_EXPECT(rx.try_recv() == 0);
            gives_up.join();
            if (sent) RONDO_CHECK_EXPECT(rx.try_recv() == 1);
            persists.join();
            RONDO_CHECK_EXPECT(rx.try_recv() == 2);
            RONDO_CHECK_EXPECT(tx.capacity() == 1);
        },
        2);
}

// Kills mpsc_send_although_refused.
TEST(MpscModel, CloseRefusesWhoWaitsForRoomAndGivesTheValueBack) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::channel<parcel>(1);
        RONDO_CHECK_EXPECT(tx.try_send(pack(1)));
        thread sends{[&tx] {
            auto const r = tx.blocking_send(pack(2));
            RONDO_CHECK_EXPECT(!r && r.error().why == send_error::closed);
            RONDO_CHECK_EXPECT(*r.error().value == 2);
        }};
        rx.close();
        sends.join();
        RONDO_CHECK_EXPECT(**rx.blocking_recv() == 1);
        RONDO_CHECK_EXPECT(rx.blocking_recv().error() == recv_error::closed);
    });
}

// Kills mpsc_end_while_permits_are_out.
TEST(MpscModel, OfASendAndACloseOneComesFirst) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::channel<parcel>(2);
        cell<int> accepted{0};
        thread sends{[&] {
            for (int i = 0; i < 2; ++i) {
                auto const r = tx.blocking_send(pack(i));
                if (r) accepted = accepted + 1;
                if (!r) RONDO_CHECK_EXPECT(r.error().why == send_error::closed);
            }
        }};
        rx.close();
        int received = 0;
        while (auto const got = rx.blocking_recv()) {
            RONDO_CHECK_EXPECT(**got == received);
            ++received;
        }
        sends.join();
        RONDO_CHECK_EXPECT(received == accepted);
        RONDO_CHECK_EXPECT(rx.try_recv().error() == try_recv_error::closed);
    });
}

// Kills mpsc_close_to_those_with_permits.
TEST(MpscModel, AClosedReceiverWaitsForWhatComesWithAPermit) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::channel<parcel>(1);
        auto room = tx.try_reserve();
        rx.close();
        thread sends{[&room] { RONDO_CHECK_EXPECT(room->send(pack(7))); }};
        auto const got = rx.blocking_recv();
        RONDO_CHECK_EXPECT(got && **got == 7);
        RONDO_CHECK_EXPECT(!rx.blocking_recv());
        sends.join();
    });
}

// Kills mpsc_drop_a_permit_without_a_word.
TEST(MpscModel, APermitThatIsDroppedEndsTheWaitOfAClosedReceiver) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::channel<parcel>(1);
        thread drops{[room = tx.try_reserve()] {}};
        rx.close();
        RONDO_CHECK_EXPECT(rx.blocking_recv().error() == recv_error::closed);
        drops.join();
    });
}

// Kills mpsc_drop_a_permit_without_a_word.
TEST(MpscModel, AReserveThatIsStoppedEndsTheWaitOfAClosedReceiver) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = mpsc::channel<int>(2);
            auto room = tx.try_reserve();
            stop_source stop;
            thread reserves{[&] { (void)tx.blocking_reserve_many(2, stop.token()); }};
            thread stops{[&] {
                stop.request_stop();
                auto const dropped = std::move(room);
            }};
            rx.close();
            RONDO_CHECK_EXPECT(rx.blocking_recv().error() == recv_error::closed);
            reserves.join();
            stops.join();
        },
        1);
}

// An executor that never runs what is posted to it.
class deaf final : public executor {
  public:
    void post(job&) noexcept override {}
    timer_service& timers() noexcept override { std::terminate(); }
};

// A coroutine of that executor, which is destroyed while it waits.
class destroyable {
  public:
    struct promise_type {
        destroyable get_return_object() noexcept {
            return destroyable{std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
        executor& rondo_executor() noexcept { return *home; }
        promise_type(executor& e, mpsc::sender<int>&) noexcept : home(&e) {}
        executor* home;
    };
    destroyable(destroyable&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    destroyable& operator=(destroyable&&) = delete;
    ~destroyable() {
        if (frame_) frame_.destroy();
    }

  private:
    explicit destroyable(std::coroutine_handle<> frame) noexcept : frame_(frame) {}
    std::coroutine_handle<> frame_;
};

destroyable reserve(executor&, mpsc::sender<int>& tx) { (void)co_await tx.reserve(); }

// Whoever was granted room is gone before it could use it: a closed receiver is told.
// Kills mpsc_hand_room_on_without_a_word.
TEST(MpscModel, RoomThatWasGrantedToNobodyIsHandedOn) {
    EXPECT_HOLDS([] {
        deaf never_runs;
        auto [tx, rx] = mpsc::channel<int>(1);
        RONDO_CHECK_EXPECT(tx.try_send(1));
        std::optional<destroyable> reserves{reserve(never_runs, tx)};
        RONDO_CHECK_EXPECT(rx.blocking_recv() == 1);  // it is granted now, and never resumed
        rx.close();
        thread receives{[&rx] { RONDO_CHECK_EXPECT(!rx.blocking_recv()); }};
        reserves.reset();
        receives.join();
    });
}

// Kills mpsc_say_that_one_is_gone_with_release_alone.
TEST(MpscModel, APermitAndAReceiverThatGoesLeaveNothingBehind) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::channel<std::shared_ptr<int>>(1);
        auto value = std::make_shared<int>(7);
        auto room = tx.try_reserve();
        thread goes{[mine = std::move(rx)] {}};
        {
            auto const back = room->send(value);
            RONDO_CHECK_EXPECT(back || *back.error() == 7);
        }
        goes.join();
        RONDO_CHECK_EXPECT(value.use_count() == 1);
    });
}

// Kills mpsc_go_without_a_word.
TEST(MpscModel, AnOwnedPermitKeepsTheChannelOpen) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::channel<parcel>(1);
        thread sends{[room = std::move(*tx.try_reserve_owned())]() mutable {
            auto const back = room.send(pack(7));
            RONDO_CHECK_EXPECT(back.has_value());
        }};
        {
            auto const gone = std::move(tx);
        }
        auto const got = rx.blocking_recv();
        RONDO_CHECK_EXPECT(got && **got == 7);
        RONDO_CHECK_EXPECT(!rx.blocking_recv());
        sends.join();
    });
}

// Kills mpsc_use_a_permit_twice.
TEST(MpscModel, ManyPermitsComeTogether) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::channel<int>(2);
        RONDO_CHECK_EXPECT(tx.try_send(0));
        RONDO_CHECK_EXPECT(tx.try_send(1));
        thread sends{[&tx] {
            auto room = tx.blocking_reserve_many(2);
            RONDO_CHECK_EXPECT(room && room->size() == 2);
            RONDO_CHECK_EXPECT(room->next()->send(2));
        }};
        RONDO_CHECK_EXPECT(rx.try_recv() == 0);
        RONDO_CHECK_EXPECT(rx.try_recv() == 1);
        sends.join();
        RONDO_CHECK_EXPECT(tx.capacity() == 1);
        RONDO_CHECK_EXPECT(rx.try_recv() == 2);
        RONDO_CHECK_EXPECT(tx.capacity() == 2);
    });
}

// Of the first channel the permit is all that is left.
// Kills mpsc_replace_the_sender_before_the_room.
TEST(MpscModel, AnOwnedPermitThatIsReplacedGivesItsRoomBackToAChannelThatIsThere) {
    EXPECT_HOLDS([] {
        auto room = [] {
            auto const [tx, rx] = mpsc::channel<parcel>(1);
            return tx.try_reserve_owned().value();
        }();
        auto [tx, rx] = mpsc::channel<parcel>(1);
        room = tx.try_reserve_owned().value();
        RONDO_CHECK_EXPECT(room.send(pack(1)));
        RONDO_CHECK_EXPECT(**rx.blocking_recv() == 1);
        RONDO_CHECK_EXPECT(tx.capacity() == 1);
    });
}

// Kills mpsc_keep_the_room_of_many.
TEST(MpscModel, RecvManyGivesAllTheRoomBack) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::channel<int>(2);
        RONDO_CHECK_EXPECT(tx.try_send(0));
        RONDO_CHECK_EXPECT(tx.try_send(1));
        thread sends{[mine = std::move(tx)] { RONDO_CHECK_EXPECT(mine.blocking_send(2)); }};
        std::vector<int> got;
        RONDO_CHECK_EXPECT(rx.blocking_recv_many(got, 2) == 2U);
        sends.join();
        RONDO_CHECK_EXPECT(rx.capacity() == 1);
        RONDO_CHECK_EXPECT(rx.blocking_recv_many(got, 2) == 1U);
        RONDO_CHECK_EXPECT(got.size() == 3 && got[2] == 2);
        RONDO_CHECK_EXPECT(rx.capacity() == 2);
    });
}

// Kills mpsc_sleep_without_looking_again.
TEST(MpscModel, ARecvThatIsStoppedLeavesTheValueAndItsRoom) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = mpsc::channel<parcel>(1);
            stop_source stop;
            thread receives{[&] {
                auto got = rx.blocking_recv(stop.token());
                if (!got) got = rx.blocking_recv();
                RONDO_CHECK_EXPECT(got && **got == 7);
            }};
            thread stops{[&] { stop.request_stop(); }};
            RONDO_CHECK_EXPECT(tx.blocking_send(pack(7)));
            receives.join();
            stops.join();
            RONDO_CHECK_EXPECT(tx.capacity() == 1);
        },
        1);
}

}  // namespace
}  // namespace rondo
