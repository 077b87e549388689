// The first things to know: a task, several at once, the first of several, and a time limit.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <string>
#include <utility>
#include <variant>

#include "rondo/core/block_on.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"

namespace {

using namespace std::chrono_literals;

// [task]
// A task is lazy: it runs when somebody awaits it, and waiting does not hold a thread.
rondo::task<std::string> fetch(std::string page, rondo::clock::duration latency) {
    co_await rondo::sleep_for(latency);
    co_return "<" + page + ">";
}
// [/task]

// [when_all]
// Both at once. If one throws, the other is stopped, and has ended before the exception goes on.
rondo::task<std::string> both() {
    auto [head, body] = co_await rondo::when_all(fetch("head", 2ms), fetch("body", 1ms));
    co_return head + body;
}
// [/when_all]

// [when_any]
// The first answer wins. The other request is stopped, like a cancelled future: its destructors
// run, what it waited for goes to the next in line, and it has ended before this goes on.
rondo::task<std::string> fastest() {
    auto answer = co_await rondo::when_any(fetch("far away", 1h), fetch("near", 1ms));
    if (answer.index() == 0) co_return std::get<0>(std::move(answer));
    co_return std::get<1>(std::move(answer));
}
// [/when_any]

// [with_timeout]
// A time limit around anything that can be awaited: an expected outcome, so it is a value.
rondo::task<std::string> within_limit() {
    auto const page = co_await rondo::with_timeout(fetch("slow", 1h), 2ms);
    if (!page) co_return "too late";
    co_return *page;
}
// [/with_timeout]

}  // namespace

int main() {
    // [block_on]
    // From plain code: run a task in this thread until it has ended.
    std::string const page = rondo::block_on(both());
    // [/block_on]
    std::string const near = rondo::block_on(fastest());
    std::string const late = rondo::block_on(within_limit());
    std::printf("both at once   %s\nthe fastest    %s\nin 2 ms        %s\n", page.c_str(),
                near.c_str(), late.c_str());
    bool const right = page == "<head><body>" && near == "<near>" && late == "too late";
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
