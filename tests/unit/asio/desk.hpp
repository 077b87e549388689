// desk.hpp: operations of Asio that a test ends by hand, and the two places they run between: a
// loop for the task and an io_context for the operation.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <functional>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

#include "support/manual_loop.hpp"

namespace rondo::test {

namespace net = boost::asio;
using boost::system::error_code;

// An asynchronous operation that ends when the test says so. Asked to cancel it notes the wish, and
// grants it if it is of that kind.
template <class... Args>
class desk {
  public:
    explicit desk(net::io_context& io, bool cancels = true) : io_(io), cancels_(cancels) {}

    struct initiation {
        using executor_type = net::io_context::executor_type;
        executor_type get_executor() const noexcept { return to->io_.get_executor(); }

        template <class Handler>
        void operator()(Handler handler) const {
            to->accept(std::move(handler));
        }
        desk* to;
    };

    template <class Token>
    auto async_ask(Token&& token) {
        return net::async_initiate<Token, void(Args...)>(initiation{this}, token);
    }

    // Ends the operation, through the context.
    template <class... Given>
    void answer(Given... given) {
        net::post(io_, [this, given...] { std::exchange(handler_, nullptr)(given...); });
    }
    void forget() {
        net::post(io_, [this] { handler_ = nullptr; });
    }

    bool asked() const noexcept { return handler_ != nullptr; }
    int times_asked() const noexcept { return times_asked_; }
    bool told_to_cancel() const noexcept { return told_to_cancel_; }

  private:
    template <class Handler>
    void accept(Handler handler) {
        auto slot = net::get_associated_cancellation_slot(handler);
        handler_ = std::move(handler);
        ++times_asked_;
        if (!slot.is_connected()) return;
        slot.assign([this](net::cancellation_type_t) {
            told_to_cancel_ = true;
            if constexpr (std::is_same_v<std::tuple<Args...>, std::tuple<error_code>>) {
                if (cancels_) answer(error_code{net::error::operation_aborted});
            }
        });
    }

    net::io_context& io_;
    bool cancels_;
    std::move_only_function<void(Args...)> handler_;
    int times_asked_ = 0;
    bool told_to_cancel_ = false;
};

// Both places, and the test says which of them runs when.
class UseTask : public testing::Test {
  protected:
    // Both, until neither has anything to do.
    void run_both() {
        std::size_t ran = 1;
        while (ran != 0) {
            ran = loop.run_ready();
            io.restart();
            ran += io.poll();
        }
    }
    void run_io() {
        io.restart();
        io.poll();
    }
    // For what the kernel has a part in, and may take its time.
    template <class Handle>
    void run_to_the_end_of(Handle const& handle) {
        for (run_both(); !handle.ended(); run_both()) std::this_thread::yield();
    }

    net::io_context io;
    manual_loop loop;
};

}  // namespace rondo::test
