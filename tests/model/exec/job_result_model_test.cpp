// The result of a job, explored: whoever runs the job, whoever takes the result, and who of the two
// frees what they share.
#include <exception>
#include <utility>

#include "rondo/core/block_on.hpp"
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
auto* submitted(F f) {
    return new detail::submitted_job<F, decltype(f())>{std::move(f)};
}

TEST(JobResultModel, WhatTheJobDidIsSeenByTheTaker) {
    EXPECT_HOLDS([] {
        nobody sink;
        cell<int> data{0};
        auto* const j = submitted([&] {
            data = 7;
            return 1;
        });
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
        auto* const j = submitted([] { return 1; });
        thread worker{[&, j] { j->start(sink); }};
        {
            job_result<int> const r{*j};
        }
        worker.join();
    });
}

TEST(JobResultModel, TheHandleMayGoWhileSomebodyWaits) {
    EXPECT_HOLDS([] {
        nobody sink;
        auto* const j = submitted([] { return 1; });
        auto wait = [j] {
            job_result<int> r{*j};
            return r.get();
        };
        auto awaits = [](auto get) -> task<bool> {
            auto const got = co_await std::move(get);
            co_return got == 1;
        };
        task<bool> waiting = awaits(wait());
        thread worker{[&, j] { j->start(sink); }};
        RONDO_CHECK_EXPECT(block_on(std::move(waiting)));
        worker.join();
    });
}

// Counts what it gets, and notes its end.
class counting final : public detail::failure_sink {
  public:
    counting(cell<int>& failures, cell<bool>& gone) noexcept : failures_(failures), gone_(gone) {}
    void failed(std::exception_ptr) noexcept override { failures_ = failures_ + 1; }

  private:
    ~counting() override { gone_ = true; }

    cell<int>& failures_;
    cell<bool>& gone_;
};

// The pool goes, and then the handle; or the handle in the same instant.
TEST(JobResultModel, AnExceptionIsHandedInAlthoughThePoolIsGone) {
    EXPECT_HOLDS([] {
        cell<int> failures{0};
        cell<bool> gone{false};
        auto* const sink = new counting{failures, gone};
        auto* const j = submitted([]() -> int { throw 1; });
        thread pool{[&, j] {
            j->start(*sink);
            sink->let_go();
        }};
        {
            job_result<int> const r{*j};
        }
        pool.join();
        RONDO_CHECK_EXPECT(failures == 1);
        RONDO_CHECK_EXPECT(gone);
    });
}

TEST(JobResultModel, NobodyWaitsForAJobThatWasDropped) {
    EXPECT_HOLDS([] {
        auto* const j = submitted([] {});
        job_result<void> r{*j};
        thread stops{[j] { j->drop(); }};
        auto const got = r.blocking_get();
        RONDO_CHECK_EXPECT(!got && got.error() == job_error::dropped);
        stops.join();
    });
}

}  // namespace
}  // namespace rondo
