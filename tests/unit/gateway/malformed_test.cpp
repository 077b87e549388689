// What must be refused, with an upstream behind it that answers whatever it gets: neither the
// malformed part nor what a client hides behind it may ever come there.
#include "unit/http/malformed.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>

#include "forwarding.hpp"
#include "running.hpp"
#include "support/sanitized.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {
namespace {

using test::malformed_request;
using test::scripted_server;
using test::wire;

std::string const hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";

// Reads to the end, and counts what it may not get.
class recording_upstream {
  public:
    std::string address() const { return quoted(server_); }
    int hidden_seen() const noexcept { return hidden_; }
    int whole_bodies() const noexcept { return whole_; }

  private:
    std::atomic<int> hidden_{0};
    std::atomic<int> whole_{0};
    scripted_server server_{[this](wire& w) {
        std::string const all = w.read_to_end();
        if (all.find("/hidden") != std::string::npos) ++hidden_;
        if (all.ends_with("0\r\n\r\n")) ++whole_;
    }};
};

std::string answer_to(running const& r, std::string_view first, std::string_view second) {
    wire w = r.connect();
    w.send(first);
    w.send(second);
    w.end_sending();
    return w.read_to_end();
}

TEST(MalformedThroughProxy, IsRefusedAndNothingBehindItIsForwarded) {
    recording_upstream up;
    {
        running r{forwarding_to(up.address())};
        for (malformed_request const& m : test::malformed_requests()) {
            std::string const answer = answer_to(r, m.bytes, hidden);
            EXPECT_EQ(status_of(answer), std::to_string(m.status)) << m.what;
            EXPECT_EQ(answer.find("HTTP/1.1 ", 1), std::string::npos) << m.what << ": one answer";
        }
    }
    EXPECT_EQ(up.hidden_seen(), 0);
    EXPECT_EQ(up.whole_bodies(), 0);
}

// Here the upload is under way when the rest comes, as the head was good.
TEST(MalformedThroughProxy, OfABodyIsRefusedWhereverItIsCut) {
#ifdef RONDO_TEST_SANITIZED
    constexpr std::size_t stride = 7;
#else
    constexpr std::size_t stride = 1;
#endif
    recording_upstream up;
    {
        running r{forwarding_to(up.address())};
        for (malformed_request const& m : test::malformed_chunks()) {
            if (m.bytes.size() > 1000) continue;
            std::string_view const bytes = m.bytes;
            for (std::size_t cut = bytes.find("\r\n\r\n"); cut < bytes.size(); cut += stride) {
                std::string const rest = std::string{bytes.substr(cut)} + hidden;
                ASSERT_EQ(status_of(answer_to(r, bytes.substr(0, cut), rest)), "400")
                    << m.what << " cut at " << cut;
            }
        }
    }
    EXPECT_EQ(up.hidden_seen(), 0);
    EXPECT_EQ(up.whole_bodies(), 0);
}

// An upstream that answers before it has read: the download ends while the upload goes wrong.
TEST(MalformedThroughProxy, HidesNothingFromAnUpstreamThatAnswersEarly) {
    std::atomic<int> hidden_seen{0};
    {
        scripted_server up{[&](wire& w) {
            (void)w.read_head();
            w.send(ok);
            if (w.read_to_end().find("/hidden") != std::string::npos) ++hidden_seen;
        }};
        running r{forwarding_to(quoted(up))};
        for (malformed_request const& m : test::malformed_chunks()) {
            std::size_t const head = m.bytes.find("\r\n\r\n") + 4;
            std::string_view const bytes = m.bytes;
            std::string const answer =
                answer_to(r, bytes.substr(0, head), std::string{bytes.substr(head)} + hidden);
            EXPECT_EQ(answer.find("HTTP/1.1 ", 1), std::string::npos) << m.what << ": one answer";
        }
    }
    EXPECT_EQ(hidden_seen, 0);
}

}  // namespace
}  // namespace rondo::gateway
