// Backends that are known by name, whose addresses change while the gateway runs.
#include "rondo/names.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "held_upstream.hpp"
#include "rondo/sync/semaphore.hpp"
#include "running.hpp"
#include "support/child_process.hpp"
#include "support/wire.hpp"
#include "tls_wire.hpp"

namespace rondo::gateway {
namespace {

using boost::asio::ip::tcp;
using test::scripted_server;
using test::wire;

tcp::endpoint at_port(std::uint16_t port) {
    return {boost::asio::ip::address_v4::loopback(), port};
}

// A phone book that tests write into. Copies are the same one.
class phone_book {
  public:
    void move_to(tcp_addresses where) {
        std::lock_guard const guard{page_->lock};
        page_->where = std::move(where);
    }
    std::expected<tcp_addresses, std::string> operator()(address const& a) const {
        if (!is_a_name(a)) return ask_the_system(a);
        std::lock_guard const guard{page_->lock};
        if (page_->where.empty()) return std::unexpected{std::string{"nobody knows"}};
        return page_->where;
    }

  private:
    struct page {
        std::mutex lock;
        tcp_addresses where;
    };
    std::shared_ptr<page> page_ = std::make_shared<page>();
};

// Answers each request with its name.
class named_backend {
  public:
    explicit named_backend(std::string name) : name_(std::move(name)) {}
    tcp::endpoint at() const { return at_port(server_.port()); }

