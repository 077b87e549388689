// io_outcome.hpp: how an operation of Asio ended, on its way from the handler to the task.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <cstddef>
#include <exception>
#include <expected>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace rondo::asio::detail {

// Several results in one: nothing, the only one, or all of them.
template <class... Ts>
struct together {
    using type = std::tuple<Ts...>;
};
template <class T>
struct together<T> {
    using type = T;
};
template <>
struct together<> {
    using type = void;
};

// Whether that says that the operation was cancelled.
template <class T>
bool says_aborted(T const&) noexcept {
    return false;
}
inline bool says_aborted(boost::system::error_code const& e) noexcept {
    return e == boost::asio::error::operation_aborted;
}
inline bool says_aborted(std::exception_ptr const& e) noexcept {
    if (!e) return false;
    try {
        std::rethrow_exception(e);
    } catch (boost::system::system_error const& failure) {
        return says_aborted(failure.code());
    } catch (...) {
        return false;
    }
}
// What as_tuple makes of it.
template <class T, class... Ts>
bool says_aborted(std::tuple<T, Ts...> const& all) noexcept {
    return says_aborted(std::get<0>(all));
}

// Args are what the handler is called with, decayed.
template <class... Args>
class io_outcome {
    template <class E>
    static constexpr bool leads =
        std::is_same_v<E, std::tuple_element_t<0, std::tuple<Args..., void>>>;

  public:
    static constexpr bool has_error = leads<boost::system::error_code>;
    static constexpr bool has_exception = leads<std::exception_ptr>;

  private:
    static constexpr std::size_t values_from = has_error || has_exception ? 1 : 0;
    using places = std::make_index_sequence<sizeof...(Args) - values_from>;

    template <std::size_t... Is>
    static together<std::tuple_element_t<Is + values_from, std::tuple<Args...>>...> values_at(
        std::index_sequence<Is...>);
    using value = typename decltype(values_at(places{}))::type;

  public:
    using result =
        std::conditional_t<has_error, std::expected<value, boost::system::error_code>, value>;

    template <class... Given>
    void set(Given&&... given) noexcept {
        try {
            ended_.template emplace<1>(std::forward<Given>(given)...);
        } catch (...) {
            fail(std::current_exception());
        }
    }
    void fail(std::exception_ptr why) noexcept { ended_.template emplace<2>(std::move(why)); }

    // Its handler was called with operation_aborted, or never.
    bool aborted() const noexcept {
        if (ended_.index() == 0) return true;
        if constexpr (sizeof...(Args) != 0) return ended_.index() == 1 && says_aborted(first());
        return false;
    }

    // `instead` takes the place of operation_aborted.
    result take(boost::system::error_code instead) {
        if (ended_.index() == 2) std::rethrow_exception(std::get<2>(ended_));
        if constexpr (has_error) {
            if (aborted()) return std::unexpected{instead};
            if (first()) return std::unexpected{first()};
        } else {
            if (ended_.index() == 0) throw boost::system::system_error{instead};
            if constexpr (has_exception) {
                if (first()) std::rethrow_exception(first());
            }
        }
        return values(places{});
    }

  private:
    auto const& first() const noexcept { return std::get<0>(*std::get_if<1>(&ended_)); }

    template <std::size_t... Is>
    result values(std::index_sequence<Is...>) {
        if constexpr (sizeof...(Is) != 0) {
            // No braces: they would make a list of it, if its type takes lists of itself.
            return value(std::move(std::get<Is + values_from>(std::get<1>(ended_)))...);
        } else if constexpr (has_error) {
            return {};
        }
    }

    // Nothing while it is under way, and for good if its handler is never called.
    std::variant<std::monostate, std::tuple<Args...>, std::exception_ptr> ended_;
};

}  // namespace rondo::asio::detail
