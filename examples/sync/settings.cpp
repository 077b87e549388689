// Parts of a program start at once and wait for the settings, which a thread reads meanwhile.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "rondo/core/block_on.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/sync/set_once.hpp"

namespace {

struct settings {
    std::string language;
    int port;
};

// [set_once]
rondo::set_once<settings> configured;

rondo::task<int> listen() {
    settings const* s = co_await configured.wait();
    std::printf("listening on port %d\n", s->port);
    co_return s->port;
}

rondo::task<std::string> greet() {
    settings const* s = co_await configured.wait();
    std::printf("speaking %s\n", s->language.c_str());
    co_return s->language;
}
// [/set_once]

rondo::task<bool> start() {
    auto const [port, language] = co_await rondo::when_all(listen(), greet());
    co_return port == 8080 && language == "Esperanto";
}

}  // namespace

int main() {
    std::jthread const reader{[] {
        bool const first = configured.set({"Esperanto", 8080}).has_value();
        bool const second = configured.set({"Latin", 80}).has_value();
        if (!first || second) std::abort();
    }};
    return rondo::block_on(start()) ? EXIT_SUCCESS : EXIT_FAILURE;
}
