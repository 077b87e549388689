// Files over real sockets. Which answer a file gets is tried in file_answer_test.cpp of http.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "rondo/http/detail/http_date.hpp"
#include "rondo/http/files.hpp"
#include "running.hpp"
#include "support/child_process.hpp"

namespace rondo::gateway {
namespace {

namespace fs = std::filesystem;

class Site : public testing::Test {
  protected:
    Site() {
        std::signal(SIGPIPE, SIG_DFL);  // programs that use the library need not know of it
        scratch.write("secret", "outside");
        scratch.write("site/index.html", "<h1>root</h1>");
        scratch.write("site/a.txt", "0123456789");
        scratch.write("site/sub/index.html", "sub");
        scratch.write("site/empty/x", "");
        scratch.write("site/a b.txt", "space");
        scratch.write("site/large.bin", large);
        fs::create_directory(root() / "index_is_a_directory");
        fs::create_directory(root() / "index_is_a_directory/index.html");
        scratch.write("site/app.js", "plain");
        scratch.write("site/app.js.gz", "zipped");
        scratch.write("site/404.html", "<h1>not here</h1>");
    }

    fs::path root() const { return scratch.path() / "site"; }
    std::string config() const {
        return "[[server]]\nlisten = '127.0.0.1:0'\nmatch = [\n"
               "  { uri = '/files', serve = 'site' },\n"
               "  { uri = '/', serve = 'site', not_found = '404.html' },\n]\n";
    }

