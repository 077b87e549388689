// A mailbox that several workers empty: a queue, a lock, and a notify to sleep on.
//
// Each worker takes its place in line before it looks into the queue. A letter that arrives between
// the look and the sleep is then not missed, and two letters wake two workers.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "rondo/core/block_on.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/sync/notify.hpp"

namespace {

// [mailbox]
class mailbox {
  public:
    void put(std::string letter) {
        {
            std::lock_guard const guard{lock_};
            letters_.push_back(std::move(letter));
        }
        arrived_.notify_one();
    }

    void close() {
        {
            std::lock_guard const guard{lock_};
            closed_ = true;
        }
        arrived_.notify_waiters();
    }

    // Nothing when the box is closed and empty.
    rondo::task<std::optional<std::string>> take() {
        for (;;) {
            auto arrival = arrived_.notified();
            arrival.enable();  // from here on nothing is missed
            {
                std::lock_guard const guard{lock_};
                if (!letters_.empty()) {
                    std::optional<std::string> letter{std::move(letters_.front())};
                    letters_.pop_front();
                    co_return letter;  // a notification that came meanwhile goes to the next worker
                }
                if (closed_) co_return std::nullopt;
            }
            co_await arrival;
        }
    }

  private:
    std::mutex lock_;
    std::deque<std::string> letters_;
    bool closed_ = false;
    rondo::notify arrived_;
};
// [/mailbox]

rondo::task<int> work(mailbox* box, char const* who) {
    int read = 0;
    for (;;) {
        std::optional<std::string> const letter = co_await box->take();
        if (!letter) break;
        std::printf("%s reads: %s\n", who, letter->c_str());
        ++read;
    }
    co_return read;
}

}  // namespace

int main() {
    mailbox box;
    std::jthread const post_office{[&] {
        for (char const* letter : {"a bill", "an invitation", "a postcard", "another bill"}) {
            box.put(letter);
        }
        box.close();
    }};
    auto const both = [](mailbox* from) -> rondo::task<int> {
        auto const [a, b] = co_await rondo::when_all(work(from, "Ada"), work(from, "Bea"));
        co_return a + b;
    };
    int const read = rondo::block_on(both(&box));
    std::printf("%d letters were read\n", read);
    return read == 4 ? EXIT_SUCCESS : EXIT_FAILURE;
}
