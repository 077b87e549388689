#ifndef RONDO_CHECKED

#include "rondo/exec/detail/io_driver.hpp"

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/post.hpp>
#include <exception>

#include "rondo/core/assert.hpp"

namespace rondo::detail {

template <class T>
class io_driver::memory_for_one {
  public:
    using value_type = T;

    explicit memory_for_one(io_driver& of) noexcept : driver_(&of) {}
    template <class U>
    memory_for_one(memory_for_one<U> const& other) noexcept : driver_(other.driver_) {}

    T* allocate(std::size_t n) {
        static_assert(alignof(T) <= alignof(std::max_align_t));
        RONDO_ASSERT(n * sizeof(T) <= sizeof driver_->memory_, "a posted handler fits");
        return reinterpret_cast<T*>(driver_->memory_);
    }
    void deallocate(T*, std::size_t) noexcept {}

    friend bool operator==(memory_for_one const&, memory_for_one const&) = default;

  private:
    template <class U>
    friend class memory_for_one;
    io_driver* driver_;
};

io_driver::io_driver() : work_(boost::asio::make_work_guard(context_)) {}

void io_driver::poll() noexcept {
    for (;;) {
        try {
            context_.poll();
            return;
        } catch (...) {
            place_->unobserved(std::current_exception());
        }
    }
}

void io_driver::sleep(time_point until) noexcept {
    try {
        if (until == time_point::max()) {
            context_.run_one();
        } else {
            context_.run_one_until(until);
        }
    } catch (...) {
        place_->unobserved(std::current_exception());
    }
}

void io_driver::ring() noexcept {
    boost::asio::post(context_,
                      boost::asio::bind_allocator(memory_for_one<void>{*this}, [this] { rang(); }));
}

}  // namespace rondo::detail

#endif
