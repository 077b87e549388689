// letter.hpp: what lies in a mailbox: a message, and where its answer goes if somebody asked.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "rondo/actor/message.hpp"
#include "rondo/core/task.hpp"
#include "rondo/sync/oneshot.hpp"

namespace rondo::actor::detail {

// What an answer is sent as: void is no value.
template <class M>
using answer_of = std::conditional_t<std::is_void_v<reply_of<M>>, std::monostate, reply_of<M>>;

// Destroyed unanswered, it tells the one who asked so.
template <class M>
struct letter {
    M message;
    std::optional<oneshot::sender<answer_of<M>>> answer_to;

    void answer(answer_of<M> value) noexcept {
        if (answer_to) (void)answer_to->send(std::move(value));  // or nobody waits for it any more
    }
};

template <class... Ms>
using any_letter = std::variant<letter<Ms>...>;

// Waits for the end of receive(), and answers.
template <class M>
task<void> see_through(task<reply_of<M>> receiving, letter<M> from) {
    if constexpr (std::is_void_v<reply_of<M>>) {
        co_await std::move(receiving);
        from.answer({});
    } else {
        from.answer(co_await std::move(receiving));
    }
}

// Gives the letter to the actor. What is left to wait for is in the result: nothing, if receive()
// is a plain function.
template <class A, class M>
std::optional<task<void>> deliver(A& to, letter<M>& it) {
    using result = decltype(to.receive(std::move(it.message)));
    if constexpr (std::is_same_v<result, task<reply_of<M>>>) {
        task<reply_of<M>> receiving = to.receive(std::move(it.message));
        return see_through<M>(std::move(receiving), std::move(it));
    } else if constexpr (std::is_void_v<result>) {
        to.receive(std::move(it.message));
        it.answer({});
    } else {
        it.answer(to.receive(std::move(it.message)));
    }
    return std::nullopt;
}

}  // namespace rondo::actor::detail
