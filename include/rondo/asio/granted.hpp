// granted.hpp: what an operation of ours passes to a completion handler of Asio.
//
// A handler is called with (std::exception_ptr, granted<R>), or with (std::exception_ptr) alone
// when the operation has no result. Without an exception there is a value. It is an optional
// because Asio wants a value in either case and a permit cannot be made out of nothing; it is a
// type of ours so that co_await and use_awaitable can unwrap it and give the plain R.
#pragma once

#include <optional>

namespace rondo::asio {

template <class R>
class granted : public std::optional<R> {
  public:
    using std::optional<R>::optional;
};

}  // namespace rondo::asio
