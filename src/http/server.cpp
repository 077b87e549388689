// server.cpp: doors, the way of a connection to its worker, and the end.
//
// A door is a listening socket and a task that accepts from it. A connection goes to the site with
// the fewest; it is counted there before it is handed over.
//
// The end
//   E1  the doors close: each empties its accept queue first. All connections are counted now.
//   E2  the sites drain: connections that are idle end, the others after their request.
//   E3  when the grace is over, what is left is stopped.
//   E4  every worker has had a turn since the last connection ended: nothing refers to us.
#include "rondo/http/server.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "connection.hpp"
#include "rondo/asio/use_task.hpp"
#include "rondo/core/assert.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/semaphore.hpp"
#include "rondo/sync/shutdown.hpp"
#include "site.hpp"

namespace rondo::http {

namespace net = boost::asio;
using detail::connection;
using detail::site;
using net::ip::tcp;
using rondo::asio::use_task;

namespace {

using acceptor = net::basic_socket_acceptor<tcp, net::io_context::executor_type>;
using socket_type = connection::socket;

constexpr clock::duration pause_without_descriptors = std::chrono::milliseconds{100};

// How often deadlines are looked at.
clock::duration tick_for(server_options const& o) noexcept {
    using namespace std::chrono_literals;
    clock::duration const shortest =
        std::min({o.head_timeout, o.idle_timeout, o.read_timeout, o.write_timeout});
    return std::clamp<clock::duration>(shortest / 8, 5ms, 500ms);
}

// How many connections each address has.
class address_book {
  public:
    explicit address_book(std::size_t most) noexcept : most_(most) {}

    bool enter(net::ip::address const& who) {
        if (most_ == 0) return true;
        std::lock_guard const guard{lock_};
        std::size_t& n = counts_[who];
        if (n == most_) return false;
        ++n;
        return true;
    }
    void leave(net::ip::address const& who) noexcept {
        if (most_ == 0) return;
        std::lock_guard const guard{lock_};
        auto const found = counts_.find(who);
        if (--found->second == 0) counts_.erase(found);
    }

  private:
    std::size_t most_;
    std::mutex lock_;
    std::map<net::ip::address, std::size_t> counts_;
};

// The place that a connection takes up, given back in the right order when it has ended.
class place {
  public:
    place(semaphore_permit p, site& at, address_book& book, net::ip::address who) noexcept
        : permit_(std::move(p)), at_(&at), book_(&book), who_(std::move(who)) {
        at.live.fetch_add(1, std::memory_order_relaxed);  // read by who does not rely on it
    }
    place(place&& other) noexcept
        : permit_(std::move(other.permit_)),
          at_(std::exchange(other.at_, nullptr)),
          book_(other.book_),
          who_(std::move(other.who_)) {}
    place& operator=(place&&) = delete;
    ~place() {
        if (at_ == nullptr) return;
        book_->leave(who_);
        permit_.release();
        at_->live.fetch_sub(1, std::memory_order_release);  // pairs with the load in site::run()
        at_->changed.notify_one();
    }

  private:
    semaphore_permit permit_;
    site* at_;
    address_book* book_;
    net::ip::address who_;
};

struct arrival {
    int descriptor;
    tcp::endpoint peer;
};

// Nothing: there is nobody at the door, or errno says what is wrong.
std::optional<arrival> accept_one(acceptor& door) noexcept {
    for (;;) {
        tcp::endpoint peer;
        auto size = static_cast<socklen_t>(peer.capacity());
        int const fd =
            ::accept4(door.native_handle(), peer.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            peer.resize(size);
            return arrival{fd, peer};
        }
        if (errno != EINTR && errno != ECONNABORTED) return std::nullopt;
    }
}

task<void> serve(socket_type s, tcp::endpoint peer, site* at, net::ssl::context* tls,
                 [[maybe_unused]] place held) {
    connection c{std::move(s), peer, *at, tls};
    co_await c.serve();
}

task<void> nothing() { co_return; }

}  // namespace

struct server::state {
    struct listener {
        acceptor door;
        net::ssl::context* tls;
    };

    state(runtime& r, server_options given, handler h)
        : rt(r),
          options(std::move(given)),
          chain(std::move(h), options.layers),
          limit(std::max<std::size_t>(options.max_connections, 1)),
          book(options.max_connections_per_address) {
        for (std::size_t i = 0; i < rt.workers(); ++i) {
            sites.push_back(std::make_unique<site>(options, chain, i, tick_for(options)));
        }
    }

    site& least_busy() noexcept {
        std::size_t best = turn++ % sites.size();
        for (std::size_t i = 0; i < sites.size(); ++i) {
            if (live(i) < live(best)) best = i;
        }
        return *sites[best];
    }
    std::size_t live(std::size_t i) const noexcept {
        return sites[i]->live.load(std::memory_order_relaxed);  // a figure
    }
    std::size_t connections() const noexcept {
        std::size_t all = 0;
        for (std::size_t i = 0; i < sites.size(); ++i) all += live(i);
        return all;
    }

    std::expected<void, listen_error> open(server_options::door const& d, std::size_t worker);
    task<void> accept(listener* from, shutdown::subscription end);
    void admit(arrival const& a, listener const& from, semaphore_permit permit);

