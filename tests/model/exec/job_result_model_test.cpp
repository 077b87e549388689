// The result of a job, explored: whoever runs the job, whoever takes the result, and who of the two
// frees what they share.
#include <exception>
#include <utility>

#include "rondo/exec/job_result.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;

struct nobody final : detail::failure_sink {
    void failed(std::exception_ptr) noexcept override {}
};

// As thread_pool::submit() makes one.
template <class F>
auto* submitted(F f, detail::failure_sink& sink) {
    return new detail::submitted_job<F, decltype(f())>{std::move(f), sink};
}

TEST(JobResultModel, WhatTheJobDidIsSeenByTheTaker) {
    EXPECT_HOLDS([] {
        nobody sink;
        cell<int> data{0};
        auto* const j = submitted(
            [&] {
                data = 7;
                return 1;
            },
            sink);
        job_result<int> r{*j};
        thread worker{[&, j] { j->start(sink); }};
        RONDO_CHECK_EXPECT(r.blocking_get() == 1);
        RONDO_CHECK_EXPECT(data == 7);
        worker.join();
    });
}

TEST(JobResultModel, TheHandleMayGoWhileTheJobRuns) {
    EXPECT_HOLDS([] {
        nobody sink;
        auto* const j = submitted([] { return 1; }, sink);
        thread worker{[&, j] { j->start(sink); }};
        {
            job_result<int> const r{*j};
        }
        worker.join();
    });
}

TEST(JobResultModel, NobodyWaitsForAJobThatWasDropped) {
    EXPECT_HOLDS([] {
        nobody sink;
        auto* const j = submitted([] {}, sink);
        job_result<void> r{*j};
        thread stops{[j] { j->drop(); }};
        auto const got = r.blocking_get();
        RONDO_CHECK_EXPECT(!got && got.error() == job_error::dropped);
        stops.join();
    });
}

}  // namespace
}  // namespace rondo
