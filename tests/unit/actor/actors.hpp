// actors.hpp: actors that the tests tell and ask.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "rondo/actor/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/notify.hpp"
#include "support/manual_loop.hpp"

namespace rondo::test {

struct add {
    int n;
};
struct total {
    using reply = int;
};
struct fail {};
struct pause {  // waits until it is let go
    notify* until;
};

struct report_to {
    int* received;  // how many of these there were
};

// Sums up; fails and waits when told to.
class counter {
  public:
    using accepts = actor::messages<add, total, fail, pause, report_to>;

    explicit counter(int start = 0) noexcept : sum_(start) {}

    void receive(add a) noexcept { sum_ += a.n; }
    int receive(total) const noexcept { return sum_; }
    void receive(fail) { throw std::runtime_error{"told to"}; }
    task<void> receive(pause p) { co_await p.until->notified(); }
    void receive(report_to r) noexcept { ++*r.received; }

  private:
    int sum_;
};

inline actor::options tolerates(unsigned failures) { return {.restarts = {.at_most = failures}}; }

// The exceptions' texts, of what goes to options::failed.
class failures {
  public:
    actor::options& note_in(actor::options& chosen) {
        chosen.failed = [this](std::exception_ptr e, actor::after_failure then) {
            all.emplace_back(std::move(e), then);
        };
        return chosen;
    }

    std::vector<std::pair<std::exception_ptr, actor::after_failure>> all;
};

// Actors on a loop that the test steps. Whoever is left is drained by its handle, and ends with the
// fixture.
class ActorTest : public testing::Test {
  protected:
    ActorTest() = default;
    ~ActorTest() override { loop.run_ready(); }

    // Runs a task to its end on the loop.
    template <class T>
    T result_of(task<T> t) {
        join_handle<T> running = spawn(loop, std::move(t));
        loop.run_ready();
        return *running.blocking_join();
    }

    manual_loop loop;
};

}  // namespace rondo::test
