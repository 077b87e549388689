// result_slot.hpp: where a task's result is built: a value, or an exception on its way up.
#pragma once

#include <exception>
#include <expected>
#include <memory>
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

}  // namespace rondo::detail
