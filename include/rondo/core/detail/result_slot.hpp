// result_slot.hpp: where a task's result is built: a value, or an exception on its way up.
#pragma once

#include <exception>
#include <expected>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "rondo/core/assert.hpp"
#include "rondo/core/detail/promise.hpp"
#include "rondo/core/wait_error.hpp"

namespace rondo::detail {

// T, with void as an empty value.
template <class T>
using unit_t = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

// Whether a T is good for the turn in which it was made and no longer, as it holds a lock for which
// others put their thread to sleep. Whoever defines such a type says so here.
template <class T>
inline constexpr bool turn_bound = false;
template <class T, class E>
inline constexpr bool turn_bound<std::expected<T, E>> = turn_bound<T>;
template <class T>
inline constexpr bool turn_bound<std::optional<T>> = turn_bound<T>;
template <class... Ts>
inline constexpr bool any_turn_bound = std::disjunction_v<std::bool_constant<turn_bound<Ts>>...>;
template <class T, class U>
inline constexpr bool turn_bound<std::pair<T, U>> = any_turn_bound<T, U>;
template <class... Ts>
inline constexpr bool turn_bound<std::tuple<Ts...>> = any_turn_bound<Ts...>;
template <class... Ts>
inline constexpr bool turn_bound<std::variant<Ts...>> = any_turn_bound<Ts...>;

template <class T>
class result_slot : public continuation {
  public:
    template <class... Args>
    void set_value(Args&&... args) {
        if constexpr (std::is_reference_v<T>) {
            result_.template emplace<1>(std::addressof(args)...);
        } else {
            result_.template emplace<1>(std::forward<Args>(args)...);
        }
    }
    void set_exception(std::exception_ptr e) noexcept { result_.template emplace<2>(std::move(e)); }

    bool has_value() const noexcept { return result_.index() == 1; }
    bool has_exception() const noexcept { return result_.index() == 2; }
    std::exception_ptr exception() const noexcept { return std::get<2>(result_); }
    bool has_result() const noexcept { return result_.index() != 0; }

    T take() {
        if (has_exception()) std::rethrow_exception(std::get<2>(result_));
        RONDO_ASSERT(has_value(), "a task's result is taken after it has ended");
        if constexpr (std::is_void_v<T>) {
            return;
        } else if constexpr (std::is_reference_v<T>) {
            return static_cast<T>(*std::get<1>(result_));
        } else {
            return std::move(std::get<1>(result_));
        }
    }

    unit_t<T> take_unit() {
        if constexpr (std::is_void_v<T>) {
            take();
            return std::monostate{};
        } else {
            return take();
        }
    }

    std::expected<T, wait_error> take_expected()
    requires(!std::is_reference_v<T>)
    {
        if constexpr (std::is_void_v<T>) {
            take();
            return {};
        } else {
            return take();
        }
    }

  protected:
    ~result_slot() = default;

  private:
    struct nothing {};
    using stored = std::conditional_t<
        std::is_void_v<T>, nothing,
        std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>;

    std::variant<std::monostate, stored, std::exception_ptr> result_;
};

// The same for a result that is kept until somebody fetches it: others have turns in between.
template <class T>
class kept_result : public result_slot<T> {
  protected:
    // (Asserted here, where the compiler says it once and goes on.)
    kept_result() noexcept {
        static_assert(!turn_bound<T>,
                      "this result holds a lock, and would hold it while others run: await it in "
                      "a task of its own, which returns what is needed of it");
    }
    ~kept_result() = default;
};

}  // namespace rondo::detail
