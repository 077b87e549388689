#include "monitor.hpp"

#include <utility>

#include "rondo/core/this_task.hpp"

namespace rondo::gateway {

task<void> monitor::run() {
    for (;;) {
        std::shared_ptr<readings const> const now = co_await source_();
        readings const* const then = before_.empty() ? nullptr : before_.front().get();
        auto said = std::make_shared<std::string const>(to_json(compare(*now, then)));
        {
            std::lock_guard const guard{lock_};
            before_.push_back(now);
            if (before_.size() > averaged) before_.pop_front();
            past_.push_back(said);
            if (past_.size() > remembered) past_.pop_front();
        }
        latest_.send_modify([&said](text& t) { t = std::move(said); });
        co_await sleep_for(interval);
    }
}

// Nothing has a rate over a moment.
task<std::string> monitor::look() const {
    auto const now = co_await source_();
    std::shared_ptr<readings const> then;
    {
        std::lock_guard const guard{lock_};
        bool const some = !before_.empty() && now->at - before_.front()->at >= interval / 2;
        if (some) then = before_.front();
    }
    co_return to_json(compare(*now, then.get()));
}

std::deque<monitor::text> monitor::past() const {
    std::lock_guard const guard{lock_};
    return past_;
}

}  // namespace rondo::gateway
