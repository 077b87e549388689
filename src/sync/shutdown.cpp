// Algorithm
//   Two headcounts: those who are subscribed, and those of them who have not acknowledged. The
//   notification is a word that changes once; those who wait for it are let go then. A list has the
//   names, for the report of who did not answer.
//
// Invariants
//   I1  a subscriber is in the list from subscribe() to unsubscribe(), and counted as subscribed.
//   I2  it is counted as unanswered from subscribe() until it acknowledges or goes, whichever comes
//       first, and once.
//   I3  the state is freed by the last of its owners, who are the notifier and the subscribers:
//       each stays one until its last call has returned.
#include "rondo/sync/shutdown.hpp"

#include <algorithm>
#include <mutex>

namespace rondo::detail {

std::size_t shutdown_state::say(said what) noexcept {
    bool first = false;
    std::size_t reached = 0;
    serve_in_batches([&] {
        reached = subscribed_.size();  // before they are told: they may go at once then
        first = said_.load(std::memory_order_relaxed) == said::nothing;
        // release: pairs with the acquire in heard()
        if (first) said_.store(what, std::memory_order_release);
    });
    if (first && what == said::shutdown) stop_.request_stop();
    return reached;
}

void shutdown_state::disown() noexcept {
    // acq_rel: the last owner destroys what the others have used
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;  // I3
}

void shutdown_state::subscribe(subscriber& s) noexcept {
    owners_.fetch_add(1, std::memory_order_relaxed);  // by an owner
    subscribed_.add();
    unanswered_.add();
    std::lock_guard const guard{list_lock_};
    subscribers_.push_back(s);
}

void shutdown_state::acknowledge(subscriber& s) noexcept {
    {
        std::lock_guard const guard{list_lock_};
        if (s.acknowledged_) return;  // I2
        s.acknowledged_ = true;
    }
    unanswered_.drop();
}

void shutdown_state::unsubscribe(subscriber& s) noexcept {
    {
        std::lock_guard const guard{list_lock_};
        subscribers_.remove(s);
    }
    if (!s.acknowledged_) unanswered_.drop();  // I2
    subscribed_.drop();
    disown();
}

std::vector<std::string> shutdown_state::names(bool with_acknowledged) {
    // Shared under the lock and copied without it: no memory is asked for while it is held.
    std::vector<std::shared_ptr<std::string const>> found;
    for (;;) {
        found.clear();
        found.reserve(subscribed_.size() + 1);
        std::lock_guard const guard{list_lock_};
        subscriber const* s = subscribers_.front();
        for (; s != nullptr && found.size() < found.capacity(); s = subscribers_.after(*s)) {
            if (with_acknowledged || !s->acknowledged_) found.push_back(s->name_);
        }
        if (s == nullptr) break;
    }
    std::vector<std::string> names;
    names.reserve(found.size());
    std::transform(found.begin(), found.end(), std::back_inserter(names),
                   [](auto const& name) { return *name; });
    return names;
}

}  // namespace rondo::detail

namespace rondo::shutdown {

subscription::~subscription() {
    if (state_ == nullptr) return;
    state_->unsubscribe(*entry_);
    delete entry_;
}

subscription notifier::subscribe(std::string name) {
    std::size_t const number = made_.fetch_add(1, std::memory_order_relaxed) + 1;  // a count
    if (name.empty()) name = "subscription " + std::to_string(number);
    return {*state_, std::move(name)};
}

std::expected<std::size_t, send_error> notifier::send(notification) noexcept {
    std::size_t const reached = state_->say(detail::shutdown_state::said::shutdown);
    if (reached == 0) return std::unexpected{send_error::nobody_subscribed};
    return reached;
}

void notifier::leave::operator()(detail::shutdown_state* state) const noexcept {
    (void)state->say(detail::shutdown_state::said::farewell);
    state->disown();
}

}  // namespace rondo::shutdown
