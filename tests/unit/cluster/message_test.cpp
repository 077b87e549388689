#include "rondo/cluster/message.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string_view>

namespace {

using namespace rondo::cluster;

secret key_of(unsigned char fill, std::uint64_t cluster = 5) {
    secret s{cluster, {}};
    s.key.fill(static_cast<std::byte>(fill));
    return s;
}
message some_message(std::size_t body = 10) {
    message m;
    m.type = 3;
    m.source = {7, 0x1122334455667788};
    m.destination = 9;
    m.request = {{7, 0x1122334455667788}, 42};
    m.epoch = {6, 2};
    m.body.assign(body, std::byte{0xab});
    return m;
}

TEST(Message, ComesOutAsItWentIn) {
    for (std::size_t const body : {std::size_t{0}, std::size_t{1}, longest_body}) {
        message const m = some_message(body);
        std::vector<std::byte> const bytes = encode(m, key_of(1));
        EXPECT_EQ(bytes.size(), body + message_overhead);
        auto const back = decode(bytes, key_of(1));
        ASSERT_TRUE(back);
        EXPECT_EQ(*back, m);
    }
}

TEST(Message, EveryFlippedBitIsRefused) {
    std::vector<std::byte> bytes = encode(some_message(), key_of(1));
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        std::byte const mask = std::byte{1} << (bit % 8);
        bytes[bit / 8] ^= mask;
        EXPECT_FALSE(decode(bytes, key_of(1))) << "bit " << bit;
        bytes[bit / 8] ^= mask;
    }
    EXPECT_TRUE(decode(bytes, key_of(1)));
}

TEST(Message, EveryOtherLengthIsRefused) {
    std::vector<std::byte> bytes = encode(some_message(), key_of(1));
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        EXPECT_FALSE(decode(std::span{bytes}.first(length), key_of(1))) << length;
    }
    bytes.push_back(std::byte{0});
    EXPECT_EQ(decode(bytes, key_of(1)).error(), refusal::not_signed);
    bytes.resize(longest_message + 1);
    EXPECT_EQ(decode(bytes, key_of(1)).error(), refusal::wrong_size);
}

TEST(Message, TheReasonIsGiven) {
    std::vector<std::byte> const bytes = encode(some_message(), key_of(1));
    EXPECT_EQ(decode(bytes, key_of(2)).error(), refusal::not_signed);
    EXPECT_EQ(decode(bytes, key_of(1, 6)).error(), refusal::other_cluster);
    std::vector<std::byte> strange = bytes;
    strange[0] = std::byte{0};
    EXPECT_EQ(decode(strange, key_of(1)).error(), refusal::not_ours);
    EXPECT_EQ(decode({}, key_of(1)).error(), refusal::wrong_size);
}

TEST(Message, NoiseIsRefused) {
    std::minstd_rand random{1};
    for (int i = 0; i < 2000; ++i) {
        std::vector<std::byte> noise(random() % 1300);
        for (std::byte& b : noise) b = static_cast<std::byte>(random() % 256);
        EXPECT_FALSE(decode(noise, key_of(1)));
    }
}

TEST(Epoch, ATermGoesBeforeALeader) {
    EXPECT_LT((epoch{1, 9}), (epoch{2, 1}));
    EXPECT_LT((epoch{2, 1}), (epoch{2, 2}));
}

}  // namespace
