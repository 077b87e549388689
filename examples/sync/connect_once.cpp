// Several tasks need one connection. Whoever comes first connects, the others wait for it; when
// connecting fails, the next one tries.
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <string>

#include "rondo/core/block_on.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/sync/once_cell.hpp"

namespace {

using namespace std::chrono_literals;

struct connection {
    std::string peer;
};

// [once_cell]
class client {
  public:
    rondo::task<std::string> ask(int who) {
        auto const connect = [this] { return connect_somewhere(); };
        auto const shared = co_await connection_.get_or_try_init(connect);
        if (!shared) co_return "nothing: " + shared.error();
        co_return "an answer from " + (*shared)->peer + " for " + std::to_string(who);
    }

  private:
    using result = std::expected<connection, std::string>;

    rondo::task<result> connect_somewhere() {
        co_await rondo::sleep_for(1ms);
        if (++attempts_ == 1) co_return std::unexpected{std::string{"the line is busy"}};
        co_return connection{"server " + std::to_string(attempts_)};
    }

    rondo::once_cell<connection> connection_;
    int attempts_ = 0;
};
// [/once_cell]

rondo::task<int> three_of_them(client* c) {
    auto const [a, b, d] = co_await rondo::when_all(c->ask(1), c->ask(2), c->ask(3));
    for (std::string const& got : {a, b, d}) std::printf("got %s\n", got.c_str());
    bool const right = a == "nothing: the line is busy" && b == "an answer from server 2 for 2" &&
                       d == "an answer from server 2 for 3";
    co_return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main() {
    client c;
    return rondo::block_on(three_of_them(&c));
}
