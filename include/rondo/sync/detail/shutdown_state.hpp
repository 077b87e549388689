// shutdown_state.hpp: what a shutdown's notifier and its subscriptions share. The algorithm:
// src/sync/shutdown.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/core/linked_list.hpp"
#include "rondo/core/short_lock.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/waiter.hpp"
#include "rondo/sync/detail/headcount.hpp"

namespace rondo::detail {

// One entry in the list of those who are subscribed.
class subscriber : public recycled, list_hook<subscriber> {
  public:
    explicit subscriber(std::string name)
        : name_(std::make_shared<std::string const>(std::move(name))) {}

    std::string const& name() const noexcept { return *name_; }
    bool acknowledged() const noexcept { return acknowledged_; }  // for its owner

  private:
    friend class shutdown_state;
    friend linked_list<subscriber>;

    std::shared_ptr<std::string const> name_;
    bool acknowledged_ = false;  // changes under the lock of the list
};

// Those who wait for the notification wait in it.
class shutdown_state final : public wait_queue, public recycled {
  public:
    enum class said : std::uint8_t {
        nothing,
        shutdown,
        farewell,  // the notifier is gone, and has not sent
    };

    // Made with one owner, the notifier.
    shutdown_state() = default;

    said heard() const noexcept {
        // acquire: pairs with the release in say()
        return said_.load(std::memory_order_acquire);
    }
    // How many were subscribed when it was said. What was said first stays.
    std::size_t say(said what) noexcept;
    void disown() noexcept;

    void subscribe(subscriber& s) noexcept;
    void acknowledge(subscriber& s) noexcept;
    void unsubscribe(subscriber& s) noexcept;

    headcount& subscribed() noexcept { return subscribed_; }
    headcount& unanswered() noexcept { return unanswered_; }
    // The names of those who are subscribed, or only of those who have not acknowledged.
    std::vector<std::string> names(bool with_acknowledged);

    stop_token token() noexcept { return stop_.token(); }

  private:
    bool grant(waiter&) noexcept override { return heard() != said::nothing; }
    bool owed(waiter&) noexcept override { return heard() != said::nothing; }

    atomic<said> said_{said::nothing};
    headcount subscribed_;
    headcount unanswered_;
    stop_source stop_;
    short_lock list_lock_;
    linked_list<subscriber> subscribers_;
    atomic<std::size_t> owners_{1};
};

}  // namespace rondo::detail
