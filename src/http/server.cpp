// server.cpp: doors, the way of a connection to its worker, and the end.
//
// A door is a listening socket and a task that accepts from it. A connection goes to the site with
// the fewest; it is counted there before it is handed over.
//
// The end
//   E1  the doors close: each empties its accept queue first, but for who finds no place. All
//       connections are counted now.
//   E2  the sites drain: connections that are idle end, the others after their request.
//   E3  when the grace is over, what is left is stopped.
//   E4  every worker has had a turn since the last connection ended: nothing refers to us.
#include "rondo/http/server.hpp"

#include <fcntl.h>
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

#include "addresses.hpp"
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
using detail::owner_of;
using detail::site;
using net::ip::tcp;
using rondo::asio::use_task;

namespace {

using acceptor = net::basic_socket_acceptor<tcp, net::io_context::executor_type>;
using socket_type = connection::socket;

constexpr clock::duration pause_without_descriptors = std::chrono::milliseconds{100};

// How many connections each client has.
class address_book {
  public:
    explicit address_book(std::size_t most) noexcept : most_(most) {}

    // False: it has as many as it may. They are counted without a limit too, as one may be set.
    bool enter(net::ip::address const& who) {
        std::size_t const most = most_.load(std::memory_order_relaxed);  // a figure
        std::lock_guard const guard{lock_};
        std::size_t& n = counts_[owner_of(who)];
        if (most != 0 && n >= most) return false;
        ++n;
        return true;
    }
    void leave(net::ip::address const& who) noexcept {
        std::lock_guard const guard{lock_};
        auto const found = counts_.find(owner_of(who));
        if (--found->second == 0) counts_.erase(found);
    }
    void allow(std::size_t most) noexcept { most_.store(most, std::memory_order_relaxed); }

  private:
    atomic<std::size_t> most_;
    std::mutex lock_;
    std::map<net::ip::address, std::size_t> counts_;
};

// How many connections there may be: a semaphore whose size can change. Places that are taken away
// while they are in use are a debt, which is paid by who leaves next.
class connection_limit {
  public:
    explicit connection_limit(std::size_t most) : places_(most), most_(most) {}

    semaphore& places() noexcept { return places_; }

    void leave(semaphore_permit p) noexcept {
        if (pay(1) == 1) {
            p.forget();
        } else {
            p.release();
        }
    }
    // By one thread at a time.
    void allow(std::size_t most) noexcept {
        if (most > most_) {
            std::size_t const more = most - most_;
            places_.add_permits(more - pay(more));
        } else {
            std::size_t const fewer = most_ - most;
            debt_.fetch_add(fewer, std::memory_order_relaxed);
            std::size_t const idle = places_.forget_permits(fewer);
            // Somebody may have left meanwhile and paid for the same.
            places_.add_permits(idle - pay(idle));
        }
        most_ = most;
    }

  private:
    // Up to so many; how many were owed. Relaxed: a number that publishes nothing.
    std::size_t pay(std::size_t n) noexcept {
        std::size_t owed = debt_.load(std::memory_order_relaxed);
        while (owed != 0) {
            std::size_t const paid = std::min(owed, n);
            if (debt_.compare_exchange_weak(owed, owed - paid, std::memory_order_relaxed,
                                            std::memory_order_relaxed)) {
                return paid;
            }
        }
        return 0;
    }

    semaphore places_;
    atomic<std::size_t> debt_{0};
    std::size_t most_;
};

// The place that a connection takes up, given back in the right order when it has ended.
class place {
  public:
    place(semaphore_permit p, connection_limit& limit, site& at) noexcept
        : permit_(std::move(p)), limit_(&limit), at_(&at) {
        at.live.fetch_add(1, std::memory_order_relaxed);  // read by who does not rely on it
    }
    place(place&& other) noexcept
        : permit_(std::move(other.permit_)),
          limit_(other.limit_),
          at_(std::exchange(other.at_, nullptr)),
          book_(std::exchange(other.book_, nullptr)),
          who_(std::move(other.who_)) {}
    place& operator=(place&&) = delete;
    ~place() {
        if (at_ == nullptr) return;
        if (book_ != nullptr) book_->leave(who_);
        limit_->leave(std::move(permit_));
        at_->live.fetch_sub(1, std::memory_order_release);  // pairs with the load in site::run()
        at_->changed.notify_one();
    }

    // False: the address has as many as it may.
    bool enter(address_book& book, net::ip::address const& who) {
        if (!book.enter(who)) return false;
        book_ = &book;
        who_ = who;
        return true;
    }

