#include "rondo/cluster/bytes.hpp"

#include <gtest/gtest.h>

namespace {

using namespace rondo::cluster;

TEST(Bytes, ComeOutAsTheyWentIn) {
    std::vector<std::byte> body;
    byte_writer{body}
        .put(std::uint8_t{7})
        .put(std::uint64_t{0x0102030405060708})
        .put(epoch{9, 2})
        .put(member_run{3, 4})
        .put_text("lemon");
    EXPECT_EQ(body[1], std::byte{1});  // big endian
    byte_reader from{body};
    EXPECT_EQ(from.get<std::uint8_t>(), 7U);
    EXPECT_EQ(from.get<std::uint64_t>(), 0x0102030405060708U);
    EXPECT_EQ(from.get_epoch(), (epoch{9, 2}));
    EXPECT_EQ(from.get_run(), (member_run{3, 4}));
    EXPECT_FALSE(from.complete());
    EXPECT_EQ(from.get_text(), "lemon");
    EXPECT_TRUE(from.complete());
}

TEST(Bytes, WhatIsMissingIsZeroAndAFailureForGood) {
    std::vector<std::byte> const three(3, std::byte{1});
    byte_reader from{three};
    EXPECT_EQ(from.get<std::uint32_t>(), 0U);
    EXPECT_FALSE(from.ok());
    EXPECT_EQ(from.get<std::uint8_t>(), 0U);  // though it is there
    EXPECT_FALSE(from.complete());
}

TEST(Bytes, ALengthIsBelievedAsFarAsTheBytesGo) {
    std::vector<std::byte> body;
    byte_writer{body}.put(std::uint16_t{500}).put(std::uint8_t{1});
    byte_reader from{body};
    EXPECT_TRUE(from.get_text().empty());
    EXPECT_FALSE(from.ok());
}

TEST(Bytes, ATextMayBeTooLong) {
    std::vector<std::byte> body;
    byte_writer{body}.put_text("chocolate");
    EXPECT_EQ(byte_reader{body}.get_text(9), "chocolate");
    byte_reader from{body};
    EXPECT_TRUE(from.get_text(8).empty());
    EXPECT_FALSE(from.ok());
}

}  // namespace
