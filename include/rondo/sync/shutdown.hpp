// shutdown.hpp: tells everybody to end, and waits until they have said that they did.
//
//   shutdown::notifier end;
//   spawn(..., serve(end.subscribe("listener")));            // each takes its subscription along
//   ...
//   end.send();
//   auto all = co_await end.collect_acknowledgements_for(10s);
//   if (!all) for (auto& name : all.error().who) log(name);  // who did not answer in time
//
// Protocol       a worker holds a subscription. It looks for the notification between two pieces of
//                work (try_receive), or waits for it beside other things (receive), or passes
//                token() to what it waits for. Then it ends its work, acknowledges, and goes.
// Guarantee      send() reaches every subscription there is, and every one that is made later. To
//                send again changes nothing. A notification that was received is still there.
//                collect_acknowledgements() ends when every subscription has acknowledged or was
//                destroyed; collect_dropped() when every one was destroyed. Both count the
//                subscriptions that are there at that moment: without any they end at once.
// Bounds         a deadline or a token ends collecting with the names of those it waits for.
// Loss           of the notifier before it has sent: receive() ends with `abandoned`. Of a
//                subscription: it counts as acknowledged.
// Stop tokens    token() of the notifier and of a subscription asks to stop when the notification
//                is sent. A notifier that is made with a token sends when that one asks.
// Thread safety  every member of notifier may be called concurrently, but for the destructor. A
//                subscription belongs to one thread at a time.
// Memory order   what happens before send() is visible to who receives; what happens before an
//                acknowledgement or a subscription's end, to who has collected it.
// Cancellation   a receive() or a collect that is stopped has taken nothing.
// Resumption     on the waiter's executor, never inside send() or acknowledge(). The hooks of
//                token() are called by send(), after those who wait were woken.
// Lifetime       a token may be used as long as the notifier or a subscription lives. The notifier
//                outlives those who collect, a subscription its receive().
// Allocation     one recycled block for the notifier, one and a name for each subscription; none
//                for waiting.
// Example        examples/sync/graceful_end.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rondo/core/assert.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/sync/detail/shutdown_state.hpp"

namespace rondo::shutdown {

enum class notification : std::uint8_t {
    shutdown,  // end your work
};

enum class send_error : std::uint8_t {
    nobody_subscribed,  // it was sent all the same: who subscribes later sees it
};

enum class receive_error : std::uint8_t {
    abandoned,  // the notifier is gone: no notification will come
    stopped,
    timed_out,
};

// Why collecting ended too early, and whom it was waiting for.
struct unanswered {
    wait_error why;
    std::vector<std::string> who;
};

class [[nodiscard("dropping a subscription counts as its acknowledgement")]] subscription {
    class receive_op : public waiter {
      public:
        explicit receive_op(detail::shutdown_state& s) noexcept : waiter(s), state_(s) {}

        bool ready() const noexcept {
            return state_.heard() != detail::shutdown_state::said::nothing;
        }
        std::expected<notification, receive_error> take() const noexcept {
            if (state_.heard() == detail::shutdown_state::said::shutdown) {
                return notification::shutdown;
            }
            return std::unexpected{receive_error::abandoned};
        }
        void hand_on() noexcept {}  // it is there for everyone
        receive_error refuse(wait_error why) const noexcept { return reason<receive_error>(why); }

      private:
        detail::shutdown_state& state_;
    };
    using received = std::expected<notification, receive_error>;

  public:
    subscription(subscription&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), entry_(other.entry_) {}
    subscription& operator=(subscription&& other) noexcept {
        subscription{std::move(other)}.swap(*this);
        return *this;
    }
    ~subscription();

    void swap(subscription& other) noexcept {
        std::swap(state_, other.state_);
        std::swap(entry_, other.entry_);
    }

    std::optional<notification> try_receive() const noexcept {
        if (state().heard() != detail::shutdown_state::said::shutdown) return std::nullopt;
        return notification::shutdown;
    }
    // Waits for the notification.
    wait<receive_op> receive() noexcept { return receive_op{state()}; }
    bounded_wait<receive_op> receive(stop_token t) noexcept { return {receive_op{state()}, t}; }
    bounded_wait<receive_op> receive_until(time_point d, stop_token t = {}) noexcept {
        return {receive_op{state()}, {d, t}};
    }
    bounded_wait<receive_op> receive_for(clock::duration d, stop_token t = {}) noexcept {
        return {receive_op{state()}, {d, t}};
    }
    received blocking_receive() { return blocking_wait(receive_op{state()}); }
    received blocking_receive(stop_token t) { return blocking_wait(receive_op{state()}, t); }
    received blocking_receive_until(time_point d, stop_token t = {}) {
        return blocking_wait(receive_op{state()}, {d, t});
    }
    received blocking_receive_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(receive_op{state()}, {d, t});
    }

    // Says that the work is done. Once is enough.
    void acknowledge() noexcept { state().acknowledge(*entry_); }
    bool acknowledged() const noexcept { return entry().acknowledged(); }