    runtime& rt;
    server_options options;
    stack chain;
    semaphore limit;
    address_book book;
    shutdown::notifier closing;
    shutdown::notifier draining;
    stop_source abort;
    std::vector<std::unique_ptr<site>> sites;
    std::vector<std::unique_ptr<listener>> listeners;
    std::vector<tcp::endpoint> bound;
    atomic<std::uint64_t> accepted{0};
    atomic<std::size_t> turn{0};
    bool started = false;
};

std::expected<void, listen_error> server::state::open(server_options::door const& d,
                                                      std::size_t worker) {
    acceptor a{rt.context(worker)};
    boost::system::error_code e;
    auto const failed = [&] { return std::unexpected{listen_error{d.address, e.message()}}; };
    (void)a.open(d.address.protocol(), e);
    if (e) return failed();
    (void)a.set_option(net::socket_base::reuse_address{true}, e);
    if (e) return failed();
    if (d.address.address().is_v6()) (void)a.set_option(net::ip::v6_only{true}, e);
    if (e) return failed();
    (void)a.bind(d.address, e);
    if (e) return failed();
    (void)a.listen(options.backlog, e);
    if (e) return failed();
    (void)a.native_non_blocking(true, e);
    if (e) return failed();
    bound.push_back(a.local_endpoint());
    listeners.push_back(std::make_unique<listener>(std::move(a), d.tls));
    return {};
}

void server::state::admit(arrival const& a, listener const& from, semaphore_permit permit) {
    site& at = least_busy();
    socket_type s{rt.context(at.index)};
    boost::system::error_code e;
    (void)s.assign(a.peer.protocol(), a.descriptor, e);
    if (e) {
        ::close(a.descriptor);
        return;
    }
    (void)s.set_option(tcp::no_delay{true}, e);
    accepted.fetch_add(1, std::memory_order_relaxed);
    if (!book.enter(a.peer.address())) return;
    place p{std::move(permit), at, book, a.peer.address()};
    rt.spawn_pinned_to(at.index, serve(std::move(s), a.peer, &at, from.tls, std::move(p)),
                       abort.token())
        .detach();
}

task<void> server::state::accept(listener* from, shutdown::subscription end) {
    while (!end.try_receive()) {
        auto permit = co_await limit.acquire(1, end.token());
        if (!permit) break;
        auto const somebody = accept_one(from->door);
        if (somebody) {
            admit(*somebody, *from, std::move(*permit));
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            permit->release();
            (void)co_await from->door.async_wait(acceptor::wait_read, use_task(end.token()));
        } else {
            (void)co_await sleep_for(pause_without_descriptors, end.token());
        }
    }
    // E1
    for (;;) {
        auto permit = limit.try_acquire();
        if (!permit) break;
        auto const somebody = accept_one(from->door);
        if (!somebody) break;
        admit(*somebody, *from, std::move(*permit));
    }
    boost::system::error_code ignored;
    (void)from->door.close(ignored);
}

server::server(runtime& rt, server_options o, handler h)
    : state_(std::make_unique<state>(rt, std::move(o), std::move(h))) {}

server::~server() {
    if (state_->started) (void)blocking_stop(clock::duration::zero());
}

std::expected<void, listen_error> server::start() {
    RONDO_ASSERT(!state_->started, "a server is started once");
    std::size_t worker = 0;
    for (server_options::door const& d : state_->options.listen) {
        auto const opened = state_->open(d, worker++ % state_->sites.size());
        if (!opened) {
            state_->listeners.clear();
            state_->bound.clear();
            return opened;
        }
    }
    state_->started = true;
    for (auto const& s : state_->sites) {
        state_->rt
            .spawn_pinned_to(s->index,
                             s->run(state_->draining.subscribe("the connections of worker " +
                                                               std::to_string(s->index))))
            .detach();
    }
    worker = 0;
    for (auto const& l : state_->listeners) {
        state_->rt
            .spawn_pinned_to(worker++ % state_->sites.size(),
                             state_->accept(l.get(), state_->closing.subscribe("a door")))
            .detach();
    }
    return {};
}

std::vector<tcp::endpoint> server::addresses() const { return state_->bound; }

task<std::size_t> server::stop(clock::duration grace) {
    time_point const limit = later(clock::now(), grace);
    (void)state_->closing.send();
    co_await state_->closing.collect_dropped();  // E1
    (void)state_->draining.send();
    auto const ended = co_await state_->draining.collect_dropped_until(limit);  // E2
    std::size_t cut_off = 0;
    if (!ended) {
        cut_off = state_->connections();
        state_->abort.request_stop();  // E3
        co_await state_->draining.collect_dropped();
    }
    for (std::size_t i = 0; i < state_->sites.size(); ++i) {  // E4
        auto turn = state_->rt.spawn_pinned_to(i, nothing());
        (void)co_await turn.join();
    }
    co_return cut_off;
}

std::size_t server::blocking_stop(clock::duration grace) {
    return state_->rt.block_on(stop(grace));
}

server::figures server::measure() const noexcept {
    figures f{state_->connections(), state_->accepted.load(std::memory_order_relaxed), 0, 0};
    for (auto const& s : state_->sites) {
        f.requests += s->requests.load(std::memory_order_relaxed);
        f.refused += s->refused.load(std::memory_order_relaxed);
    }
    return f;
}

}  // namespace rondo::http
