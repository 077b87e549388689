// A supervisor through the night: a printer that jams is begun again, the archive beside it does
// not notice, and when the printer jams too often it gives up alone. The night passes in virtual
// time.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rondo/actor/actor.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/world.hpp"

namespace {

using namespace std::chrono_literals;
namespace actor = rondo::actor;

void require(bool holds, char const* what) {
    if (holds) return;
    std::fprintf(stderr, "not so: %s\n", what);
    std::exit(1);
}

struct page {
    int number;
};

class archive {
  public:
    using accepts = actor::messages<page>;
    explicit archive(std::vector<int>& kept) noexcept : kept_(kept) {}
    void receive(page p) { kept_.push_back(p.number); }

  private:
    std::vector<int>& kept_;
};

// Jams at every fourth page since it was begun.
class printer {
  public:
    using accepts = actor::messages<page>;
    explicit printer(actor::address<page> then) noexcept : then_(std::move(then)) {}

    rondo::task<void> receive(page p) {
        co_await rondo::sleep_for(1s);
        if (++printed_ % 4 == 0) throw std::runtime_error{"page " + std::to_string(p.number)};
        (void)co_await then_.tell(p);
    }

  private:
    actor::address<page> then_;
    int printed_ = 0;
};

void note(std::exception_ptr const& failure, actor::after_failure then) {
    try {
        std::rethrow_exception(failure);
    } catch (std::exception const& e) {
        bool const again = then == actor::after_failure::begins_again;
        std::printf("  jammed at %s: %s\n", e.what(), again ? "begins again" : "gives up");
    }
}

rondo::task<std::vector<actor::obituary>> night(std::vector<int>* kept) {
    rondo::executor& where = *(co_await rondo::this_environment()).where;
    // [supervisor]
    actor::supervisor office{where};
    auto shelf = office.start<archive>("archive", [kept] { return archive{*kept}; });
    auto press = office.start<printer>(
        "printer", [shelf] { return printer{shelf}; },
        {.restarts = {.at_most = 2, .within = 1h, .delay = 5s}, .failed = note});

    for (int number = 1; number <= 20; ++number) {
        auto const told = co_await press.tell(page{number});
        if (!told) break;
        co_await rondo::sleep_for(1min);
    }
    office.drain();
    co_return co_await office.join();
    // [/supervisor]
}

}  // namespace

int main() {
    std::vector<int> kept;
    rondo::sim::world world;
    auto const ends = world.block_on(night(&kept));
    require(ends.has_value(), "the night passes");
    for (actor::obituary const& o : *ends) {
        std::printf("%s: %s\n", o.name.c_str(), actor::describe(o.why));
    }
    require((*ends)[0].why == actor::end_of_life::drained, "the archive goes on");
    require((*ends)[1].why == actor::end_of_life::gave_up, "the printer gives up");
    require(kept == std::vector{1, 2, 3, 5, 6, 7, 9, 10, 11}, "what was printed is kept");
    std::printf("%zu pages are in the archive\n", kept.size());
}
