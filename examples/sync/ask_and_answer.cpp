// Questions that carry the way back: each asker keeps the receiver of a oneshot and hands the
// sender over with the question. One asker loses patience; the clerk notices and spares the work.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/oneshot.hpp"

namespace {

using namespace std::chrono_literals;
namespace oneshot = rondo::oneshot;

struct question {
    std::string text;
    oneshot::sender<std::string> answer_to;
};

// [answer]
rondo::task<int> answer_all(std::vector<question> questions) {
    int spared = 0;
    for (question& q : questions) {
        co_await rondo::sleep_for(10ms);  // thinking
        if (q.answer_to.is_closed()) {
            ++spared;
            continue;
        }
        std::ignore = q.answer_to.send(q.text + "? Indeed.");
    }
    co_return spared;
}

rondo::task<std::string> ask(oneshot::receiver<std::string> reply,
                             rondo::clock::duration patience) {
    auto const answer = co_await reply.recv_for(patience);
    if (answer) co_return *answer;
    bool const late = answer.error() == oneshot::recv_error::timed_out;
    co_return late ? "(left)" : "(nobody is there)";
}
// [/answer]

rondo::task<bool> office() {
    rondo::environment const& here = co_await rondo::this_environment();
    auto [answer_rain, rain] = oneshot::channel<std::string>();
    auto [answer_snow, snow] = oneshot::channel<std::string>();
    auto [answer_sun, sun] = oneshot::channel<std::string>();

    std::vector<question> questions;
    questions.emplace_back("Will it rain", std::move(answer_rain));
    questions.emplace_back("Will it snow", std::move(answer_snow));
    auto clerk = spawn(*here.where, answer_all(std::move(questions)));
    {
        auto const torn_up = std::move(answer_sun);  // this question never reaches the clerk
    }
    auto patient = spawn(*here.where, ask(std::move(rain), 1h));
    auto impatient = spawn(*here.where, ask(std::move(snow), 1ms));
    auto unheard = spawn(*here.where, ask(std::move(sun), 1h));

    auto const first = co_await patient.join();
    auto const second = co_await impatient.join();
    auto const third = co_await unheard.join();
    auto const spared = co_await clerk.join();
    std::printf("rain: %s\nsnow: %s\nsun:  %s\nthe clerk spared %d answer\n", first->c_str(),
                second->c_str(), third->c_str(), *spared);
    co_return *first == "Will it rain? Indeed." && *second == "(left)" &&
        *third == "(nobody is there)" && *spared == 1;
}

}  // namespace

int main() { return rondo::block_on(office()) ? EXIT_SUCCESS : EXIT_FAILURE; }
