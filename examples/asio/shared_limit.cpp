// Asio coroutines and plain threads share one limit, which is a primitive of our own.
//
// The first half is all it takes to write something that every world can wait for: say what a
// waiter needs (grant), what it gets (take) and how that goes back. Turns, stop, deadlines and
// threads come with wait_queue.
#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdio>
#include <expected>
#include <mutex>
#include <thread>
#include <utility>

#include "rondo/asio/wait.hpp"
#include "rondo/core/wait.hpp"

namespace {

// [limit]
// At most so many at once; who comes first goes first.
class limit : rondo::wait_queue {
  public:
    explicit limit(int slots) noexcept : free_(slots) {}

    // Holds one slot until it is destroyed.
    class [[nodiscard("leaving gives the slot back")]] visit {
      public:
        explicit visit(limit& l) noexcept : limit_(&l) {}
        visit(visit&& other) noexcept : limit_(std::exchange(other.limit_, nullptr)) {}
        visit& operator=(visit&&) = delete;
        ~visit() {
            if (limit_ != nullptr) limit_->leave();
        }

      private:
        limit* limit_;
    };

    class enter_op : public rondo::waiter {
      public:
        explicit enter_op(limit& l) noexcept : waiter(l), limit_(l) {}
        bool ready() noexcept {
            std::lock_guard const guard{limit_.lock()};
            return !limit_.has_waiters() && limit_.grant(*this);
        }
        visit take() noexcept { return visit{limit_}; }
        void hand_on() noexcept { limit_.leave(); }

      private:
        limit& limit_;
    };

    rondo::wait<enter_op> enter() noexcept { return rondo::wait{enter_op{*this}}; }
    rondo::bounded_wait<enter_op> enter_until(rondo::time_point deadline) noexcept {
        return {enter_op{*this}, deadline};
    }
    visit blocking_enter() { return rondo::blocking_wait(enter_op{*this}); }

  private:
    bool grant(rondo::waiter&) noexcept override {
        if (free_ == 0) return false;
        --free_;
        return true;
    }
    void leave() noexcept {
        serve([this] { ++free_; });
    }

    int free_;
};
// [/limit]

constexpr int slots = 2;
constexpr int visits_each = 200;

// Counts who is inside, and how many there were at most.
class observer {
  public:
    void come() noexcept {
        int const now = ++inside_;
        int most = most_;
        while (most < now && !most_.compare_exchange_weak(most, now)) {
        }
        ++visits_;
    }
    void go() noexcept { --inside_; }

    int most() const noexcept { return most_; }
    int visits() const noexcept { return visits_; }

  private:
    std::atomic<int> inside_{0};
    std::atomic<int> most_{0};
    std::atomic<int> visits_{0};
};

// Who visits: three Asio coroutines and two threads, and one coroutine elsewhere.
class program {
  public:
    bool run() {
        boost::asio::io_context io;
        for (int i = 0; i < 3; ++i) boost::asio::co_spawn(io, visit(), boost::asio::detached);
        boost::asio::co_spawn(io, impatient(), boost::asio::detached);
        std::array<std::thread, 2> threads;
        for (std::thread& t : threads) t = std::thread{[this] { visit_as_thread(); }};
        io.run();
        for (std::thread& t : threads) t.join();

        std::printf("%d visits, at most %d at once\n", seen_.visits(), seen_.most());
        bool const told = check(turned_away_, "who waits until a deadline is told that it passed");
        bool const within = check(seen_.most() <= slots, "never more inside than there are slots");
        bool const all = check(seen_.visits() == 5 * visits_each, "everybody had every turn");
        return told && within && all;
    }

  private:
    // [coroutine]
    boost::asio::awaitable<void> visit() {
        for (int i = 0; i < visits_each; ++i) {
            auto const inside = co_await limit_.enter();
            seen_.come();
            co_await boost::asio::post(boost::asio::use_awaitable);  // others run meanwhile
            seen_.go();
        }
    }
    // [/coroutine]

    void visit_as_thread() {
        for (int i = 0; i < visits_each; ++i) {
            auto const inside = limit_.blocking_enter();
            seen_.come();
            std::this_thread::yield();
            seen_.go();
        }
    }

    boost::asio::awaitable<void> impatient() {
        auto const soon = rondo::clock::now() + std::chrono::milliseconds{5};
        auto const inside = co_await closed_.enter_until(soon);
        turned_away_ = !inside && inside.error() == rondo::wait_error::timed_out;
    }

    static bool check(bool holds, char const* what) {
        std::printf("%-4s %s\n", holds ? "ok" : "NOT", what);
        return holds;
    }

    limit limit_{slots};
    limit closed_{0};
    observer seen_;
    bool turned_away_ = false;
};

}  // namespace

int main() { return program{}.run() ? 0 : 1; }
