#include "rondo/core/detail/promise.hpp"

namespace rondo::detail {

std::coroutine_handle<> promise_base::unwind() noexcept {
    promise_base* frame = this;
    for (;;) {
        continuation* const above = frame->continuation_;
        frame->handle().destroy();
        unwound const answer = above->stopped();
        if (answer.frame() == nullptr) return answer.next();
        frame = answer.frame();
    }
}

}  // namespace rondo::detail
