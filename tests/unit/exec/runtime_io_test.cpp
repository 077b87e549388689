// What reaches tasks through the io_context of their worker.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "gate.hpp"
#include "rondo/asio/context_owner.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/exec/runtime.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::gate;
using test::permits;

task<std::thread::id> where_it_runs() { co_return std::this_thread::get_id(); }

TEST(RuntimeIo, AHandlerRunsOnTheWorkerWhoseContextItIs) {
    runtime rt{{.workers = 2}};
    for (std::size_t i = 0; i < 2; ++i) {
        auto const worker = rt.spawn_pinned_to(i, where_it_runs()).blocking_join().value();
        gate ran;
        std::thread::id handler;
        boost::asio::post(rt.context(i), [&] {
            handler = std::this_thread::get_id();
            ran.open();
        });
        ran.wait();
        EXPECT_EQ(handler, worker);
    }
}

TEST(RuntimeIo, ATaskFindsTheContextOfItsWorker) {
    runtime rt{{.workers = 2}};
    auto mine = [](runtime* r) -> task<boost::asio::io_context*> { co_return &r->context(); };
    EXPECT_EQ(rt.spawn_pinned_to(1, mine(&rt)).blocking_join().value(), &rt.context(1));
}

// So it starts its operations at once, and does not post them to its own thread.
TEST(RuntimeIo, AWorkerOwnsItsContextWhileItRunsTasks) {
    auto owned = []() -> task<boost::asio::execution_context*> {
        co_await yield();
        co_return asio::context_owner::current();
    };
    runtime rt{{.workers = 2}};
    EXPECT_EQ(rt.spawn_pinned_to(1, owned()).blocking_join().value(), &rt.context(1));
    EXPECT_EQ(asio::context_owner::current(), nullptr);

    runtime lent{{.workers = 0}};
    EXPECT_EQ(lent.block_on(owned()), &lent.context(0));
    EXPECT_EQ(asio::context_owner::current(), nullptr);
}

TEST(RuntimeIo, AHandlerThatThrowsIsReportedAndCostsNoWorker) {
    gate told;
    runtime rt{{.workers = 1, .on_unobserved = [&](std::exception_ptr) { told.open(); }}};
    boost::asio::post(rt.context(0), [] { throw 1; });
    told.wait();
    gate ran;
    boost::asio::post(rt.context(0), [&] { ran.open(); });
    ran.wait();
}

// What completes wakes a task although another one never waits.
TEST(RuntimeIo, ATaskThatIsAlwaysReadyDoesNotStarveIo) {
    runtime rt{{.workers = 1}};
    permits ready{1};
    std::atomic<bool> over{false};
    auto busy = [](permits* p, std::atomic<bool>* flag) -> task<void> {
        while (!flag->load()) {
            auto one = co_await p->acquire();
        }
    };
    auto h = rt.spawn(busy(&ready, &over));
    boost::asio::steady_timer timer{rt.context(0)};
    boost::asio::post(rt.context(0), [&] {
        timer.expires_after(1ms);
        timer.async_wait([&](boost::system::error_code) { over.store(true); });
    });
    (void)h.blocking_join();
}

TEST(RuntimeIo, AHandlerThatWakesManyTasksLeavesSomeToOthers) {
    runtime rt{{.workers = 2}};
    permits p{0};
    auto waits = [](permits* from) -> task<void> {
        auto one = co_await from->acquire();
        one.forget();
    };
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 600; ++i) handles.push_back(rt.spawn(waits(&p)));
    boost::asio::post(rt.context(0), [&p] { p.release(600); });
    for (auto& h : handles) (void)h.blocking_join();
}

}  // namespace
}  // namespace rondo