  private:
    semaphore_permit permit_;
    connection_limit* limit_;
    site* at_;
    address_book* book_ = nullptr;
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

task<void> serve(socket_type s, tcp::endpoint peer, site* at,
                 std::shared_ptr<net::ssl::context> tls, [[maybe_unused]] place held) {
    connection c{std::move(s), peer, *at, std::move(tls)};
    co_await c.serve();
}

// The same for one that a proxy announces.
task<void> serve_announced(socket_type s, tcp::endpoint peer, site* at,
                           std::shared_ptr<net::ssl::context> tls, place held, address_book* book) {
    connection c{std::move(s), peer, *at, std::move(tls)};
    bool const announced = co_await c.be_announced();
    if (!announced || !held.enter(*book, c.peer().address())) co_return;
    co_await c.serve();
}

task<void> nothing() { co_return; }

task<std::size_t> count_begun(site* s) { co_return s->begun; }

task<void> set_times(site* s, detail::patience p) {
    s->times = p;
    s->deadlines.tick(p.tick());
    co_return;
}

task<void> add_up(site* s, server::report* sum) {
    sum->totals.requests += s->requests.load(std::memory_order_relaxed);  // by this very worker
    sum->totals.refused += s->refused.load(std::memory_order_relaxed);
    sum->in_flight += s->requests.load(std::memory_order_relaxed) - s->ended;
    for (std::size_t i = 0; i < s->answers.size(); ++i) sum->answers[i] += s->answers[i];
    sum->times.merge(s->durations);
    co_return;
}

}  // namespace

// --- doors -------------------------------------------------------------------------------------

struct detail::listener {
    listener(acceptor a, server_options::door const& d)
        : door(std::move(a)), tls(d.tls), proxies(d.proxies) {}
    acceptor door;
    std::shared_ptr<net::ssl::context> tls;
    std::vector<network> proxies;
    shutdown::notifier closing{};
};

namespace {

std::expected<acceptor, listen_error> open(net::io_context& on, server_options::door const& d,
                                           int backlog) {
    acceptor a{on};
    boost::system::error_code e;
    auto const failed = [&] { return std::unexpected{listen_error{d.address, e.message()}}; };
    if (d.descriptor >= 0) {
        int const same = ::fcntl(d.descriptor, F_DUPFD_CLOEXEC, 0);
        if (same < 0) e = {errno, boost::system::system_category()};
        if (e) return failed();
        (void)a.assign(d.address.protocol(), same, e);
        if (e) ::close(same);
        if (e) return failed();
    } else {
        (void)a.open(d.address.protocol(), e);
        if (e) return failed();
        (void)a.set_option(net::socket_base::reuse_address{true}, e);
        if (e) return failed();
        if (d.address.address().is_v6()) (void)a.set_option(net::ip::v6_only{true}, e);
        if (e) return failed();
        (void)a.bind(d.address, e);
        if (e) return failed();
        (void)a.listen(backlog, e);
        if (e) return failed();
    }
    (void)a.native_non_blocking(true, e);
    if (e) return failed();
    return a;
}

}  // namespace

open_doors::open_doors() noexcept = default;
open_doors::~open_doors() = default;
open_doors::open_doors(open_doors&&) noexcept = default;
open_doors& open_doors::operator=(open_doors&&) noexcept = default;

std::expected<open_doors, listen_error> open_doors::at(runtime& rt,
                                                       std::vector<server_options::door> const& all,
                                                       int backlog) {
    open_doors opened;
    for (server_options::door const& d : all) {
        auto a = open(rt.context(opened.all_.size() % rt.workers()), d, backlog);
        if (!a) return std::unexpected{std::move(a.error())};
        opened.all_.push_back(std::make_unique<detail::listener>(*std::move(a), d));
    }
    return opened;
}

// --- the server --------------------------------------------------------------------------------

struct server::state {
    using listener = detail::listener;
    using listeners = std::vector<std::unique_ptr<listener>>;

