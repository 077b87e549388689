// Webhooks of many customers. The receiver of one is slow, that of another fails; neither delays
// the events of the rest, and events that nobody wants any more after a while are not sent.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "rondo/core/block_on.hpp"
#include "rondo/core/executor.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/fair/dispatcher.hpp"

namespace {

using namespace std::chrono_literals;
namespace fair = rondo::fair;

struct event {
    int number;
    int attempt;
};
using queue = fair::scheduler<event, std::string>;

struct account {
    int sent = 0;
    int tried = 0;
    int given_up = 0;
    std::chrono::milliseconds last{0};  // when its last event was sent
};

class sender {
  public:
    explicit sender(std::map<std::string, account>& accounts)
        : accounts_(accounts),
          queue_({{.quantum = 1}}, [this](fair::disposition, queue::task const& e) {
              ++accounts_[e.tenant].given_up;  // too late for anybody
          }) {}

    rondo::task<void> send_all() {
        rondo::executor& here = *rondo::executor::current();
        auto const one = [this](queue::task next) { return send(std::move(next)); };
        fair::dispatcher<event, std::string> out{queue_, here, 3, one};
        for (int i = 0; i < 20; ++i) {
            for (char const* const to : {"slow", "failing", "good", "better"}) enqueue(to, {i, 1});
        }
        co_await rondo::sleep_for(150ms);  // longer than any event is wanted
        co_await out.drain();
    }

  private:
    void enqueue(std::string const& to, event e) {
        // An attempt costs what it keeps a sender busy for: the slow one pays for its slowness.
        std::uint64_t const cost = to == "slow" ? 10 : 1;
        rondo::time_point const wanted = began_ + 100ms;
        (void)queue_.enqueue(to, e, {.cost = cost, .deadline = wanted});
    }
    rondo::task<void> send(queue::task e) {
        account& a = accounts_[e.tenant];
        ++a.tried;
        co_await rondo::sleep_for(e.tenant == "slow" ? 10ms : 1ms);
        if (e.tenant == "failing") {
            if (e.payload.attempt < 3) enqueue(e.tenant, {e.payload.number, e.payload.attempt + 1});
            co_return;
        }
        ++a.sent;
        a.last =
            std::chrono::duration_cast<std::chrono::milliseconds>(rondo::clock::now() - began_);
    }

    std::map<std::string, account>& accounts_;
    rondo::time_point began_ = rondo::clock::now();
    queue queue_;
};

}  // namespace

int main() {
    std::map<std::string, account> accounts;
    {
        sender s{accounts};
        rondo::block_on(s.send_all());
    }
    for (auto const& [who, a] : accounts) {
        std::printf(
            "%-8s %2d of 20 events sent in %2d attempts, the last after %3d ms; %d given up\n",
            who.c_str(), a.sent, a.tried, static_cast<int>(a.last.count()), a.given_up);
    }
    // How long it takes is the machine's business; that nobody is kept from its turns is ours.
    bool const right = accounts["good"].sent + accounts["good"].given_up == 20 &&
                       accounts["slow"].sent <= accounts["good"].sent &&
                       accounts["failing"].sent == 0;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
