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

namespace {

constexpr int most_handlers = 64;  // of one poll

}  // namespace

io_driver::io_driver() {
    context_.emplace(1);  // one thread runs it
    work_.emplace(boost::asio::make_work_guard(*context_));
}

void io_driver::close() noexcept {
    work_.reset();
    context_.reset();
}

// A handler may have stopped the context: that is for who runs it by hand.
void io_driver::go_on() noexcept {
    if (context_->stopped()) context_->restart();
}

void io_driver::poll() noexcept {
    go_on();
    for (int i = 0; i < most_handlers; ++i) {
        try {
            if (context_->poll_one() == 0) return;
        } catch (...) {
            place_->unobserved(std::current_exception());
        }
    }
}

void io_driver::sleep(time_point until) noexcept {
    go_on();
    try {
        if (until == time_point::max()) {
            context_->run_one();
        } else {
            context_->run_one_until(until);
        }
    } catch (...) {
        place_->unobserved(std::current_exception());
    }
}

void io_driver::ring() noexcept {
    boost::asio::post(*context_,
                      boost::asio::bind_allocator(memory_for_one<void>{*this}, [this] { rang(); }));
}

}  // namespace rondo::detail

#endif
