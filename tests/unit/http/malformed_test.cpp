// What must be refused, over real sockets: at once, cut into two at every byte, and with a request
// behind it that nobody may ever see.
#include "malformed.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "wire.hpp"

namespace rondo::http {
namespace {

using test::malformed_request;
using test::served;
using test::wire;

std::string const hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";

// Reads the body, and counts what no handler may see.
class witness {
  public:
    handler serve() {
        return [this](exchange* x) { return count(this, x); };
    }
    int hidden_seen() const noexcept { return hidden_.load(); }
    int completed() const noexcept { return completed_.load(); }

  private:
    static task<void> count(witness* w, exchange* x) {
        if (x->head().path == "/hidden") ++w->hidden_;
        for (;;) {
            auto const piece = co_await x->read();
            if (!piece) co_return;
            if (piece->empty()) break;
        }
        ++w->completed_;
        (void)co_await x->send("seen");
    }

    std::atomic<int> hidden_{0};
    std::atomic<int> completed_{0};
};

TEST(Malformed, IsRefusedAndEndsTheConnection) {
    witness w;
    served s{w.serve()};
    for (malformed_request const& m : test::malformed_requests()) {
        std::string const answer = s.answer_to(m.bytes + hidden);
        EXPECT_EQ(test::status_in(answer), m.status) << m.what << "\n" << answer;
        EXPECT_NE(answer.find("connection: close\r\n"), std::string::npos) << m.what;
        EXPECT_EQ(answer.find("HTTP/1.1 ", 1), std::string::npos) << m.what << ": one answer";
    }
    EXPECT_EQ(w.hidden_seen(), 0);
    EXPECT_EQ(w.completed(), 0);
}

TEST(Malformed, IsRefusedWhereverItIsCut) {
    witness w;
    served s{w.serve()};
    std::size_t tried = 0;
    for (malformed_request const& m : test::malformed_requests()) {
        // The large ones are cut at some of their bytes: there are a hundred thousand of them.
        std::size_t const stride = m.bytes.size() < 1000 ? 1 : m.bytes.size() / 10;
        for (std::size_t cut = 1; cut < m.bytes.size(); cut += stride) {
            wire out = s.dial();
            out.say(std::string_view{m.bytes}.substr(0, cut));
            out.say(m.bytes.substr(cut) + hidden);
            out.say_no_more();
            ASSERT_EQ(test::status_in(out.hear_all()), m.status) << m.what << " cut at " << cut;
            ++tried;
        }
    }
    EXPECT_GT(tried, 3000U);
    EXPECT_EQ(w.hidden_seen(), 0);
    EXPECT_EQ(w.completed(), 0);
}

TEST(Malformed, DoesNotHarmTheRequestsBeforeIt) {
    witness w;
    served s{w.serve()};
    std::string const good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    int served_well = 0;
    for (malformed_request const& m : test::malformed_requests()) {
        std::string const answers = s.answer_to(good + m.bytes + hidden);
        EXPECT_EQ(test::status_in(answers), 200) << m.what;
        std::size_t const second = answers.find("seen") + 4;
        EXPECT_EQ(test::status_in(std::string_view{answers}.substr(second)), m.status) << m.what;
        ++served_well;
    }
    EXPECT_EQ(w.completed(), served_well);
    EXPECT_EQ(w.hidden_seen(), 0);
}

}  // namespace
}  // namespace rondo::http
