// Counts words in many texts on a thread pool: results from plain code and from a task, a job that
// fails, and a pool that is full.
#include <cstddef>
#include <cstdio>
#include <expected>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/task.hpp"
#include "rondo/exec/thread_pool.hpp"

namespace {

bool check(bool holds, char const* what) {
    std::printf("%-4s %s\n", holds ? "ok" : "NOT", what);
    return holds;
}

std::size_t count_words(std::string const& text) {
    if (text.empty()) throw std::invalid_argument{"nothing to count"};
    std::istringstream in{text};
    std::size_t n = 0;
    for (std::string word; in >> word;) ++n;
    return n;
}

// [submit]
// From a plain thread: start everything, then collect.
std::size_t count_all(rondo::thread_pool& pool, std::vector<std::string> const& texts) {
    std::vector<rondo::job_result<std::size_t>> counts;
    for (std::string const& text : texts) {
        counts.push_back(pool.submit([&text] { return count_words(text); }));
    }
    std::size_t sum = 0;
    for (auto& count : counts) sum += count.blocking_get().value_or(0);
    return sum;
}
// [/submit]

// [await]
// From a task: the thread that runs it does other things meanwhile. What the job throws arrives
// here.
rondo::task<std::string> describe(rondo::thread_pool* pool, std::string text) {
    auto count = pool->submit([&text] { return count_words(text); });
    try {
        auto const words = co_await count.get();
        co_return words ? std::to_string(*words) + " words" : "the pool did not run it";
    } catch (std::invalid_argument const& e) {
        co_return e.what();
    }
}
// [/await]

// [overflow]
// When the pool is full, a job can be done here instead: it comes back unharmed.
std::size_t count_here_if_full(rondo::thread_pool& pool, int jobs) {
    std::size_t here = 0;
    for (int i = 0; i < jobs; ++i) {
        auto accepted = pool.try_execute([] { (void)count_words("one two three"); });
        if (!accepted) {
            accepted.error().job();
            ++here;
        }
    }
    return here;
}
// [/overflow]

}  // namespace

int main() {
    std::vector<std::string> const texts(1000, "concurrency that takes turns");
    rondo::thread_pool pool{{.workers = 4, .name = "words"}};
    bool ok = check(count_all(pool, texts) == 4000, "every text was counted");
    ok &= check(rondo::block_on(describe(&pool, "one two")) == "2 words", "a task got its result");
    ok &= check(rondo::block_on(describe(&pool, "")) == "nothing to count",
                "and the exception of a job that failed");

    rondo::thread_pool small{{.workers = 1, .capacity = 8}};
    std::size_t const here = count_here_if_full(small, 1000);
    std::printf("     %zu of 1000 jobs found the small pool full and were done here\n", here);
    std::size_t const dropped = small.stop_now();
    ok &= check(here + dropped + small.count().run == 1000, "every job was run, dropped or kept");
    return ok ? 0 : 1;
}