    std::string const& name() const noexcept { return entry().name(); }
    stop_token token() const noexcept { return state().token(); }

  private:
    friend class notifier;
    subscription(detail::shutdown_state& s, std::string name)
        : state_(&s), entry_(new detail::subscriber(std::move(name))) {
        s.subscribe(*entry_);
    }

    detail::shutdown_state& state() const noexcept {
        RONDO_ASSERT(state_ != nullptr, "a subscription that was moved is none");
        return *state_;
    }
    detail::subscriber const& entry() const noexcept {
        (void)state();
        return *entry_;
    }

    detail::shutdown_state* state_;
    detail::subscriber* entry_;
};

class notifier {
    // Waits until a headcount is empty; says who is left if it may not.
    class collect_op : public detail::nobody_left_op {
      public:
        collect_op(detail::shutdown_state& s, bool dropped) noexcept
            : nobody_left_op(dropped ? s.subscribed() : s.unanswered()),
              state_(s),
              dropped_(dropped) {}
        unanswered refuse(wait_error why) const { return {why, state_.names(dropped_)}; }

      private:
        detail::shutdown_state& state_;
        bool dropped_;
    };
    using collected = std::expected<void, unanswered>;

  public:
    notifier() : notifier(stop_token{}) {}
    // Sends when that token asks; its source outlives the notifier.
    explicit notifier(stop_token parent)
        : state_(new detail::shutdown_state), follows_(parent, sending{*this}) {}
    notifier(notifier const&) = delete;
    notifier& operator=(notifier const&) = delete;

    // The name is for the report of who did not answer; without one it gets a number.
    subscription subscribe(std::string name = {});

    // How many subscriptions there were: all of them have it now.
    std::expected<std::size_t, send_error> send(
        notification what = notification::shutdown) noexcept;
    bool sent() const noexcept { return state_->heard() == detail::shutdown_state::said::shutdown; }
    stop_token token() noexcept { return state_->token(); }

    std::size_t subscription_count() const noexcept { return state_->subscribed().size(); }
    // Those who have not acknowledged, in the order in which they subscribed.
    std::vector<std::string> unacknowledged() const { return state_->names(false); }

    // Waits until every subscription has acknowledged or was destroyed.
    wait<collect_op> collect_acknowledgements() noexcept { return acknowledgements(); }
    bounded_wait<collect_op> collect_acknowledgements(stop_token t) noexcept {
        return {acknowledgements(), t};
    }
    bounded_wait<collect_op> collect_acknowledgements_until(time_point d,
                                                            stop_token t = {}) noexcept {
        return {acknowledgements(), {d, t}};
    }
    bounded_wait<collect_op> collect_acknowledgements_for(clock::duration d,
                                                          stop_token t = {}) noexcept {
        return {acknowledgements(), {d, t}};
    }
    void blocking_collect_acknowledgements() { blocking_wait(acknowledgements()); }
    collected blocking_collect_acknowledgements(stop_token t) {
        return blocking_wait(acknowledgements(), t);
    }
    collected blocking_collect_acknowledgements_until(time_point d, stop_token t = {}) {
        return blocking_wait(acknowledgements(), {d, t});
    }
    collected blocking_collect_acknowledgements_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(acknowledgements(), {d, t});
    }
    bool try_collect_acknowledgements() noexcept { return acknowledgements().ready(); }

    // Waits until every subscription was destroyed.
    wait<collect_op> collect_dropped() noexcept { return dropped(); }
    bounded_wait<collect_op> collect_dropped(stop_token t) noexcept { return {dropped(), t}; }
    bounded_wait<collect_op> collect_dropped_until(time_point d, stop_token t = {}) noexcept {
        return {dropped(), {d, t}};
    }
    bounded_wait<collect_op> collect_dropped_for(clock::duration d, stop_token t = {}) noexcept {
        return {dropped(), {d, t}};
    }
    void blocking_collect_dropped() { blocking_wait(dropped()); }
    collected blocking_collect_dropped(stop_token t) { return blocking_wait(dropped(), t); }
    collected blocking_collect_dropped_until(time_point d, stop_token t = {}) {
        return blocking_wait(dropped(), {d, t});
    }
    collected blocking_collect_dropped_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(dropped(), {d, t});
    }
    bool try_collect_dropped() noexcept { return dropped().ready(); }

  private:
    struct sending {
        notifier& by;
        void operator()() const noexcept { std::ignore = by.send(); }
    };
    struct leave {
        void operator()(detail::shutdown_state* state) const noexcept;
    };

    collect_op acknowledgements() noexcept { return {*state_, false}; }
    collect_op dropped() noexcept { return {*state_, true}; }

    std::unique_ptr<detail::shutdown_state, leave> state_;
    atomic<std::size_t> made_{0};
    stop_callback<sending> follows_;  // goes before the state does
};

}  // namespace rondo::shutdown
