// guard.hpp: access to what a lock protects; the lock is held for as long as the guard lives.
//
//   auto config = co_await shared.lock();              // mutex_guard<config>
//   config->retries = 3;
//   auto name = std::move(config).map(&config::name);  // mutex_guard<std::string>
//
// One template for all of them: the guards of mutex and rwlock, those that own the lock, and those
// that were mapped to a part of the value. It is a pointer that unlocks when it is destroyed.
//
// Guarantee      the lock is held from the moment it was acquired until the guard is destroyed,
//                unlocked or overwritten; a guard that was moved from holds nothing.
// Thread safety  as a pointer: a guard is for one thread at a time, but it need not be the one that
//                locked.
// Exceptions     if the function given to map() or try_map() throws, the guard is as before.
// Lifetime       the lock outlives its guards; an owned guard keeps it alive.
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/sync/detail/permit_pool.hpp"

namespace rondo {

namespace detail {

// What a guard holds: permits of a pool, or nothing.
class mutex_hold {
  public:
    mutex_hold() = default;
    explicit mutex_hold(permit_pool& of) noexcept : pool_(&of) {}

    permit_pool* pool() const noexcept { return pool_; }
    void let_go() noexcept {
        if (pool_ != nullptr) pool_->put_back(1, 0);
    }

  private:
    permit_pool* pool_ = nullptr;
};

class read_hold {
  public:
    read_hold() = default;
    explicit read_hold(permit_pool& of) noexcept : pool_(&of) {}

    permit_pool* pool() const noexcept { return pool_; }
    void let_go() noexcept {
        if (pool_ != nullptr) pool_->put_back(1);
    }

  private:
    permit_pool* pool_ = nullptr;
};

class write_hold {
  public:
    write_hold() = default;
    write_hold(permit_pool& of, std::size_t all) noexcept : pool_(&of), all_(all) {}

    permit_pool* pool() const noexcept { return pool_; }
    void let_go() noexcept {
        if (pool_ != nullptr) pool_->put_back(all_, 0);
    }
    // Keeps one of its permits: nobody can write in between.
    read_hold downgrade() noexcept {
        RONDO_ASSERT(pool_ != nullptr, "a guard that is downgraded holds its lock");
        if (all_ > 1) pool_->put_back(all_ - 1, 0);
        return read_hold{*pool_};
    }

  private:
    permit_pool* pool_ = nullptr;
    std::size_t all_ = 0;
};

// The same, and the lock lives as long.
template <class Hold>
class owned_hold {
  public:
    owned_hold() = default;
    owned_hold(Hold hold, std::shared_ptr<void> lock) noexcept
        : hold_(hold), lock_(std::move(lock)) {}

    permit_pool* pool() const noexcept { return hold_.pool(); }
    void let_go() noexcept { hold_.let_go(); }
    auto downgrade() noexcept
    requires requires(Hold h) { h.downgrade(); }
    {
        return owned_hold<read_hold>{hold_.downgrade(), std::move(lock_)};
    }

  private:
    Hold hold_;
    std::shared_ptr<void> lock_;
};

struct lock_access {
    template <class Lock>
    static permit_pool& pool(Lock& lock) noexcept {
        return lock.pool_;
    }
};

}  // namespace detail

template <class T, class Hold>
class [[nodiscard("dropping a guard unlocks")]] guard {
  public:
    guard(Hold hold, T* value) noexcept : hold_(std::move(hold)), value_(value) {}
    guard(guard&& other) noexcept
        : hold_(std::exchange(other.hold_, Hold{})), value_(std::exchange(other.value_, nullptr)) {}
    guard& operator=(guard&& other) noexcept {
        guard taken{std::move(other)};
        std::swap(hold_, taken.hold_);
        std::swap(value_, taken.value_);
        return *this;
    }
    ~guard() { hold_.let_go(); }

    std::add_lvalue_reference_t<T> operator*() const noexcept
    requires(!std::is_void_v<T>)
    {
        return *value_;
    }
    T* operator->() const noexcept
    requires(!std::is_void_v<T>)
    {
        return value_;
    }

    // False once it was unlocked or moved from.
    explicit operator bool() const noexcept { return hold_.pool() != nullptr; }
    // Before its end of life.
    void unlock() noexcept {
        value_ = nullptr;
        std::exchange(hold_, Hold{}).let_go();
    }

    // A guard of what f(value) refers to, in place of this one; f may also name a member.
    template <class F>
    auto map(F f) && {
        RONDO_ASSERT(value_ != nullptr, "a guard that is mapped holds its lock");
        static_assert(std::is_lvalue_reference_v<std::invoke_result_t<F&, T&>>,
                      "a guard is mapped to a part of what it guards, by reference");
        auto& part = std::invoke(f, *value_);
        return mapped(&part);
    }
    // The same; if f(value) gives a null pointer, this guard comes back.
    template <class F>
    auto try_map(F f) && {
        RONDO_ASSERT(value_ != nullptr, "a guard that is mapped holds its lock");
        auto* const part = std::invoke(f, *value_);
        using result = std::expected<decltype(mapped(part)), guard>;
        if (part == nullptr) return result{std::unexpect, std::move(*this)};
        return result{mapped(part)};
    }

    // The same guard, which keeps the lock alive from now on.
    template <class Lock>
    auto owned(std::shared_ptr<Lock> lock) && {
        RONDO_ASSERT(lock != nullptr && hold_.pool() == &detail::lock_access::pool(*lock),
                     "a guard is kept with its own lock");
        using owning = detail::owned_hold<Hold>;
        return guard<T, owning>{owning{std::exchange(hold_, Hold{}), std::move(lock)},
                                std::exchange(value_, nullptr)};
    }

    // From writing to reading, with no writer in between: those in line who want to read are let
    // in, up to the next writer.
    auto downgrade() &&
    requires requires(Hold h) { h.downgrade(); }
    {
        auto kept = std::exchange(hold_, Hold{}).downgrade();
        return guard<T const, decltype(kept)>{std::move(kept), std::exchange(value_, nullptr)};
    }

  private:
    template <class Part>
    guard<Part, Hold> mapped(Part* part) noexcept {
        value_ = nullptr;
        return {std::exchange(hold_, Hold{}), part};
    }

    Hold hold_;
    T* value_;
};

template <class T>
using mutex_guard = guard<T, detail::mutex_hold>;
template <class T>
using owned_mutex_guard = guard<T, detail::owned_hold<detail::mutex_hold>>;

template <class T>
using read_guard = guard<T const, detail::read_hold>;
template <class T>
using owned_read_guard = guard<T const, detail::owned_hold<detail::read_hold>>;

template <class T>
using write_guard = guard<T, detail::write_hold>;
template <class T>
using owned_write_guard = guard<T, detail::owned_hold<detail::write_hold>>;

}  // namespace rondo
