// What is sent of an answer, and what is counted of it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rondo/http/server.hpp"
#include "rondo/sync/notify.hpp"
#include "wire.hpp"

namespace rondo::http {
namespace {

using test::served;
using test::wire;

constexpr std::size_t much = std::size_t{64} << 20;  // more than the systems take unasked

// Of what nobody got nobody pays.
TEST(Sending, CountsOfAFileWhatWasSent) {
    int const file = ::memfd_create("much", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(file, static_cast<off_t>(much)), 0);
    {
        notify ended;
        std::atomic<std::uint64_t> sent{0};
        served s{[&](exchange* x) {
            return [](exchange* on, int f, notify* end,
                      std::atomic<std::uint64_t>* count) -> task<void> {
                (void)co_await on->send_file(f, 0, much);
                *count = on->sent();
                end->notify_one();
            }(x, file, &ended, &sent);
        }};
        wire w = s.dial();
        w.say("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
        ended.blocking_notified();
        EXPECT_EQ(sent.load(), 0U);
        w.hear_until("\r\n\r\n");
        w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        w.hear(1000);
        w.close();  // while something is unread: a reset
        ended.blocking_notified();
        EXPECT_GE(sent.load(), 1U);
        EXPECT_LT(sent.load(), much);
    }
    ::close(file);
}

}  // namespace
}  // namespace rondo::http
