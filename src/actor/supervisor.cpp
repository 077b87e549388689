#include "rondo/actor/supervisor.hpp"

#include <algorithm>
#include <expected>

#include "rondo/core/assert.hpp"

namespace rondo::actor {

char const* describe(end_of_life why) noexcept {
    switch (why) {
        case end_of_life::drained:
            return "drained";
        case end_of_life::gave_up:
            return "gave up";
        case end_of_life::stopped:
            return "stopped";
    }
    return "unknown";
}

supervisor::supervisor(executor& where, when_one_gives_up then, when_one_fails who)
    : where_(where),
      then_(then),
      fate_(who == when_one_fails::all_begin_again ? std::make_shared<detail::shared_fate>()
                                                   : nullptr) {}

supervisor::~supervisor() {
    for (auto const& c : children_) {
        RONDO_ASSERT(c->life.has_ended(), "a supervisor is joined before it goes");
    }
}

// Who gives up stops the others: said by the actor itself, on its executor, before it has ended.
void supervisor::watch_failures(options& chosen) {
    if (then_ == when_one_gives_up::others_go_on) return;
    chosen.failed = [this, told = std::move(chosen.failed)](std::exception_ptr const& failure,
                                                            after_failure then) {
        if (told) {
            told(failure, then);
        } else {
            where_.unobserved(failure);
        }
        if (then == after_failure::gives_up) request_stop();
    };
}

void supervisor::add(std::string name, handle life) {
    auto const one = std::make_shared<child>(std::move(name), std::move(life));
    bool drain_it = false;
    {
        std::lock_guard const guard{lock_};
        children_.push_back(one);
        drain_it = draining_;
    }
    if (drain_it) one->life.drain();
}

void supervisor::drain() noexcept {
    {
        std::lock_guard const guard{lock_};
        draining_ = true;  // whoever is added from now on is drained by add()
    }
    for (std::size_t i = 0; child_ptr const c = nth(i); ++i) c->life.drain();
}

task<std::vector<obituary>> supervisor::join() {
    while (child_ptr const c = next_to_join()) {
        auto const how = co_await c->life.join();
        c->bury(how);
    }
    co_return take_obituaries();
}

std::vector<obituary> supervisor::blocking_join() {
    while (child_ptr const c = next_to_join()) c->bury(c->life.blocking_join());
    return take_obituaries();
}

std::vector<report> supervisor::look() const {
    std::vector<report> all;
    for (std::size_t i = 0; child_ptr const c = nth(i); ++i) {
        all.push_back({c->name, c->life.progress()});
    }
    return all;
}

void supervisor::child::bury(std::expected<ended, wait_error> const& how) {
    if (!how) {
        end = {name, end_of_life::stopped, nullptr};
    } else if (how->failure) {
        end = {name, end_of_life::gave_up, how->failure};
    } else {
        end = {name, end_of_life::drained, nullptr};
    }
}

supervisor::child_ptr supervisor::nth(std::size_t n) const noexcept {
    std::lock_guard const guard{lock_};
    return n < children_.size() ? children_[n] : nullptr;
}

supervisor::child_ptr supervisor::next_to_join() const noexcept {
    std::lock_guard const guard{lock_};
    for (child_ptr const& c : children_) {
        if (!c->end) return c;
    }
    return nullptr;
}

std::vector<obituary> supervisor::take_obituaries() {
    std::vector<child_ptr> joined;
    {
        std::lock_guard const guard{lock_};
        // Some may have been started a moment ago; they are for the next join.
        auto const rest = std::ranges::find_if(children_, [](auto const& c) { return !c->end; });
        joined.assign(children_.begin(), rest);
        children_.erase(children_.begin(), rest);
    }
    std::vector<obituary> all;
    all.reserve(joined.size());
    for (child_ptr const& c : joined) all.push_back(std::move(*c->end));
    return all;
}

}  // namespace rondo::actor
