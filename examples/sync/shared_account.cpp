// One account; a task, a plain thread and a coroutine of a foreign type pay in and out. The lock is
// kept over a wait, which a std::mutex in a coroutine must not be; who cannot wait long enough
// leaves without having touched anything.
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/mutex.hpp"
#include "rondo/sync/notify.hpp"

namespace {

using namespace std::chrono_literals;

struct account {
    void enter(std::string text, long amount) {
        balance += amount;
        book.push_back(std::move(text));
    }

    long balance = 0;
    std::vector<std::string> book;
};

// A coroutine type that knows nothing of rondo.
struct foreign {
    struct promise_type {
        foreign get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::abort(); }
    };
};

class family {
  public:
    // [lock]
    // Locked from the first line to the end of the scope, over the wait in between.
    rondo::task<void> transfer(std::string who, long amount) {
        auto const account = co_await account_.lock();
        co_await rondo::sleep_for(1ms);  // the bank answers
        account->enter(std::move(who), amount);
    }
    // [/lock]

    // [bounded]
    rondo::task<bool> transfer_now_or_never(long amount) {
        auto const account = co_await account_.lock_for(100us);
        if (!account) co_return false;  // wait_error::timed_out
        (*account)->enter("hasty", amount);
        co_return true;
    }
    // [/bounded]

    // Nothing joins a foreign coroutine, and it goes on in the loop it waits in: it says when it is
    // done, so that the loop can outlive it.
    foreign transfer_foreign(long amount) {
        {
            auto const account = co_await account_.lock();
            account->enter("coroutine", amount);
        }
        foreign_done_.notify_one();
    }

    void pay_in_by_thread() {
        for (int i = 0; i < 10; ++i) account_.blocking_lock()->enter("thread", 1);
    }

    rondo::task<bool> day() {
        rondo::environment const& here = co_await rondo::this_environment();
        auto first = spawn(*here.where, transfer("task", 100));
        co_await rondo::yield();
        transfer_foreign(-30);  // in line behind the task
        bool const served = co_await transfer_now_or_never(-1000);
        (void)co_await first.join();
        co_await foreign_done_.notified();
        co_return served;
    }

    // For who is alone with it: no lock is needed.
    account close() && { return std::move(account_).into_inner(); }

  private:
    rondo::mutex<account> account_;
    rondo::notify foreign_done_;
};

}  // namespace

int main() {
    family f;
    std::thread thread{[&] { f.pay_in_by_thread(); }};
    bool const hasty = rondo::block_on(f.day());
    thread.join();

    account const end = std::move(f).close();
    std::printf("%zu entries, balance %ld; the hasty one was %s\n", end.book.size(), end.balance,
                hasty ? "served" : "too late");
    long const expected = 100 - 30 + 10 + (hasty ? -1000 : 0);
    bool const right = end.balance == expected && end.book.size() == (hasty ? 13U : 12U);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