    state(runtime& r, server_options given, handler h)
        : rt(r),
          options(std::move(given)),
          chain(std::move(h), options.layers),
          limit(std::max<std::size_t>(options.max_connections, 1)),
          book(options.max_connections_per_address) {
        for (std::size_t i = 0; i < rt.workers(); ++i) {
            sites.push_back(std::make_unique<site>(options, chain, i));
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

    // Accepts at these, and no longer at those that are returned.
    listeners begin(listeners opened);
    static task<void> close(listeners* all);
    task<void> accept(listener* from, shutdown::subscription end);
    void admit(arrival const& a, listener const& from, semaphore_permit permit);

    runtime& rt;
    server_options options;
    stack chain;
    connection_limit limit;
    address_book book;
    shutdown::notifier draining;
    stop_source abort;
    std::vector<std::unique_ptr<site>> sites;
    mutable std::mutex lock;  // of these two
    listeners doors;
    std::vector<tcp::endpoint> bound;
    atomic<std::uint64_t> accepted{0};
    atomic<std::size_t> turn{0};
    bool started = false;
};

auto server::state::begin(listeners opened) -> listeners {
    std::lock_guard const guard{lock};
    bound.clear();
    std::size_t worker = 0;
    for (auto const& l : opened) {
        boost::system::error_code ignored;
        bound.push_back(l->door.local_endpoint(ignored));
        rt.spawn_pinned_to(worker++ % sites.size(), accept(l.get(), l->closing.subscribe("a door")))
            .detach();
    }
    return std::exchange(doors, std::move(opened));
}

task<void> server::state::close(listeners* all) {
    for (auto const& l : *all) (void)l->closing.send();
    for (auto const& l : *all) co_await l->closing.collect_dropped();
}

void server::state::admit(arrival const& a, listener const& from, semaphore_permit permit) {
    site& at = least_busy();
    socket_type s{rt.context(at.index)};
    boost::system::error_code e;
    (void)s.assign(a.peer.protocol(), a.descriptor, e);
    if (e) {
        ::close(a.descriptor);
        return limit.leave(std::move(permit));
    }
    (void)s.set_option(tcp::no_delay{true}, e);
    accepted.fetch_add(1, std::memory_order_relaxed);
    place p{std::move(permit), limit, at};
    bool const announced = contains(from.proxies, detail::plain(a.peer.address()));
    if (!announced && !p.enter(book, a.peer.address())) return;
    auto served = announced
                      ? serve_announced(std::move(s), a.peer, &at, from.tls, std::move(p), &book)
                      : serve(std::move(s), a.peer, &at, from.tls, std::move(p));
    rt.spawn_pinned_to(at.index, std::move(served), abort.token()).detach();
}

task<void> server::state::accept(listener* from, shutdown::subscription end) {
    while (!end.try_receive()) {
        auto permit = co_await limit.places().acquire(1, end.token());
        if (!permit) break;
        auto const somebody = accept_one(from->door);
        if (somebody) {
            admit(*somebody, *from, std::move(*permit));
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            limit.leave(*std::move(permit));
            (void)co_await from->door.async_wait(acceptor::wait_read, use_task(end.token()));
        } else {
            (void)co_await sleep_for(pause_without_descriptors, end.token());
        }
    }
    // E1
    for (;;) {
        auto permit = limit.places().try_acquire();
        if (!permit) break;
        auto const somebody = accept_one(from->door);
        if (!somebody) {
            limit.leave(*std::move(permit));
            break;
        }
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
    auto opened = open_doors::at(state_->rt, state_->options.listen, state_->options.backlog);
    if (!opened) return std::unexpected{std::move(opened.error())};
    state_->started = true;
    for (auto const& s : state_->sites) {
        state_->rt
            .spawn_pinned_to(s->index,
                             s->run(state_->draining.subscribe("the connections of worker " +
                                                               std::to_string(s->index))))
            .detach();
    }
    (void)state_->begin(std::move(opened->all_));
    return {};
}

std::vector<tcp::endpoint> server::addresses() const {
    std::lock_guard const guard{state_->lock};
    return state_->bound;
}

task<void> server::replace_doors(open_doors doors) {
    auto before = state_->begin(std::move(doors.all_));
    co_await state::close(&before);
}

task<void> server::adjust(server_options o) {
    state_->limit.allow(std::max<std::size_t>(o.max_connections, 1));
    state_->book.allow(o.max_connections_per_address);
    detail::patience const p{o};
    for (auto const& s : state_->sites) {
        auto there = state_->rt.spawn_pinned_to(s->index, set_times(s.get(), p));
        (void)co_await there.join();
    }
}

task<std::size_t> server::stop(clock::duration grace) {
    time_point const limit = later(clock::now(), grace);
    co_await state::close(&state_->doors);  // E1
    (void)state_->draining.send();
    auto const ended = co_await state_->draining.collect_dropped_until(limit);  // E2
    std::size_t cut_off = 0;
    if (!ended) {
        for (auto const& s : state_->sites) {
            auto there = state_->rt.spawn_pinned_to(s->index, count_begun(s.get()));
            auto const begun = co_await there.join();
            cut_off += begun ? *begun : 0;
        }
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

task<std::unique_ptr<server::report>> server::survey() const {
    auto sum = std::make_unique<report>();
    for (auto const& s : state_->sites) {
        auto there = state_->rt.spawn_pinned_to(s->index, add_up(s.get(), sum.get()));
        (void)co_await there.join();
    }
    sum->totals.connections = state_->connections();
    sum->totals.accepted = state_->accepted.load(std::memory_order_relaxed);
    co_return sum;
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
