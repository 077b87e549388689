// Code that waits on the primitives of the library, run in every way that its threads can
// interleave. The program links rondo::sync_checked, the same sources as rondo::sync with the
// checker's atomics. A mailbox that looks first and then waits misses a letter that comes in
// between; one that takes its place in line first does not.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "rondo/check/check.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/sync/notify.hpp"

namespace {

namespace check = rondo::check;

// [mailbox]
class mailbox {
  public:
    void put() {
        full_.store(true, std::memory_order_release);
        arrived_.notify_waiters();
    }
    void look_then_wait() {
        if (full()) return;
        arrived_.blocking_notified();  // what came since the look is missed
    }
    void line_up_then_look() {
        auto letter = arrived_.notified();
        letter.enable();  // from here on nothing is missed
        if (!full()) letter.blocking_wait();
    }

  private:
    bool full() const { return full_.load(std::memory_order_acquire); }

    rondo::atomic<bool> full_{false};  // std::atomic, or the checker's
    rondo::notify arrived_;
};

// One thread puts, this one takes.
check::report explore(void (mailbox::*take)()) {
    return check::explore({.preemptions = 3}, [take] {
        mailbox box;
        check::thread other{[&box] { box.put(); }};
        (box.*take)();
        other.join();
    });
}
// [/mailbox]

// The rest of an error is the trace.
std::string first_line_of(check::report const& r) {
    return r.ok ? "no error" : r.error.substr(0, r.error.find('\n'));
}

}  // namespace

int main() {
    check::report const wrong = explore(&mailbox::look_then_wait);
    std::printf("look, then wait:     %s\n", first_line_of(wrong).c_str());
    std::printf("  again by           RONDO_SCHEDULE=%s\n", wrong.schedule.c_str());

    check::report const right = explore(&mailbox::line_up_then_look);
    std::printf("line up, then look:  %s in %llu executions\n", first_line_of(right).c_str(),
                static_cast<unsigned long long>(right.executions));
    bool const as_expected =
        !wrong.ok && wrong.kind == check::failure::deadlock && right.ok && right.complete;
    return as_expected ? EXIT_SUCCESS : EXIT_FAILURE;
}
