// spawn.hpp: starts an actor: a task that receives the messages of one mailbox, one at a time.
//
//   auto [account, life] = actor::spawn<account_actor>(pool);
//   (void)co_await account.tell(deposit{100});
//   life.drain();
//   actor::ended const end = *co_await life.join();         // end.received == 1
//
// Guarantee      receive() is called for one message after the other, in the order in which they
//                were told, never for two at once, even if it is a coroutine that waits.
//                Everything that an actor does happens on its executor, including its construction
//                and destruction, and that of what is left in its mailbox.
// Failure        an exception that leaves receive(), or the construction of the actor, ends this
//                actor object and no other. The message is lost, and an asker gets `unanswered`. If
//                `restarts` allows it, a new object is made, which continues with the same mailbox.
//                Otherwise the actor gives up: the mailbox is closed, and what is in it is
//                destroyed. Each failure goes to options::failed if that is set, otherwise to
//                executor::unobserved().
// Drain          accepts nothing more, receives what was told before, then ends.
// Stop           ends the actor at its next wait, even in the middle of a message, like every task,
//                and before its next message: what is in the mailbox is destroyed, and askers get
//                `unanswered`.
// Handle         destroying it drains the actor and lets it run to its end unobserved.
// Bounds         the mailbox has room for options::mailbox messages; tellers wait.
// Thread safety  every member of a handle except moves may be called concurrently, but only one
//                caller joins.
// Lifetime       the executor outlives the actor and its handle.
// Example        examples/actor/bank.cpp
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "rondo/actor/address.hpp"
#include "rondo/actor/detail/letter.hpp"
#include "rondo/actor/detail/shared_fate.hpp"
#include "rondo/actor/message.hpp"
#include "rondo/actor/restarts.hpp"
#include "rondo/core/detail/frame_memory.hpp"
#include "rondo/core/executor.hpp"
#include "rondo/core/short_lock.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/waker.hpp"
#include "rondo/sync/mpsc.hpp"

namespace rondo::actor {

enum class after_failure : std::uint8_t { begins_again, gives_up };

struct options {
    std::size_t mailbox = 64;
    actor::restarts restarts{};
    // Called on the actor's executor; must not throw.
    std::function<void(std::exception_ptr, after_failure)> failed{};
    // The actors that are restarted together with it; set by a supervisor.
    std::shared_ptr<detail::shared_fate> fate{};
};

// How an actor ended, if it was not stopped.
struct ended {
    std::exception_ptr failure;  // null: it was drained
    std::uint64_t received = 0;  // messages, including those that failed
    unsigned restarts = 0;
};

// What an actor has done so far.
struct progress {
    std::uint64_t received;
    unsigned restarts;
    std::size_t waiting;  // messages in its mailbox, and those that are being put there
};

namespace detail {

// What the actor shares with its handle while it lives.
class inbox_base {
  public:
    virtual ~inbox_base() = default;
    virtual void close() noexcept = 0;
    // Nothing once the actor has ended.
    virtual std::optional<std::size_t> waiting() const noexcept = 0;

    // relaxed, all: numbers to look at
    std::uint64_t received() const noexcept { return received_.load(std::memory_order_relaxed); }
    unsigned restarts() const noexcept { return restarts_.load(std::memory_order_relaxed); }
    void count_message() noexcept { received_.fetch_add(1, std::memory_order_relaxed); }
    void count_restart() noexcept { restarts_.fetch_add(1, std::memory_order_relaxed); }

  private:
    atomic<std::uint64_t> received_{0};
    atomic<unsigned> restarts_{0};
};

template <class Letters>
class inbox final : public inbox_base {
  public:
    explicit inbox(Letters l) noexcept : letters_(std::move(l)) {}

    // The actor's, until it takes them along: others see it with the lock only.
    Letters& letters() noexcept { return *letters_; }
    Letters take() noexcept {
        std::lock_guard const guard{lock_};
        Letters left = std::move(*letters_);
        letters_.reset();
        return left;
    }

    void close() noexcept override {
        wake_scope const waking;  // nobody is resumed under the lock
        std::lock_guard const guard{lock_};
        if (letters_) letters_->close();
    }
    // By what it has no room for: len() is for the actor alone, others may ask while it receives.
    std::optional<std::size_t> waiting() const noexcept override {
        std::lock_guard const guard{lock_};
        if (!letters_) return std::nullopt;
        return letters_->max_capacity() - letters_->capacity();
    }

  private:
    mutable short_lock lock_;
    std::optional<Letters> letters_;
};

// The actor's share. When that goes the mailbox goes, whoever looks at the inbox meanwhile: what is
// in there is destroyed on the actor's executor, and nobody joins it before.
template <class Letters>
class own_inbox {
  public:
    explicit own_inbox(std::shared_ptr<inbox<Letters>> in) noexcept : inbox_(std::move(in)) {}
    own_inbox(own_inbox&&) noexcept = default;
    own_inbox& operator=(own_inbox&&) = delete;
    ~own_inbox() {
        if (inbox_ != nullptr) Letters const gone = inbox_->take();
    }
    inbox<Letters>* operator->() const noexcept { return inbox_.get(); }

  private:
    std::shared_ptr<inbox<Letters>> inbox_;
};

// One actor, through all its restarts.
template <behaviour A, class Make, class Letters>
class life {
  public:
    life(std::shared_ptr<inbox<Letters>> in, address_of<A> self, Make make, options chosen)
        : inbox_(std::move(in)),
          self_(std::move(self)),
          make_(std::move(make)),
          options_(std::move(chosen)) {}

