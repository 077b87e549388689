#include "rondo/http/head.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "characters.hpp"
#include "malformed.hpp"
#include "rondo/http/message.hpp"
#include "support/sanitized.hpp"

namespace rondo::http {
namespace {

using test::malformed_request;

class scan {
  public:
    explicit scan(std::string text) : text_(std::move(text)) {}

    std::expected<request_head, head_error> request() {
        head_search search;
        if (search.look(text_, most_) != head_search::found::complete) {
            return std::unexpected{search.error()};
        }
        return scan_request(std::string_view{text_}.substr(search.skip(), search.length()), most_,
                            table_);
    }
    std::expected<response_head, head_error> response(bool to_head = false) {
        head_search search;
        if (search.look(text_, most_) != head_search::found::complete) {
            return std::unexpected{search.error()};
        }
        return scan_response(std::string_view{text_}.substr(0, search.length()), most_, table_,
                             to_head);
    }

  private:
    std::string text_;
    limits most_;
    std::array<field, 128> table_;
};

TEST(HeadScan, GivesTheStartLineAndTheFields) {
    scan s{"GET /a/b?c=d HTTP/1.1\r\nHost: example.com:8080\r\nX-One:  1 \t\r\nx-two:\r\n\r\n"};
    auto const h = s.request();
    ASSERT_TRUE(h.has_value());
    EXPECT_EQ(h->method, method::get);
    EXPECT_EQ(h->verb, "GET");
    EXPECT_EQ(h->target, "/a/b?c=d");
    EXPECT_EQ(h->path, "/a/b?c=d");
    EXPECT_EQ(h->host, "example.com:8080");
    EXPECT_EQ(h->minor, 1);
    EXPECT_EQ(h->framing, framing::none);
    EXPECT_TRUE(h->keep_alive);
    EXPECT_EQ(h->fields.size(), 3U);
    EXPECT_EQ(h->fields.find("x-one"), "1");
    EXPECT_EQ(h->fields.find("X-TWO"), "");
    EXPECT_EQ(h->fields.find("x-three"), std::nullopt);
}

TEST(HeadScan, SkipsOneEmptyLineBeforeARequest) {
    EXPECT_TRUE(scan{"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"}.request().has_value());
}

TEST(HeadScan, DecidesTheFramingOfARequest) {
    std::string const post = "POST / HTTP/1.1\r\nHost: a\r\n";
    scan with_length{post + "Content-Length: 12\r\n\r\n"};
    auto const l = with_length.request();
    ASSERT_TRUE(l.has_value());
    EXPECT_EQ(l->framing, framing::length);
    EXPECT_EQ(l->length, 12U);
    scan with_chunks{post + "transfer-encoding: Chunked\r\n\r\n"};
    auto const c = with_chunks.request();
    ASSERT_TRUE(c.has_value());
    EXPECT_EQ(c->framing, framing::chunked);
    EXPECT_EQ(scan{post + "\r\n"}.request()->framing, framing::none);
    EXPECT_EQ(scan{post + "Content-Length: 0\r\n\r\n"}.request()->framing, framing::none);
}

TEST(HeadScan, KnowsWhenTheConnectionIsKept) {
    auto const kept = [](std::string const& version, std::string const& connection) {
        return scan{"GET / HTTP/" + version + "\r\nHost: a\r\n" + connection + "\r\n"}
            .request()
            ->keep_alive;
    };
    EXPECT_TRUE(kept("1.1", ""));
    EXPECT_FALSE(kept("1.1", "Connection: close\r\n"));
    EXPECT_FALSE(kept("1.1", "Connection: x, Close\r\n"));
    EXPECT_FALSE(kept("1.0", ""));
    EXPECT_TRUE(kept("1.0", "Connection: Keep-Alive\r\n"));
    EXPECT_FALSE(kept("1.0", "Connection: keep-alive\r\nConnection: close\r\n"));
}

TEST(HeadScan, ExpectsContinueOnlyBeforeABody) {
    std::string const post = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n";
    EXPECT_TRUE(scan{post + "Content-Length: 1\r\n\r\n"}.request()->expects_continue);
    EXPECT_FALSE(scan{post + "\r\n"}.request()->expects_continue);
}

TEST(HeadScan, UpgradesOnlyWhenTheConnectionSaysSo) {
    std::string const get = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n";
    scan asks{get + "Connection: keep-alive, Upgrade\r\n\r\n"};
    EXPECT_EQ(asks.request()->upgrade, "websocket");
    scan does_not{get + "\r\n"};
    EXPECT_EQ(does_not.request()->upgrade, "");
}

TEST(HeadScan, TakesTheHostOfAFullTarget) {
    scan s{"GET http://a.example:81/x?y HTTP/1.1\r\nHost: A.example:81\r\n\r\n"};
    auto const h = s.request();
    ASSERT_TRUE(h.has_value());
    EXPECT_EQ(h->path, "/x?y");
    EXPECT_EQ(h->host, "A.example:81");
    scan bare{"GET http://a HTTP/1.1\r\nHost: a\r\n\r\n"};
    EXPECT_EQ(bare.request()->path, "/");
    scan all{"OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"};
    EXPECT_EQ(all.request()->path, "*");
}

TEST(HeadScan, AcceptsPathsThatStayBelowTheRoot) {
    for (char const* const path : {"/a/../b", "/a/b/../../c", "/./a", "/..a", "/a..", "/...",
                                   "/a%2Fb", "/%7Euser", "/a//b", "/?q=/../..%zz"}) {
        EXPECT_TRUE(
            scan{std::string{"GET "} + path + " HTTP/1.1\r\nHost: a\r\n\r\n"}.request().has_value())
            << path;
    }
}

TEST(HeadScan, RefusesWhatIsMalformed) {
    std::size_t tried = 0;
    for (malformed_request const& m : test::malformed_requests()) {
        if (m.in_body) continue;
        auto const h = scan{m.bytes}.request();
        ASSERT_FALSE(h.has_value()) << m.what;
        EXPECT_EQ(status_of(h.error()), m.status) << m.what;
        EXPECT_NE(std::string_view{reason_of(h.error())}, "") << m.what;
        ++tried;
    }
    EXPECT_GE(tried, 60U);
}

// The answer may not depend on where the block was cut: what the search knows of the first part is
// all that it knows.
TEST(HeadScan, RefusesTheSameWhereverTheBlockIsCut) {
    limits const most;
    std::vector<field> table(most.fields);
    for (malformed_request const& m : test::malformed_requests()) {
        if (m.in_body) continue;
        std::string_view const bytes = m.bytes;
#ifdef RONDO_TEST_SANITIZED
        std::size_t const stride = bytes.size() < 1000 ? 1 : 97;
#else
        std::size_t const stride = 1;
#endif
        for (std::size_t cut = 1; cut < bytes.size(); cut += stride) {
            head_search search;
            auto found = search.look(bytes.substr(0, cut), most);
            if (found == head_search::found::nothing_yet) found = search.look(bytes, most);
            int status = status_of(search.error());
            if (found == head_search::found::complete) {
                auto const block = bytes.substr(search.skip(), search.length());
                auto const head = scan_request(block, most, table);
                status = head ? 200 : status_of(head.error());
            }
            ASSERT_NE(found, head_search::found::nothing_yet) << m.what << " cut at " << cut;
            ASSERT_EQ(status, m.status) << m.what << " cut at " << cut;
        }
    }
}

TEST(HeadScan, FindsTheEndOfABlockThatComesByteByByte) {
    std::string const block = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    std::string const more = block + "GET /next";
    head_search search;
    for (std::size_t n = 1; n < block.size(); ++n) {
        EXPECT_EQ(search.look(std::string_view{more}.substr(0, n), {}),
                  head_search::found::nothing_yet)
            << n;
    }
    EXPECT_EQ(search.look(more, {}), head_search::found::complete);
    EXPECT_EQ(search.length(), block.size());
}

TEST(HeadScan, RefusesAFloodWithoutALineBeforeItEnds) {
    head_search search;
    EXPECT_EQ(search.look("GET /" + std::string(9000, 'a'), {}), head_search::found::error);
    EXPECT_EQ(search.error(), head_error::target_too_long);
}

TEST(HeadScan, DecidesTheFramingOfAResponse) {
    auto const framing_of = [](std::string const& text, bool to_head = false) {
        return scan{"HTTP/1.1 " + text + "\r\n\r\n"}.response(to_head)->framing;
    };
    EXPECT_EQ(framing_of("200 OK\r\nContent-Length: 5"), framing::length);
    EXPECT_EQ(framing_of("200 OK\r\nTransfer-Encoding: chunked"), framing::chunked);
    EXPECT_EQ(framing_of("200 OK"), framing::until_close);
    EXPECT_EQ(framing_of("200 OK\r\nContent-Length: 5", true), framing::none);
    EXPECT_EQ(framing_of("304 Not Modified\r\nContent-Length: 5"), framing::none);
    EXPECT_EQ(framing_of("204 No Content"), framing::none);
    EXPECT_EQ(framing_of("100 Continue"), framing::none);
    EXPECT_EQ(framing_of("200"), framing::until_close);
    EXPECT_FALSE(scan{"HTTP/1.1 200 OK\r\n\r\n"}.response()->keep_alive);
}

TEST(HeadScan, RefusesHostileResponses) {
    for (char const* const text : {
             "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
             "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
             "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
             "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
             "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
             "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
             "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
             "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
             "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
             "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n",
             "HTTP/1.1 20 OK\r\n\r\n",
             "HTTP/1.1 2000 OK\r\n\r\n",
             "HTTP/1.1 099 OK\r\n\r\n",
             "HTTP/1.1  200 OK\r\n\r\n",
             "HTTP/2.0 200 OK\r\n\r\n",
             "HTTPS/1.1 200 OK\r\n\r\n",
             "HTTP/1.1 200 OK\nContent-Length: 5\n\n",
             "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
             "HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
             "HTTP/1.1 200 O\x01K\r\n\r\n",
             "HTTP/1.1 200 OK\r\nSet-Cookie: a\rb\r\n\r\n",
         }) {
        EXPECT_FALSE(scan{text}.response().has_value()) << text;
    }
}

// Eight bytes are looked at together: each byte at each place among them, and behind them.
TEST(Characters, OfAValueEndWhereTheTableSays) {
    for (std::size_t size = 1; size <= 19; ++size) {
        for (std::size_t at = 0; at < size; ++at) {
            for (unsigned byte = 0; byte < 256; ++byte) {
                std::string text(size, 'a');
                text[at] = static_cast<char>(byte);
                std::size_t const fine = is(text[at], in_value) ? size : at;
                ASSERT_EQ(values_at_front(text), fine) << size << " " << at << " " << byte;
            }
        }
    }
    EXPECT_EQ(values_at_front(""), 0U);
    EXPECT_EQ(values_at_front("a\tb \xff\xfe\x80 \t\t\t\t\t\t\t\t, c\r\nx: y"), 19U);
}

// The same for two names, one byte of which differs.
TEST(Fields, TakeLettersOfBothCasesForTheSameAndNothingElse) {
    for (std::size_t const size : {1U, 7U, 8U, 9U, 16U, 17U}) {
        for (std::size_t at = 0; at < size; ++at) {
            std::string a(size, 'A');
            std::string b(size, 'a');
            for (unsigned pair = 0; pair < 256U * 256U; ++pair) {
                a[at] = static_cast<char>(pair % 256);
                b[at] = static_cast<char>(pair / 256);
                bool const same = to_lower(a[at]) == to_lower(b[at]);
                if (same_token(a, b) != same) FAIL() << size << " " << at << " " << pair;
            }
        }
    }
    EXPECT_FALSE(same_token("Content-Length", "content_length"));
}

TEST(Fields, FindTokensInLists) {
    EXPECT_TRUE(lists_token("a, B ,c", "b"));
    EXPECT_FALSE(lists_token("ab, bc", "b"));
    EXPECT_FALSE(lists_token("", "b"));
    EXPECT_TRUE(lists_token("b", "B"));
}

}  // namespace
}  // namespace rondo::http
