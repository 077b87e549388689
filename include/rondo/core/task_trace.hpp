// task_trace.hpp: where a task is: the chain of tasks that await each other, and what the innermost
// one awaits.
//
//   for (rondo::task_trace const& t : loop.dump()) std::puts(rondo::to_text(t).c_str());
//
//   sleeps
//     at rondo::task<void> back_off(int) (client.cpp:31)
//     in rondo::task<page> fetch(url) (client.cpp:48)
//
// Guarantee      each frame names its coroutine and the line of the co_await that it has come to;
//                before its first one, the line where the coroutine is defined. A task that forked
//                (when_all, when_any) has a trace for each branch that has not ended.
// Thread safety  a trace is taken while the task does not run and nobody can make it run: by the
//                thread of a run_loop or sim::world, inside or outside of it, as long as nothing
//                foreign resumes a task of it in another thread; or by runtime::dump(), which
//                pauses the workers and makes such threads wait. What runs then, because it asks,
//                says no more than `running` and its outermost frame. What has gone on in a thread
//                of something foreign says no more to a runtime than `elsewhere` and where the
//                task's coroutine is defined, until it has its next turn.
// Cost           a task pays one word in its frame and one store for each co_await; the rest is
//                paid by whoever takes a trace, which allocates.
// Compilers      g++ 12 names the body of the coroutine; the trace has its name without parameters.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

namespace rondo {

struct task_trace {
    enum class activity : std::uint8_t {
        not_begun,  // waits for its first turn
        running,
        waiting,   // in the queue of a primitive; or was woken, and its turn has not come yet
        sleeping,  // until a moment, or a stop
        yielding,
        in_io,
        elsewhere,  // in an awaitable that is not ours, or gone on in a thread of such a one
        forked,     // until its branches have ended
    };

    struct frame {
        explicit frame(std::source_location at);

        std::string function;
        char const* file;
        std::uint_least32_t line;
    };

    activity doing;
    std::vector<frame> frames;         // innermost first
    std::vector<task_trace> branches;  // of a task that forked
};

char const* describe(task_trace::activity what) noexcept;

// A few lines, as above; branches are indented.
std::string to_text(task_trace const& trace);
std::string to_text(std::vector<task_trace> const& traces);

}  // namespace rondo
