// datagram.hpp: sending and receiving datagrams, whether the network is real or simulated.
//
//   std::unique_ptr<datagram_socket> s = *network.bind({.host = localhost, .port = 4000});
//   s->send_to(peer, bytes);
//   std::expected<datagram, receive_error> d = co_await s->receive_for(2s);
//
// What is written against these two interfaces runs over UDP (rondo/asio/udp.hpp) and in a
// simulated network (rondo/sim/network.hpp) unchanged.
//
// Guarantee      of UDP, no more: a datagram arrives whole or not at all, never, once or more
//                often, in any order. send_to() never waits and does not say what becomes of it.
//                Receivers are served in the order in which they asked.
// Limits         what has arrived and was not received waits in a queue of fixed length; what
//                comes when it is full is dropped and counted. A datagram has at most `longest`
//                bytes.
// Close          ends every receive, now and later, with `closed`; what was not received is
//                dropped, what is sent from then on goes nowhere. Destruction closes; nobody may
//                be receiving any more then.
// Thread safety  every member of a socket but the destructor may be called concurrently.
// Cancellation   a receive that is stopped takes nothing: a datagram that it had been given goes
//                back to the head of the queue.
// Resumption     on the receiver's executor, never inside the network.
// Allocation     the queue when the socket is made, and the bytes of each datagram that arrives.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/wait.hpp"

namespace rondo {

// An IPv4 address and a port.
struct endpoint {
    std::uint32_t host = 0;  // 127.0.0.1 is 0x7f000001
    std::uint16_t port = 0;

    friend auto operator<=>(endpoint const&, endpoint const&) = default;
};

inline constexpr std::uint32_t localhost = 0x7f000001;

// "127.0.0.1:4000"
std::string to_text(endpoint e);

struct datagram {
    endpoint from;
    std::vector<std::byte> bytes;
};

enum class receive_error : std::uint8_t { closed, stopped, timed_out };
enum class try_receive_error : std::uint8_t { empty, closed };

struct datagram_counts {
    std::uint64_t sent = 0;        // handed to the network, which may lose them
    std::uint64_t not_sent = 0;    // refused by this side: closed, no room, no such address
    std::uint64_t arrived = 0;     // put into the queue
    std::uint64_t overflowed = 0;  // arrived and dropped, because the queue was full
};

class datagram_socket : wait_queue {
  public:
    class receive_op;

    static constexpr std::size_t longest = 65'507;

    virtual ~datagram_socket();

    endpoint local() const noexcept { return local_; }

    virtual void send_to(endpoint to, std::span<std::byte const> bytes) noexcept = 0;

    wait<receive_op> receive() noexcept;
    bounded_wait<receive_op> receive(stop_token t) noexcept;
    bounded_wait<receive_op> receive_until(time_point d, stop_token t = {}) noexcept;
    bounded_wait<receive_op> receive_for(clock::duration d, stop_token t = {}) noexcept;
    std::expected<datagram, receive_error> blocking_receive();
    std::expected<datagram, receive_error> blocking_receive(stop_token t);
    std::expected<datagram, receive_error> blocking_receive_until(time_point d, stop_token t = {});
    std::expected<datagram, receive_error> blocking_receive_for(clock::duration d,
                                                                stop_token t = {});
    std::expected<datagram, try_receive_error> try_receive() noexcept;

    void close() noexcept;
    bool is_closed() noexcept;
    datagram_counts counts() noexcept;

  protected:
    datagram_socket(endpoint local, std::size_t queue_length);

    // For the network. The call that finds the queue full, or the socket closed, drops it.
    void deliver(datagram d) noexcept;
    void count_sent(bool sent) noexcept;

  private:
    // Once; lets go of what belongs to the network.
    virtual void closed() noexcept = 0;

    bool grant(waiter& w) noexcept override;
    // These three under the lock.
    bool take_first(receive_op& op) noexcept;
    void push_back(datagram& d) noexcept;
    void push_front(datagram& d) noexcept;
    void put_back(datagram d) noexcept;

    endpoint const local_;
    std::vector<datagram> slots_;  // a ring: count_ of them from first_ on
    std::size_t first_ = 0;
    std::size_t count_ = 0;
    bool closed_ = false;
    datagram_counts counts_;
};

class datagram_socket::receive_op : public waiter {
  public:
    explicit receive_op(datagram_socket& s) noexcept : waiter(s), socket_(&s) {}

    bool ready() noexcept;
    std::expected<datagram, receive_error> take() noexcept {
        if (!has_) return std::unexpected{receive_error::closed};
        return std::move(received_);
    }
    void hand_on() noexcept {
        if (has_) socket_->put_back(std::move(received_));
    }
    receive_error refuse(wait_error why) const noexcept { return reason<receive_error>(why); }

  private:
    friend datagram_socket;

    datagram_socket* socket_;
    datagram received_;
    bool has_ = false;
};

enum class bind_error : std::uint8_t {
    in_use,
    not_here,  // the address is not one of this machine
    refused,   // by the system: rights, limits
};

struct datagram_options {
    std::size_t queue_length = 1024;
};

class datagram_network {
  public:
    using bound = std::expected<std::unique_ptr<datagram_socket>, bind_error>;

    // Port 0 stands for one that is free.
    bound bind(endpoint local, datagram_options chosen = {}) { return open(local, chosen); }

  protected:
    ~datagram_network() = default;

  private:
    virtual bound open(endpoint local, datagram_options chosen) = 0;
};

inline wait<datagram_socket::receive_op> datagram_socket::receive() noexcept {
    return receive_op{*this};
}
inline bounded_wait<datagram_socket::receive_op> datagram_socket::receive(stop_token t) noexcept {
    return {receive_op{*this}, t};
}
inline bounded_wait<datagram_socket::receive_op> datagram_socket::receive_until(
    time_point d, stop_token t) noexcept {
    return {receive_op{*this}, {d, t}};
}
inline bounded_wait<datagram_socket::receive_op> datagram_socket::receive_for(
    clock::duration d, stop_token t) noexcept {
    return {receive_op{*this}, {d, t}};
}

}  // namespace rondo
