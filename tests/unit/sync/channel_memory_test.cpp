// Channels when there is no memory: a send that throws has sent nothing, and everything goes on
// when there is some again.
//
// The values are larger than what is recycled, so that the blocks they are in come from the system
// each time, and the system is this program: on demand its operator new has nothing of that size.
// Not under sanitizers, which bring an operator new of their own.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

#include "rondo/sync/broadcast.hpp"
#include "rondo/sync/mpsc.hpp"
#include "support/sanitized.hpp"

#ifndef RONDO_TEST_SANITIZED

namespace {

struct large {
    int number;
    std::array<std::byte, 4096> rest{};
};

bool exhausted = false;

}  // namespace

void* operator new(std::size_t size) {
    void* const memory = exhausted && size >= sizeof(large) ? nullptr : std::malloc(size);
    if (memory == nullptr) throw std::bad_alloc{};
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace rondo {
namespace {

// While it lives there is no memory.
class exhaustion {
  public:
    exhaustion() { exhausted = true; }
    ~exhaustion() { exhausted = false; }
    exhaustion(exhaustion const&) = delete;
    exhaustion& operator=(exhaustion const&) = delete;
};

TEST(ChannelMemory, AnUnboundedSendThatFindsNoneHasSentNothing) {
    auto [tx, rx] = mpsc::unbounded<large>();
    int sent = 0;
    {
        exhaustion const now;
        EXPECT_THROW(
            for (;;) {
                (void)tx.send({sent});
                ++sent;
            },
            std::bad_alloc);
        EXPECT_THROW((void)tx.send({-1}), std::bad_alloc);
    }
    EXPECT_GT(sent, 0) << "there was a block at the beginning";
    EXPECT_EQ(rx.len(), static_cast<std::size_t>(sent));
    EXPECT_TRUE(tx.send({sent}));
    for (int i = 0; i <= sent; ++i) EXPECT_EQ(rx.try_recv()->number, i);
    EXPECT_EQ(rx.try_recv().error(), mpsc::try_recv_error::empty);
}

TEST(ChannelMemory, ABoundedSendThatFindsNoneGivesItsRoomBackAndAPermitStaysGood) {
    auto [tx, rx] = mpsc::channel<large>(100);
    int sent = 0;
    auto room = tx.try_reserve();
    {
        exhaustion const now;
        EXPECT_THROW(
            for (;;) {
                (void)tx.try_send({sent});
                ++sent;
            },
            std::bad_alloc);
        EXPECT_EQ(tx.capacity(), 99U - static_cast<std::size_t>(sent));
        EXPECT_THROW((void)tx.blocking_send({-1}), std::bad_alloc);
        EXPECT_THROW((void)room->send({-1}), std::bad_alloc);
    }
    EXPECT_TRUE(room->send({sent}));
    for (int i = 0; i <= sent; ++i) EXPECT_EQ(rx.try_recv()->number, i);
    EXPECT_EQ(tx.capacity(), 100U);
}

TEST(ChannelMemory, ABroadcastThatFindsNoneHasSentNothing) {
    auto [tx, rx] = broadcast::channel<large>(2);
    EXPECT_EQ(tx.send({1}), 1U);
    {
        exhaustion const now;
        EXPECT_THROW((void)tx.send({-1}), std::bad_alloc);
    }
    EXPECT_EQ(tx.send({2}), 1U);
    EXPECT_EQ(rx.try_recv()->number, 1);
    EXPECT_EQ(rx.try_recv()->number, 2);
}

TEST(ChannelMemory, AChannelThatFindsNoneIsNotMade) {
    exhaustion const now;
    EXPECT_THROW((void)mpsc::unbounded<large>(), std::bad_alloc);
    EXPECT_THROW((void)mpsc::channel<large>(1), std::bad_alloc);
}

}  // namespace
}  // namespace rondo

#endif
