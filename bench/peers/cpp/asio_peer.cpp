// Boost.Asio's side of bench/exec and bench/sync: thread_pool and io_context, co_spawn, channels.
//
//   asio_peer empty <workers>
//   asio_peer spawn_external|yield|mpsc_bounded_spsc|mpsc_bounded_cap1 mt
//   asio_peer spawn_join|yield|mpsc_bounded_spsc|mpsc_bounded_cap1 ct
//
// `mt` is a thread_pool of two, `ct` an io_context that the calling thread runs.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdlib>
#include <string>

#include "../../support/jobs.hpp"

namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::use_awaitable;
using boost::system::error_code;
using rondo::bench::count;
using rondo::bench::warm_ns_per_operation;

class asio_pool {
  public:
    explicit asio_pool(std::size_t workers) : pool_(workers) {}
    ~asio_pool() { pool_.join(); }
    template <class F>
    void start(F f) {
        asio::post(pool_, f);
    }

  private:
    asio::thread_pool pool_;
};

// What somebody outside waits for: so many coroutines have ended.
class countdown {
  public:
    explicit countdown(std::size_t n) : left_(n) {}
    void one_ended() {
        if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.release();
    }
    void wait() { done_.acquire(); }

  private:
    std::atomic<std::size_t> left_;
    std::binary_semaphore done_{0};
};

awaitable<void> nothing(countdown& end) {
    count();
    end.one_ended();
    co_return;
}

double spawn_external() {
    asio::thread_pool pool{2};
    return warm_ns_per_operation(100'000, [&](std::size_t n) {
        countdown end{n};
        for (std::size_t i = 0; i < n; ++i) co_spawn(pool, nothing(end), asio::detached);
        end.wait();
    });
}

double spawn_join_ct() {
    constexpr std::size_t together = 1000;
    asio::io_context context{1};
    return warm_ns_per_operation(200'000, [&](std::size_t n) {
        for (std::size_t done = 0; done < n; done += together) {
            countdown end{together};
            for (std::size_t i = 0; i < together; ++i) {
                co_spawn(context, nothing(end), asio::detached);
            }
            context.restart();
            context.run();
            end.wait();
        }
    });
}

// Runs what `spawn(executor)` spawns to its end, on two threads or on this one.
template <class Spawn>
void run_mt(Spawn spawn) {
    asio::thread_pool pool{2};
    spawn(pool.get_executor());
    pool.join();
}
template <class Spawn>
void run_ct(Spawn spawn) {
    asio::io_context context{1};
    spawn(context.get_executor());
    context.run();
}

awaitable<void> give_way(std::size_t times) {
    auto const where = co_await asio::this_coro::executor;
    for (std::size_t i = 0; i < times; ++i) {
        count();
        co_await asio::post(where, use_awaitable);
    }
}

double yields(bool mt) {
    constexpr std::size_t tasks = 1000;
    return warm_ns_per_operation(300'000, [&](std::size_t n) {
        auto const spawn = [n](auto const& where) {
            for (std::size_t i = 0; i < tasks; ++i) {
                co_spawn(where, give_way(n / tasks), asio::detached);
            }
        };
        if (mt) {
            run_mt(spawn);
        } else {
            run_ct(spawn);
        }
    });
}

template <class Channel>
awaitable<void> produce(Channel& c, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        co_await c.async_send(error_code{}, i, use_awaitable);
        count();
    }
}
template <class Channel>
awaitable<void> consume(Channel& c, std::size_t n) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
        sum += co_await c.async_receive(use_awaitable);
        count();
    }
    asm volatile("" ::"r"(sum));
}

template <class Channel, class Context>
void pass(Context& context, std::size_t capacity, std::size_t n, auto run) {
    Channel c{context, capacity};
    co_spawn(context, produce(c, n), asio::detached);
    co_spawn(context, consume(c, n), asio::detached);
    run();
}

double messages(bool mt, std::size_t capacity) {
    using signature = void(error_code, std::size_t);
    return warm_ns_per_operation(200'000, [&](std::size_t n) {
        if (mt) {
            asio::thread_pool pool{2};
            pass<asio::experimental::concurrent_channel<signature>>(pool, capacity, n,
                                                                    [&] { pool.join(); });
        } else {
            asio::io_context context{1};
            pass<asio::experimental::channel<signature>>(context, capacity, n,
                                                         [&] { context.run(); });
        }
    });
}

double run(std::string const& workload, std::string const& param) {
    bool const mt = param == "mt";
    if (workload == "empty") {
        asio_pool pool{std::strtoul(param.c_str(), nullptr, 10)};
        return rondo::bench::empty_jobs(pool);
    }
    if (workload == "spawn_external") return spawn_external();
    if (workload == "spawn_join") return spawn_join_ct();
    if (workload == "yield") return yields(mt);
    if (workload == "mpsc_bounded_spsc") return messages(mt, 1024);
    if (workload == "mpsc_bounded_cap1") return messages(mt, 1);
    std::fprintf(stderr, "asio_peer: no workload '%s'\n", workload.c_str());
    std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fputs("usage: asio_peer <workload> <param>\n", stderr);
        return 2;
    }
    rondo::bench::report(argv[1], argv[2], run(argv[1], argv[2]));
}