    // The task that is spawned.
    static task<ended> lead(life it) {
        environment const& here = co_await this_environment();
        restart_limit limit{it.options_.restarts};
        for (;;) {
            std::exception_ptr failure;
            std::optional<cancellation_token> generation;
            bool replaced = false;
            if (it.options_.fate) generation = it.options_.fate->generation();
            try {
                if (generation) {
                    replaced = co_await it.receive_until_replaced(*generation);
                } else {
                    co_await it.receive_all();
                }
            } catch (...) {
                failure = std::current_exception();
            }
            std::optional<clock::duration> delay;
            if (replaced) delay = clock::duration{0};
            if (failure) {
                delay = limit.next(here.timers().now());
                if (delay && generation) it.options_.fate->end(*generation);
                it.report(failure, delay ? after_failure::begins_again : after_failure::gives_up,
                          *here.where);
            }
            if (!delay) co_return it.end(std::move(failure));
            it.inbox_->count_restart();
            co_await sleep_for(*delay);
        }
    }

  private:
    // Returns when the mailbox is closed and empty.
    task<void> receive_all() {
        A actor = make();
        environment const& here = co_await this_environment();
        for (;;) {
            // While there are messages each wait for one is ready, and what is ready beats a stop:
            // it unwinds in a wait that never is.
            if (here.stop.stop_requested()) co_await sleep_until(time_point::max());
            auto next = co_await inbox_->letters().recv();
            if (!next) co_return;
            inbox_->count_message();
            std::optional<task<void>> rest =
                std::visit([&actor](auto& it) { return deliver(actor, it); }, *next);
            if (rest) co_await std::move(*rest);
        }
    }

    // True: another actor of its generation has failed. The message that this one was receiving is
    // lost, as with a stop.
    task<bool> receive_until_replaced(cancellation_token generation) {
        auto bounded = generation.run_until_cancelled(receive_all());
        auto const received = co_await std::move(bounded);
        co_return !received;
    }

    A make() {
        if constexpr (std::invocable<Make&, address_of<A>>) {
            return make_(self_);
        } else {
            return make_();
        }
    }

    void report(std::exception_ptr failure, after_failure then, executor& where) const {
        if (options_.failed) {
            options_.failed(std::move(failure), then);
        } else {
            where.unobserved(std::move(failure));
        }
    }

    ended end(std::exception_ptr failure) const noexcept {
        return {std::move(failure), inbox_->received(), inbox_->restarts()};
    }

    own_inbox<Letters> inbox_;
    address_of<A> self_;
    Make make_;
    options options_;
};

}  // namespace detail

class [[nodiscard("destroying the handle drains the actor")]] handle {
    using join_op = rondo::detail::join_op<ended>;

  public:
    handle(std::weak_ptr<detail::inbox_base> inbox, join_handle<ended> running) noexcept
        : inbox_(std::move(inbox)), running_(std::move(running)) {}
    handle(handle&&) noexcept = default;
    handle& operator=(handle&& other) noexcept {
        drain();
        inbox_ = std::move(other.inbox_);
        running_ = std::move(other.running_);
        return *this;
    }
    ~handle() { drain(); }

    void drain() noexcept {
        if (auto const in = inbox_.lock()) in->close();
    }
    void request_stop() noexcept { running_.request_stop(); }
    bool has_ended() const noexcept { return running_.ended(); }
    // Nothing once it has ended; join() then says more.
    std::optional<actor::progress> progress() const noexcept {
        auto const in = inbox_.lock();
        auto const waiting = in != nullptr ? in->waiting() : std::nullopt;
        if (!waiting) return std::nullopt;
        return actor::progress{in->received(), in->restarts(), *waiting};
    }

    // Waits for the end. The error `stopped`: either the actor or this wait was stopped.
    wait<join_op> join() noexcept { return running_.join(); }
    bounded_wait<join_op> join(stop_token t) noexcept { return running_.join(t); }
    bounded_wait<join_op> join_until(time_point d, stop_token t = {}) noexcept {
        return running_.join_until(d, t);
    }
    std::expected<ended, wait_error> blocking_join() { return running_.blocking_join(); }

  private:
    std::weak_ptr<detail::inbox_base> inbox_;
    join_handle<ended> running_;
};

template <class A>
struct spawned {
    address_of<A> address;
    handle life;
};

// Starts an actor on `where`; nothing of it runs inside spawn(). make() returns the object, or
// make(address) if the object needs its own address; it is called again for each restart. The actor
// follows the parent token, if there is one, like every spawned task.
template <behaviour A, class Make>
spawned<A> spawn(executor& where, Make make, options chosen = {}, stop_token parent = {}) {
    auto ends = mpsc::channel<typename address_of<A>::any_letter>(chosen.mailbox);
    using letters = decltype(ends.receiver);
    using life = detail::life<A, Make, letters>;
    auto in = std::allocate_shared<detail::inbox<letters>>(rondo::detail::frame_memory<void>{},
                                                           std::move(ends.receiver));
    address_of<A> self{std::move(ends.sender)};
    std::weak_ptr<detail::inbox_base> seen = in;
    life its{std::move(in), self, std::move(make), std::move(chosen)};
    return {std::move(self),
            handle{std::move(seen), rondo::spawn(where, life::lead(std::move(its)), parent)}};
}

template <behaviour A>
requires std::default_initializable<A>
spawned<A> spawn(executor& where, options chosen = {}, stop_token parent = {}) {
    return spawn<A>(where, [] { return A{}; }, std::move(chosen), parent);
}

}  // namespace rondo::actor
