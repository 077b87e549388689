// The queue of a socket is a ring of slots made once, so that nothing is allocated under the lock.
// A grant moves the first datagram into the waiting operation; one that nobody is left to take goes
// back to the head, and is dropped if newer ones have filled the queue meanwhile.
#include "rondo/core/datagram.hpp"

#include <array>
#include <cstdio>
#include <mutex>

#include "rondo/core/assert.hpp"

namespace rondo {

std::string to_text(endpoint e) {
    std::array<char, 24> text{};
    std::snprintf(text.data(), text.size(), "%u.%u.%u.%u:%u", e.host >> 24U, e.host >> 16U & 255U,
                  e.host >> 8U & 255U, e.host & 255U, unsigned{e.port});
    return text.data();
}

datagram_socket::datagram_socket(endpoint local, std::size_t queue_length)
    : local_(local), slots_(queue_length) {
    RONDO_ASSERT(queue_length > 0, "a socket has room for a datagram");
}

datagram_socket::~datagram_socket() = default;

// --- those who receive ---

bool datagram_socket::receive_op::ready() noexcept {
    std::lock_guard const guard{socket_->lock()};
    return socket_->take_first(*this);  // overtakes nobody: while one waits the queue is empty
}

bool datagram_socket::grant(waiter& w) noexcept { return take_first(static_cast<receive_op&>(w)); }

// True: it has one, or knows that none will come.
bool datagram_socket::take_first(receive_op& op) noexcept {
    if (count_ == 0) return closed_;
    op.received_ = std::move(slots_[first_]);
    op.has_ = true;
    first_ = (first_ + 1) % slots_.size();
    --count_;
    return true;
}

std::expected<datagram, try_receive_error> datagram_socket::try_receive() noexcept {
    receive_op op{*this};
    if (!op.ready()) return std::unexpected{try_receive_error::empty};
    if (!op.has_) return std::unexpected{try_receive_error::closed};
    return std::move(op.received_);
}

std::expected<datagram, receive_error> datagram_socket::blocking_receive() {
    return blocking_wait(receive_op{*this});
}
std::expected<datagram, receive_error> datagram_socket::blocking_receive(stop_token t) {
    return blocking_wait(receive_op{*this}, t);
}
std::expected<datagram, receive_error> datagram_socket::blocking_receive_until(time_point d,
                                                                               stop_token t) {
    return blocking_wait(receive_op{*this}, {d, t});
}
std::expected<datagram, receive_error> datagram_socket::blocking_receive_for(clock::duration d,
                                                                             stop_token t) {
    return blocking_wait(receive_op{*this}, {d, t});
}

// --- the network ---

void datagram_socket::push_back(datagram& d) noexcept {
    if (closed_) return;
    if (count_ == slots_.size()) {
        ++counts_.overflowed;
        return;
    }
    slots_[(first_ + count_) % slots_.size()] = std::move(d);
    ++count_;
    ++counts_.arrived;
}

void datagram_socket::push_front(datagram& d) noexcept {
    if (closed_) return;
    if (count_ == slots_.size()) {
        ++counts_.overflowed;
        return;
    }
    first_ = (first_ + slots_.size() - 1) % slots_.size();
    slots_[first_] = std::move(d);
    ++count_;
}

// A slot that is free holds no bytes, and what is dropped is destroyed with the argument: neither
// under the lock.
void datagram_socket::deliver(datagram d) noexcept {
    serve([&]() noexcept { push_back(d); });
}

void datagram_socket::put_back(datagram d) noexcept {
    serve([&]() noexcept { push_front(d); });
}

void datagram_socket::count_sent(bool sent) noexcept {
    std::lock_guard const guard{lock()};
    ++(sent ? counts_.sent : counts_.not_sent);
}

datagram_counts datagram_socket::counts() noexcept {
    std::lock_guard const guard{lock()};
    return counts_;
}

bool datagram_socket::is_closed() noexcept {
    std::lock_guard const guard{lock()};
    return closed_;
}

void datagram_socket::close() noexcept {
    bool first = false;
    std::vector<datagram> dropped;
    serve([&]() noexcept {
        first = !std::exchange(closed_, true);
        count_ = 0;
        dropped.swap(slots_);
    });
    if (first) closed();
}

}  // namespace rondo
