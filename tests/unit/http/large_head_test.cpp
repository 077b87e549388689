// Heads that nearly fill the block that they are read into: behind them there must be room for
// a body.
#include <gtest/gtest.h>

#include <string>

#include "rondo/http/detail/buffer.hpp"
#include "wire.hpp"

namespace rondo::http {
namespace {

using test::body_in;
using test::served;
using test::wire;

constexpr std::size_t block = detail::buffer::usual;

// Of that size, with the lines at its beginning.
std::string head_of(std::size_t size, std::string head) {
    head += "X-Fill: ";
    head.append(size - head.size() - 4, 'f');
    return head + "\r\n\r\n";
}

// Says how many bytes came, in how many pieces at most, and how much of a trailer.
task<void> measure_body(exchange* x) {
    std::size_t bytes = 0;
    std::size_t pieces = 0;
    for (;;) {
        auto const piece = co_await x->read();
        if (!piece) co_return;
        if (piece->empty()) break;
        bytes += piece->size();
        ++pieces;
    }
    std::string said = std::to_string(bytes) + (pieces < 100 ? " in some" : " in many");
    for (field const& f : x->trailers()) said += " " + std::to_string(f.value.size());
    (void)co_await x->send(said);
}

std::string const large_chunk = "4e20\r\n" + std::string(20000, 'b') + "\r\n";
std::string const large_trailer = "0\r\nX-Sum: " + std::string(4000, 't') + "\r\n\r\n";

TEST(LargeHead, LeavesRoomForABodyAndItsTrailer) {
    served s{measure_body};
    for (std::size_t size : {block / 2, block - 4097, block - 4, block - 3, block - 2, block - 1,
                             block, block + 1, 2 * block - 10}) {
        wire w = s.dial();
        // The head alone is there first.
        w.say(head_of(size, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"));
        w.say(large_chunk);
        w.say(large_trailer);
        EXPECT_EQ(body_in(w.hear_message()), "20000 in some 4000") << "a head of " << size;
    }
}

// The second head lies where the block ends.
TEST(LargeHead, IsNoOtherThanASmallOneAtTheEndOfTheBlock) {
    served s{measure_body};
    std::string const post = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    wire w = s.dial();
    w.say(head_of(block - post.size(), "GET / HTTP/1.1\r\nHost: a\r\n") + post);
    EXPECT_EQ(body_in(w.hear_message()), "0 in some");
    w.say(large_chunk);
    w.say(large_trailer);
    EXPECT_EQ(body_in(w.hear_message()), "20000 in some 4000");
}

}  // namespace
}  // namespace rondo::http
