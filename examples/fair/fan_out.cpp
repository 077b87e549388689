// Each request fans out into parts. A request with many parts takes its turns beside the small
// ones, and when the first answer is enough the rest of its parts are cancelled.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#include "rondo/fair/scheduler.hpp"

int main() {
    // [fan_out]
    rondo::fair::scheduler<int, int> parts{{{.quantum = 1}}};
    std::map<int, std::vector<rondo::fair::handle>> of_request;
    auto const fan_out = [&](int request, int how_many) {
        for (int i = 0; i < how_many; ++i) {
            auto const part = parts.enqueue_with_handle(request, i);
            if (part) of_request[request].push_back(*part);
        }
    };
    fan_out(1, 100);
    fan_out(2, 3);
    fan_out(3, 3);

    int done = 0;
    int saved = 0;
    std::map<int, int> finished;  // after how many parts in all
    std::map<int, int> parts_of;
    while (auto const part = parts.try_dequeue()) {
        ++done;
        finished[part->tenant] = done;
        // Request 1 asks a hundred replicas, and ten answers are enough for it.
        if (++parts_of[part->tenant] != 10) continue;
        for (auto const h : of_request[part->tenant]) {
            if (parts.cancel(h) == rondo::fair::cancel_result::cancelled) ++saved;
        }
    }
    // [/fan_out]
    for (auto const& [request, at] : finished) {
        std::printf("request %d finished after %d parts of all\n", request, at);
    }
    std::printf("%d parts were run, %d cancelled\n", done, saved);
    return done == 16 && saved == 90 && finished[2] <= 9 ? EXIT_SUCCESS : EXIT_FAILURE;
}
