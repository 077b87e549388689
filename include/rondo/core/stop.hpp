// stop.hpp: asking something to stop: source, token, callback, link; all in place.
//
// A stop_source lives where the request can come from (a combinator's frame, a task's root, a
// main function); tokens are pointers to it; hooks are intrusive nodes that live with whoever
// wants to be told. Nothing here allocates, whatever the number of tokens and callbacks.
//
// Guarantee      every hook registered before request_stop() is called exactly once, unless it
//                is removed first, in the order of registration, on the thread that requests.
//                When remove() (or ~stop_callback) returns, the hook is not being called and
//                never will be, unless remove() was called from inside the hook itself.
// Links          a stop_link makes a source follow another's token. Chains of links of any
//                length are walked without recursion.
// Lifetime       a source outlives its tokens, its registered hooks and every running call of
//                request_stop(). Hooks see no lock of the source held.
// Thread safety  everything but the destructors may be called concurrently.
// Memory order   what happens before request_stop() is visible to hooks and after
//                stop_requested() returned true.
// Cost           add and remove of the only hook there is are one compare-exchange each, as are
//                most; with several it is a short lock. stop_requested() is one load.
//
// Names and shape follow std::inplace_stop_token of C++26, so that a token can serve as a
// stoppable token of std::execution; what std::stop_token has and this has not is ownership.
#pragma once

#include <cstdint>
#include <utility>

#include "rondo/core/detail/call_fence.hpp"
#include "rondo/core/linked_list.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/core/short_lock.hpp"

namespace rondo {

class stop_source;
class stop_link;
template <class F>
class stop_callback;

// One registration. Its owner derives from it or holds it, and calls stop_token::add/remove.
class stop_hook : list_hook<stop_hook> {
  public:
    using function = void (*)(stop_hook&) noexcept;

    explicit stop_hook(function f) noexcept : call_(f) {}
    stop_hook(stop_hook const&) = delete;
    stop_hook& operator=(stop_hook const&) = delete;

  private:
    friend class stop_source;
    friend linked_list<stop_hook>;

    function call_;  // null: this is a stop_link
};

class stop_token {
  public:
    template <class F>
    using callback_type = stop_callback<F>;

    constexpr stop_token() = default;

    // False for a token without source: nothing can ever ask through it.
    bool stop_possible() const noexcept { return source_ != nullptr; }
    bool stop_requested() const noexcept;

    // False when stop was requested already: the hook is not registered and will not be called.
    // A token without source has nothing to register it with, and never calls it.
    [[nodiscard("a hook that was not registered will not be called")]] bool add(
        stop_hook& hook) const noexcept;
    void remove(stop_hook& hook) const noexcept;

    friend bool operator==(stop_token, stop_token) = default;

  private:
    friend class stop_source;
    explicit constexpr stop_token(stop_source* source) noexcept : source_(source) {}

    stop_source* source_ = nullptr;
};

class stop_source {
  public:
    stop_source() = default;
    ~stop_source();
    stop_source(stop_source const&) = delete;
    stop_source& operator=(stop_source const&) = delete;

    stop_token token() noexcept { return stop_token{this}; }

    bool stop_requested() const noexcept {
        // acquire: pairs with the release in mark_requested()
        return requested_.load(std::memory_order_acquire);
    }

    // True for the call that made the request; it returns after every hook was called.
    bool request_stop() noexcept;

  private:
    friend class stop_token;

    bool add(stop_hook& hook) noexcept {
        std::uintptr_t seen = nobody;
        // release: pairs with the acquire in list_the_only_one()
        return only_.compare_exchange_strong(seen, address_of(hook), std::memory_order_release,
                                             std::memory_order_relaxed) ||
               add_to_list(hook);
    }
    void remove(stop_hook& hook) noexcept {
        std::uintptr_t seen = address_of(hook);
        // relaxed: whoever has not taken the hook from only_ has not touched it
        if (!only_.compare_exchange_strong(seen, nobody, std::memory_order_relaxed,
                                           std::memory_order_relaxed)) {
            remove_from_list(hook);
        }
    }

    // only_ is one of these, or the address of the only hook.
    static constexpr std::uintptr_t nobody = 0;
    static constexpr std::uintptr_t listed = 1;  // there is a list of them; or too late
    static std::uintptr_t address_of(stop_hook& hook) noexcept {
        return reinterpret_cast<std::uintptr_t>(&hook);
    }

    bool add_to_list(stop_hook& hook) noexcept;
    void remove_from_list(stop_hook& hook) noexcept;
    void list_the_only_one() noexcept;
    bool mark_requested() noexcept;
    stop_hook* begin_next() noexcept;
    void end_current() noexcept;
    // The steps of a walk; two of them lead to another source.
    stop_source* descend(stop_link& link) noexcept;
    void call(stop_hook& hook) noexcept;
    stop_source* ascend() noexcept;
    void unlink(stop_hook& hook) noexcept;

    linked_list<stop_hook> hooks_;
    detail::call_fence fence_;
    stop_source* up_ = nullptr;  // while a link's stop is walked: where to go back to
    short_lock lock_;
    atomic<bool> requested_{false};
    atomic<std::uintptr_t> only_{nobody};
};

// Requests stop at `target` when stop is requested at the token it is attached to.
class stop_link : public stop_hook {
  public:
    explicit stop_link(stop_source& target) noexcept : stop_hook(nullptr), target_(&target) {}
    ~stop_link() { detach(); }

    // A token at which stop was requested already requests it at the target now.
    void attach(stop_token token) noexcept {
        detach();
        token_ = token;
        if (!token.add(*this)) target_->request_stop();
    }
    void detach() noexcept { std::exchange(token_, stop_token{}).remove(*this); }

  private:
    friend class stop_source;

    stop_source* target_;
    stop_token token_;
};

// Calls a function when stop is requested; at once, in the constructor, if it was already.
template <class F>
class [[nodiscard("the callback is registered for as long as this object lives")]] stop_callback
    : stop_hook {
  public:
    stop_callback(stop_token token, F called)
        : stop_hook(&call), function_(std::move(called)), token_(token) {
        if (!token_.add(*this)) function_();
    }
    ~stop_callback() { token_.remove(*this); }

  private:
    static void call(stop_hook& hook) noexcept { static_cast<stop_callback&>(hook).function_(); }

    F function_;
    stop_token token_;
};

inline bool stop_token::stop_requested() const noexcept {
    return source_ != nullptr && source_->stop_requested();
}
inline bool stop_token::add(stop_hook& hook) const noexcept {
    return source_ == nullptr || source_->add(hook);
}
inline void stop_token::remove(stop_hook& hook) const noexcept {
    if (source_ != nullptr) source_->remove(hook);
}

}  // namespace rondo