    std::string const large = [] {
        std::string s(3'000'000, 'x');
        for (std::size_t i = 0; i < s.size(); ++i) s[i] = static_cast<char>('a' + i % 23);
        return s;
    }();
    test::scratch_directory scratch;
};

TEST_F(Site, ServesFilesAndIndexes) {
    running r{config(), scratch.path()};
    EXPECT_EQ(body_of(r.ask("/a.txt")), "0123456789");
    EXPECT_EQ(body_of(r.ask("/")), "<h1>root</h1>");
    EXPECT_EQ(body_of(r.ask("/sub/")), "sub");
    EXPECT_EQ(body_of(r.ask("/a%20b.txt")), "space");
    EXPECT_EQ(body_of(r.ask("/a.txt?query")), "0123456789");
    std::string const head = r.ask("/a.txt");
    EXPECT_EQ(field_of(head, "content-type"), "text/plain; charset=utf-8");
    EXPECT_EQ(field_of(head, "content-length"), "10");
    EXPECT_EQ(field_of(head, "accept-ranges"), "bytes");
    EXPECT_EQ(field_of(head, "vary"), "Accept-Encoding");
}

TEST_F(Site, ServesBelowAPrefix) {
    running r{config(), scratch.path()};
    EXPECT_EQ(body_of(r.ask("/files/a.txt")), "0123456789");
    EXPECT_EQ(body_of(r.ask("/files/")), "<h1>root</h1>");
    std::string const answer = r.ask("/files?x=1");
    EXPECT_EQ(status_of(answer), "301");
    EXPECT_EQ(field_of(answer, "location"), "/files/?x=1");
    EXPECT_EQ(field_of(r.ask("/files/sub?x"), "location"), "/files/sub/?x");
    EXPECT_EQ(status_of(r.ask("/filesx")), "404");
}

// What the gateway takes for a path of this route is one for the files too.
TEST_F(Site, ServesBelowAPrefixThatIsSpelledOtherwise) {
    running r{config(), scratch.path()};
    for (std::string_view const target :
         {"/%66iles/a.txt", "/file%73/%61.txt", "/files//a.txt", "/files/./a.txt",
          "/files/sub/../a.txt", "/files/../files/a.txt", "/%66iles//sub/..//a.txt?x=/../.."}) {
        EXPECT_EQ(body_of(r.ask(target)), "0123456789") << target;
    }
    EXPECT_EQ(body_of(r.ask("/%66iles/")), "<h1>root</h1>");
    EXPECT_EQ(field_of(r.ask("/%66iles?x=1"), "location"), "/files/?x=1");
    EXPECT_EQ(field_of(r.ask("/%66iles/sub?x"), "location"), "/files/sub/?x");
    // Paths of two routes, or of none that has a file of that name.
    for (std::string_view const target :
         {"//files/a.txt", "/./files/a.txt", "/sub/../files/a.txt", "/files%2Fa.txt",
          "/files/%2Fa.txt", "/%66iles/..", "/%66iles/../a.txt"}) {
        EXPECT_EQ(status_of(r.ask(target)), "400") << target;
    }
    EXPECT_EQ(status_of(r.ask("/%66ilesx/a.txt")), "404");
}

TEST_F(Site, SendsLargeFilesWhole) {
    running r{config(), scratch.path()};
    EXPECT_EQ(body_of(r.ask("/large.bin")), large);
    std::string const part = r.ask("/large.bin", "Range: bytes=1000000-1999999\r\n");
    EXPECT_EQ(status_of(part), "206");
    EXPECT_EQ(field_of(part, "content-range"), "bytes 1000000-1999999/3000000");
    EXPECT_EQ(body_of(part), large.substr(1'000'000, 1'000'000));
}

TEST_F(Site, AnswersHeadWithoutABody) {
    running r{config(), scratch.path()};
    std::string const answer = r.ask("/large.bin", "", "HEAD");
    EXPECT_EQ(status_of(answer), "200");
    EXPECT_EQ(field_of(answer, "content-length"), "3000000");
    EXPECT_EQ(body_of(answer), "");
    EXPECT_EQ(body_of(r.ask("/a.txt", "", "HEAD")), "");
}

TEST_F(Site, AnswersConditionsAndRanges) {
    running r{config(), scratch.path()};
    std::string const first = r.ask("/a.txt");
    std::string const tag = field_of(first, "etag");
    std::string const again = r.ask("/a.txt", "If-None-Match: " + tag + "\r\n");
    EXPECT_EQ(status_of(again), "304");
    EXPECT_EQ(body_of(again), "");
    EXPECT_EQ(field_of(again, "etag"), tag);
    EXPECT_EQ(field_of(again, "content-length"), "");
    std::string const since = "If-Modified-Since: " + field_of(first, "last-modified") + "\r\n";
    EXPECT_EQ(status_of(r.ask("/a.txt", since)), "304");
    EXPECT_EQ(body_of(r.ask("/a.txt", "Range: bytes=2-4\r\n")), "234");
    std::string const behind = r.ask("/a.txt", "Range: bytes=10-\r\n");
    EXPECT_EQ(status_of(behind), "416");
    EXPECT_EQ(field_of(behind, "content-range"), "bytes */10");
    EXPECT_EQ(status_of(r.ask("/a.txt", "If-Match: \"other\"\r\n")), "412");
}

// As clocks differ, and files are copied with their times.
TEST_F(Site, SaysOfNoFileThatItIsOfTheFuture) {
    fs::last_write_time(root() / "a.txt", fs::file_time_type::clock::now() + std::chrono::hours{1});
    running r{config(), scratch.path()};
    std::string const answer = r.ask("/a.txt");
    auto const modified = http::detail::parse_http_date(field_of(answer, "last-modified"));
    auto const now = http::detail::parse_http_date(field_of(answer, "date"));
    ASSERT_TRUE(modified && now);
    EXPECT_LE(*modified, *now);
}

TEST_F(Site, SendsWhatIsCompressedToWhoTakesIt) {
    running r{config(), scratch.path()};
    std::string const zipped = r.ask("/app.js", "Accept-Encoding: br, gzip\r\n");
    EXPECT_EQ(body_of(zipped), "zipped");
    EXPECT_EQ(field_of(zipped, "content-encoding"), "gzip");
    EXPECT_EQ(field_of(zipped, "content-type"), "text/javascript; charset=utf-8");
    std::string const plain = r.ask("/app.js");
    EXPECT_EQ(body_of(plain), "plain");
    EXPECT_EQ(field_of(plain, "content-encoding"), "");
    EXPECT_NE(field_of(plain, "etag"), field_of(zipped, "etag"));
    EXPECT_EQ(body_of(r.ask("/a.txt", "Accept-Encoding: gzip\r\n")), "0123456789");
}

// The answer has nothing that could be decompressed.
TEST_F(Site, DescribesNoFileThatAConditionKeepsBack) {
    running r{config(), scratch.path()};
    std::string const kept = r.ask("/app.js", "Accept-Encoding: gzip\r\nIf-Match: \"other\"\r\n");
    EXPECT_EQ(status_of(kept), "412");
    EXPECT_EQ(field_of(kept, "content-encoding"), "");
    EXPECT_EQ(field_of(kept, "content-type"), "");
    EXPECT_EQ(field_of(kept, "content-length"), "0");
    EXPECT_EQ(field_of(kept, "vary"), "Accept-Encoding");
}

TEST_F(Site, DoesNotSendACompressedFileThatIsOlder) {
    auto const now = fs::last_write_time(root() / "app.js");
    fs::last_write_time(root() / "app.js.gz", now - std::chrono::seconds{5});
    running r{config(), scratch.path()};
    EXPECT_EQ(body_of(r.ask("/app.js", "Accept-Encoding: gzip\r\n")), "plain");
}

TEST_F(Site, HasAPageForWhatIsNotThere) {
    running r{config(), scratch.path()};
    std::string const answer = r.ask("/nowhere");
    EXPECT_EQ(status_of(answer), "404");
    EXPECT_EQ(body_of(answer), "<h1>not here</h1>");
    EXPECT_EQ(field_of(answer, "content-type"), "text/html; charset=utf-8");
    EXPECT_EQ(body_of(r.ask("/files/nowhere")), "Not Found\n");
}

TEST_F(Site, RedirectsToDirectoriesAndListsNone) {
    running r{config(), scratch.path()};
    std::string const answer = r.ask("/sub");
    EXPECT_EQ(status_of(answer), "301");
    EXPECT_EQ(field_of(answer, "location"), "/sub/");
    // Not to another host.
    EXPECT_EQ(field_of(r.ask("//sub"), "location"), "/sub/");
    EXPECT_EQ(status_of(r.ask("/empty/")), "404");
    EXPECT_EQ(status_of(r.ask("/index_is_a_directory/")), "404");
    EXPECT_EQ(status_of(r.ask("/a.txt/")), "404");
}

TEST_F(Site, TakesNothingButGetAndHead) {
    running r{config(), scratch.path()};
    for (std::string_view const method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "MOVE"}) {
        std::string const answer = r.ask("/a.txt", "", method);
        EXPECT_EQ(status_of(answer), "405") << method;
        EXPECT_EQ(field_of(answer, "allow"), "GET, HEAD");
    }
}

TEST_F(Site, DoesNotLeadOutOfItsRoot) {
    fs::create_symlink("../secret", root() / "link");
    fs::create_symlink(scratch.path() / "secret", root() / "absolute");
    fs::create_directory_symlink("..", root() / "up");
    fs::create_directory_symlink("/proc/self/root", root() / "magic");
    fs::create_symlink("a.txt", root() / "inside");
    running r{config(), scratch.path()};
    for (std::string_view const target : {"/link",
                                          "/absolute",
                                          "/up/secret",
                                          "/up/site/a.txt",
                                          "/magic/etc/passwd",
                                          "/../secret",
                                          "/%2e%2e/secret",
                                          "/..%2fsecret",
                                          "/sub/../../secret",
                                          "/sub/..%2f..%2fsecret",
                                          "//../secret",
                                          "/.%2e/secret",
                                          "/%2e%2e%2fsecret",
                                          "/up/",
                                          "/files/../secret",
                                          "/files/../../secret",
                                          "/%66iles/../secret",
                                          "/%66iles/%2e%2e/%2e%2e/secret",
                                          "/%66iles/up/secret",
                                          "/%66iles//..//../secret",
                                          "/files/../files/../secret",
                                          "/files/sub/..\\..\\..\\secret",
                                          "/%00",
                                          "/a.txt%00.html",
                                          "/..\\secret"}) {
        std::string const answer = r.ask(target);
        EXPECT_TRUE(status_of(answer) == "404" || status_of(answer) == "400") << target;
        EXPECT_EQ(answer.find("outside"), std::string::npos) << target;
    }
    EXPECT_EQ(body_of(r.ask("/inside")), "0123456789");
}

TEST_F(Site, DoesNotWaitForAPipe) {
    ASSERT_EQ(::mkfifo((root() / "pipe").c_str(), 0600), 0);
    running r{config(), scratch.path()};
    EXPECT_EQ(status_of(r.ask("/pipe")), "404");
}

// Who has a lease is asked to give it up, and has 45 seconds for that; no worker waits so long.
TEST_F(Site, DoesNotWaitForWhoHasALease) {
    std::signal(SIGIO, SIG_IGN);
    int const owner = ::open((root() / "a.txt").c_str(), O_RDWR | O_CLOEXEC);
    if (::fcntl(owner, F_SETLEASE, F_WRLCK) != 0) return;  // not on this file system
    running r{config(), scratch.path()};
    EXPECT_EQ(status_of(r.ask("/a.txt")), "503");
    ::close(owner);
    EXPECT_EQ(status_of(r.ask("/a.txt")), "200");
}

// The system sends a SIGPIPE to who uses sendfile() then.
TEST_F(Site, OutlivesAClientThatLeavesInTheMiddleOfAFile) {
    fs::resize_file(root() / "large.bin", std::uintmax_t{256} << 20);
    running r{config(), scratch.path()};
    test::wire w = r.connect();
    w.send("GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(status_of(w.read_head()), "200");
    w.end_sending();  // from then on a reset is a broken pipe
    w.reset();
    EXPECT_EQ(body_of(r.ask("/a.txt")), "0123456789");
    (void)r.stop();  // it has noticed
}

TEST_F(Site, SaysWhatItMayNotRead) {
    if (::geteuid() == 0) return;  // who may read everything
    fs::permissions(root() / "a.txt", fs::perms::none);
    running r{config(), scratch.path()};
    EXPECT_EQ(status_of(r.ask("/a.txt")), "403");
}

}  // namespace
}  // namespace rondo::gateway
