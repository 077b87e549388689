#include "monitor.hpp"

#include <utility>

#include "rondo/core/this_task.hpp"

namespace rondo::gateway {

task<void> monitor::run() {
    std::deque<std::unique_ptr<readings>> before;
    for (;;) {
        auto now = co_await source_();
        readings const* const then = before.empty() ? nullptr : before.front().get();
        auto said = std::make_shared<std::string const>(to_json(compare(*now, then)));
        before.push_back(std::move(now));
        if (before.size() > averaged) before.pop_front();
        {
            std::lock_guard const guard{lock_};
            past_.push_back(said);
            if (past_.size() > remembered) past_.pop_front();
        }
        latest_.send_modify([&said](text& t) { t = std::move(said); });
        co_await sleep_for(interval);
    }
}

std::deque<monitor::text> monitor::past() const {
    std::lock_guard const guard{lock_};
    return past_;
}

}  // namespace rondo::gateway