  private:
    std::string name_;
    scripted_server server_{[this](wire& w) {
        while (!w.read_message().empty()) {
            w.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(name_.size()) +
                   "\r\n\r\n" + name_);
        }
    }};
};

std::string const to_a_name = "[[server]]\nlisten = '127.0.0.1:0'\nforward = 'backend.test:80'\n";

constexpr clock::duration by_hand = std::chrono::hours{1};

std::string ask_once_more(wire& w) {
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    return body_of(w.read_message());
}

TEST(Names, TakeTheAddressThatWasTakenBeforeThenAnIpv4One) {
    tcp::endpoint const six{boost::asio::ip::address_v6::loopback(), 1};
    resolver const ask = [&](address const&) { return tcp_addresses{six, at_port(1), at_port(2)}; };
    address const name{.host = "backend.test", .port = 80};
    EXPECT_EQ(look_up(name, ask).value(), at_port(1));
    EXPECT_EQ(look_up(name, ask, at_port(2)).value(), at_port(2));
    EXPECT_EQ(look_up(name, ask, six).value(), six);
    EXPECT_EQ(look_up(name, ask, at_port(3)).value(), at_port(1));
    resolver const only_six = [&](address const&) { return tcp_addresses{six}; };
    EXPECT_EQ(look_up(name, only_six).value(), six);
    resolver const none = [](address const&) { return tcp_addresses{}; };
    EXPECT_EQ(look_up(name, none).error().problem, "cannot find 'backend.test': it has no address");
    EXPECT_FALSE(is_a_name({.host = "::1", .port = 80}));
    EXPECT_FALSE(is_a_name({.host = "10.0.0.1", .port = 80}));
    EXPECT_TRUE(is_a_name(name));
}

TEST(Names, AreFollowedToAnotherAddress) {
    named_backend one{"one"};
    named_backend two{"two"};
    phone_book book;
    book.move_to({one.at()});
    running r{to_a_name, ".", {book, by_hand}};
    wire w = r.connect();
    EXPECT_EQ(ask_once_more(w), "one");
    EXPECT_FALSE(r.get().follow_names());
    book.move_to({two.at()});
    EXPECT_EQ(ask_once_more(w), "one");  // until somebody looks
    EXPECT_TRUE(r.get().follow_names());
    EXPECT_EQ(ask_once_more(w), "two");
    EXPECT_EQ(body_of(r.ask("/")), "two");
    EXPECT_FALSE(r.get().follow_names());
}

TEST(Names, KeepTheirAddressAsLongAsTheyHaveItOrCannotBeFound) {
    named_backend one{"one"};
    named_backend two{"two"};
    phone_book book;
    book.move_to({one.at()});
    running r{to_a_name, ".", {book, by_hand}};
    book.move_to({two.at(), one.at()});
    EXPECT_FALSE(r.get().follow_names());
    EXPECT_EQ(body_of(r.ask("/")), "one");
    book.move_to({});
    EXPECT_FALSE(r.get().follow_names());
    EXPECT_EQ(body_of(r.ask("/")), "one");
}

TEST(Names, AreLookedUpByAReloadOfTheSameConfiguration) {
    named_backend one{"one"};
    named_backend two{"two"};
    phone_book book;
    book.move_to({one.at()});
    running r{to_a_name, ".", {book, by_hand}};
    EXPECT_EQ(body_of(r.ask("/")), "one");
    book.move_to({two.at()});
    ASSERT_TRUE(r.reload(to_a_name));
    EXPECT_EQ(body_of(r.ask("/")), "two");
}

TEST(Names, AreFollowedByTheGatewayItself) {
    named_backend one{"one"};
    named_backend two{"two"};
    phone_book book;
    book.move_to({one.at()});
    running r{to_a_name, ".", {book, std::chrono::milliseconds{1}}};
    EXPECT_EQ(body_of(r.ask("/")), "one");
    book.move_to({two.at()});
    std::string answer = "one";
    while (answer == "one") answer = body_of(r.ask("/"));
    EXPECT_EQ(answer, "two");
}

// As a name server answers that hands addresses out in turn.
TEST(Names, HaveOneAddressForAllRoutesToThem) {
    named_backend one{"one"};
    named_backend two{"two"};
    std::atomic<bool> turned{false};
    std::atomic<bool> one_is_gone{false};
    resolver const ask = [&](address const& a) -> std::expected<tcp_addresses, std::string> {
        if (!is_a_name(a)) return ask_the_system(a);
        if (one_is_gone) return tcp_addresses{two.at()};
        turned = !turned;
        return turned ? tcp_addresses{one.at(), two.at()} : tcp_addresses{two.at(), one.at()};
    };
    std::string const text =
        "[[server]]\nlisten = '127.0.0.1:0'\nmatch = [\n"
        "  { uri = '/a', forward = 'backend.test:80' },\n"
        "  { uri = '/b', forward = 'backend.test:80' } ]\n";
    running r{text, ".", {ask, by_hand}};
    EXPECT_EQ(body_of(r.ask("/a")), "one");
    EXPECT_EQ(body_of(r.ask("/b")), "one");
    EXPECT_FALSE(r.get().follow_names());
    ASSERT_TRUE(r.reload(text));
    EXPECT_EQ(body_of(r.ask("/a")), "one");
    EXPECT_EQ(body_of(r.ask("/b")), "one");
    one_is_gone = true;
    EXPECT_TRUE(r.get().follow_names());
    EXPECT_EQ(body_of(r.ask("/a")), "two");
    EXPECT_EQ(body_of(r.ask("/b")), "two");
}

// Only the name has changed: what else a reload would read again may be half renewed just now.
TEST(Names, AreFollowedWithTheDirectoriesAndCertificatesThatAreOpen) {
    named_backend one{"one"};
    named_backend two{"two"};
    phone_book book;
    book.move_to({one.at()});
    test::scratch_directory in;
    in.write("www/index.html", "a page");
    issue_certificate(in, "before");
    std::string const text =
        "[[server]]\nlisten = '127.0.0.1:0'\n"
        "tls = { certificate = 'site.pem', key = 'site.key' }\nmatch = [\n"
        "  { uri = '/files', serve = 'www' },\n"
        "  { uri = '/', forward = 'backend.test:80' } ]\n";
    running r{text, in.path(), {book, by_hand}};
    issue_certificate(in, "after");
    std::filesystem::rename(in.path() / "www", in.path() / "moved");
    book.move_to({two.at()});
    EXPECT_TRUE(r.get().follow_names());
    tls_wire w{r.port()};
    EXPECT_EQ(w.shown(), "before");
    EXPECT_EQ(body_of(w.ask()), "two");
    EXPECT_EQ(body_of(w.ask("/files/index.html")), "a page");
    // One that is asked for reads all of it again.
    EXPECT_FALSE(r.reload(text, in.path()));
    std::filesystem::rename(in.path() / "moved", in.path() / "www");
    ASSERT_TRUE(r.reload(text, in.path()));
    EXPECT_EQ(tls_wire{r.port()}.shown(), "after");
}

// As when there is no memory or no thread for a moment.
TEST(Names, AreFollowedAgainAfterALookUpThatThrew) {
    named_backend one{"one"};
    named_backend two{"two"};
    phone_book book;
    book.move_to({one.at()});
    std::atomic<bool> throws{false};
    resolver const ask = [&](address const& a) {
        if (is_a_name(a) && throws.exchange(false)) throw std::runtime_error("no memory");
        return book(a);
    };
    running r{to_a_name, ".", {ask, std::chrono::milliseconds{1}}};
    throws = true;
    while (throws) std::this_thread::yield();
    book.move_to({two.at()});
    std::string answer = "one";
    while (answer == "one") answer = body_of(r.ask("/"));
    EXPECT_EQ(answer, "two");
    EXPECT_EQ(r.stop(), 0U);
}

// Somebody who knows names is slow: requests, a reload and the drain do not wait for that.
TEST(Names, HoldNobodyUpWhileTheyAreLookedUp) {
    named_backend one{"one"};
    phone_book book;
    book.move_to({one.at()});
    std::atomic<bool> slow{false};
    semaphore asked{0};
    semaphore answer{0};
    resolver const ask = [&](address const& a) {
        if (slow && is_a_name(a)) {
            asked.add_permits(1);
            if (auto told = answer.blocking_acquire()) told->forget();
        }
        return book(a);
    };
    running r{to_a_name, ".", {ask, by_hand}};
    slow = true;
    std::thread looking{[&] { EXPECT_FALSE(r.get().follow_names()); }};
    if (auto told = asked.blocking_acquire()) told->forget();
    EXPECT_EQ(body_of(r.ask("/")), "one");
    std::string const by_number = "[[server]]\nlisten = '127.0.0.1:0'\nforward = '127.0.0.1:" +
                                  std::to_string(one.at().port()) + "'\n";
    EXPECT_EQ(r.reload(by_number), 2U);
    EXPECT_EQ(body_of(r.ask("/")), "one");
    // What is found now is about a configuration that is gone.
    book.move_to({at_port(1)});
    answer.add_permits(1);
    looking.join();
    EXPECT_EQ(body_of(r.ask("/")), "one");
}

// Each name that nobody knows may take half a minute.
TEST(Names, AreNotLookedUpAnyMoreOnceTheGatewayEnds) {
    named_backend one{"one"};
    std::atomic<bool> slow{false};
    std::atomic<int> times{0};
    semaphore asked{0};
    semaphore answer{0};
    resolver const ask = [&](address const& a) -> std::expected<tcp_addresses, std::string> {
        if (!is_a_name(a)) return ask_the_system(a);
        if (slow) {
            ++times;
            asked.add_permits(1);
            if (auto told = answer.blocking_acquire()) told->forget();
        }
        return tcp_addresses{one.at()};
    };
    running r{"[[server]]\nlisten = '127.0.0.1:0'\nforward = ['first.test:80', 'second.test:80']\n",
              ".",
              {ask, by_hand}};
    std::uint16_t const port = r.port();
    slow = true;
    std::thread looking{[&] { EXPECT_FALSE(r.get().follow_names()); }};
    if (auto told = asked.blocking_acquire()) told->forget();
    std::thread ending{[&] { EXPECT_EQ(r.stop(), 0U); }};
    while (test::listens(port)) std::this_thread::yield();  // it has begun to end
    answer.add_permits(2);
    looking.join();
    ending.join();
    EXPECT_EQ(times, 1);
}

// A reload that has begun is waited for: the grace is that of the configuration that it brings.
TEST(Names, OfANewConfigurationAreWaitedForByTheEnd) {
    held_upstream up;
    std::string const port = up.address().substr(up.address().find(':') + 1);
    std::atomic<bool> slow{false};
    semaphore asked{0};
    semaphore answer{0};
    resolver const ask = [&](address const& a) -> std::expected<tcp_addresses, std::string> {
        if (!is_a_name(a)) return ask_the_system(a);
        if (slow) {
            asked.add_permits(1);
            if (auto told = answer.blocking_acquire()) told->forget();
        }
        return tcp_addresses{at_port(static_cast<std::uint16_t>(std::stoi(port)))};
    };
    auto const text = [](std::string const& grace) {
        return "[gateway]\nshutdown_grace = '" + grace + "'\n" + to_a_name;
    };
    running r{text("1ms"), ".", {ask, by_hand}};
    wire w = r.connect();
    w.send(get("/", "acme"));
    up.await_request();
    slow = true;
    std::thread loading{[&] { EXPECT_EQ(r.reload(text("1h")), 2U); }};
    if (auto told = asked.blocking_acquire()) told->forget();
    std::thread ending{[&] { EXPECT_EQ(r.stop(), 0U); }};
    answer.add_permits(1);
    loading.join();
    up.let_go(1);
    EXPECT_EQ(body_of(w.read_to_end()), "ok");
    ending.join();
}

}  // namespace
}  // namespace rondo::gateway
