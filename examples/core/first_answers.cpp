// Asks many and takes the first answers: tasks in a set, joined as they end.
//
// Eight mirrors are asked for the same file. The first text that three of them agree on is taken;
// the others are stopped, and have ended before the program goes on.
#include <chrono>
#include <cstdio>
#include <expected>
#include <map>
#include <string>

#include "rondo/core/block_on.hpp"
#include "rondo/core/join_set.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/this_task.hpp"

namespace {

using namespace std::chrono_literals;

// Half of the mirrors take an hour; one of those that do not has an old copy.
rondo::task<std::string> ask(int mirror) {
    co_await rondo::sleep_for(mirror < 4 ? 1ms * mirror : 1h);
    co_return mirror == 1 ? "edition 41" : "edition 42";
}

// [join_set]
// The first text that three mirrors agree on; none if they never do.
rondo::task<std::string> agreed(rondo::executor* where) {
    rondo::join_set<std::string> mirrors{*where};
    for (int i = 0; i < 8; ++i) mirrors.spawn(ask(i));

    std::map<std::string, int> votes;
    std::string found;
    while (found.empty()) {
        std::expected<std::string, rondo::join_error> const answer = co_await mirrors.join_next();
        if (!answer) break;  // nobody is left
        if (++votes[*answer] == 3) found = *answer;
    }
    co_await mirrors.shutdown();  // without it they would be stopped too, but not waited for
    co_return found;
}
// [/join_set]

}  // namespace

int main() {
    rondo::run_loop loop;
    auto const start = rondo::clock::now();
    std::string const text = rondo::block_on(loop, agreed(&loop));
    auto const took = rondo::clock::now() - start;
    bool const right = text == "edition 42";
    bool const early = took < 30min && loop.dump().empty();
    std::printf("three mirrors agree on \"%s\"\n", text.c_str());
    std::printf("%-4s the majority was right\n", right ? "ok" : "NOT");
    std::printf("%-4s nobody waited for those who take an hour\n", early ? "ok" : "NOT");
    return right && early ? 0 : 1;
}
