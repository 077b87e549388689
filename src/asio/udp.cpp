// The port belongs to three: the socket of the caller, the receive that is pending, and a close on
// its way. So it is shared, and knows its socket only as long as that lives.
//
// Everything done to the port is done under its mutex: Asio's sockets are not safe for concurrent
// use, and send_to() is called in any thread. The mutex is never held while waiting: the socket is
// in non-blocking mode. A wake_scope around it keeps what a delivery resumes in place (a foreign
// coroutine without an executor) until the mutex is free.
#include "rondo/asio/udp.hpp"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <mutex>

#include "rondo/core/assert.hpp"
#include "rondo/core/waker.hpp"

namespace rondo::asio {

namespace {

using boost::asio::ip::udp;
using boost::system::error_code;

udp::endpoint to_asio(endpoint e) { return {boost::asio::ip::address_v4{e.host}, e.port}; }
endpoint from_asio(udp::endpoint const& e) { return {e.address().to_v4().to_uint(), e.port()}; }

class udp_socket;

class port : public std::enable_shared_from_this<port> {
  public:
    port(udp::socket s, udp_socket& receiver) : socket_(std::move(s)), receiver_(&receiver) {}

    void receive_next();
    bool send(endpoint to, std::span<std::byte const> bytes) noexcept;
    // Its receiver goes away; the port does a little later.
    void let_go() noexcept;

  private:
    void on_arrival(error_code error, std::size_t length);

    std::mutex mutex_;
    udp::socket socket_;
    udp_socket* receiver_;
    udp::endpoint from_;
    std::array<std::byte, datagram_socket::longest + 1> buffer_{};
};

class udp_socket final : public datagram_socket {
  public:
    udp_socket(udp::socket s, std::size_t queue_length)
        : datagram_socket(from_asio(s.local_endpoint()), queue_length),
          port_(std::make_shared<port>(std::move(s), *this)) {
        port_->receive_next();
    }
    ~udp_socket() override { close(); }

    void send_to(endpoint to, std::span<std::byte const> bytes) noexcept override {
        RONDO_ASSERT(bytes.size() <= longest, "a datagram has at most 65507 bytes");
        count_sent(port_->send(to, bytes));
    }
    using datagram_socket::deliver;

  private:
    void closed() noexcept override { port_->let_go(); }

    std::shared_ptr<port> const port_;
};

void port::receive_next() {
    std::lock_guard const guard{mutex_};
    if (receiver_ == nullptr) return;
    socket_.async_receive_from(boost::asio::buffer(buffer_), from_,
                               [self = shared_from_this()](error_code error, std::size_t length) {
                                   self->on_arrival(error, length);
                               });
}

void port::on_arrival(error_code error, std::size_t length) {
    if (error == boost::asio::error::operation_aborted) return;
    if (!error) {
        datagram d{from_asio(from_), {buffer_.begin(), buffer_.begin() + length}};
        wake_scope const waking;
        std::lock_guard const guard{mutex_};
        if (receiver_ != nullptr) receiver_->deliver(std::move(d));
    }
    receive_next();
}

bool port::send(endpoint to, std::span<std::byte const> bytes) noexcept {
    std::lock_guard const guard{mutex_};
    if (receiver_ == nullptr) return false;
    error_code error;
    socket_.send_to(boost::asio::buffer(bytes.data(), bytes.size()), to_asio(to), 0, error);
    return !error;
}

void port::let_go() noexcept {
    {
        std::lock_guard const guard{mutex_};
        receiver_ = nullptr;
    }
    boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
        std::lock_guard const guard{self->mutex_};
        error_code error;
        error = self->socket_.close(error);  // closed is closed
    });
}

}  // namespace

datagram_network::bound udp_network::open(endpoint local, datagram_options chosen) {
    udp::socket s{where_};
    error_code error;
    error = s.open(udp::v4(), error);
    if (!error) error = s.non_blocking(true, error);
    if (!error) error = s.bind(to_asio(local), error);
    if (error == boost::asio::error::address_in_use) return std::unexpected{bind_error::in_use};
    if (error == boost::system::errc::address_not_available) {
        return std::unexpected{bind_error::not_here};
    }
    if (error) return std::unexpected{bind_error::refused};
    return std::make_unique<udp_socket>(std::move(s), chosen.queue_length);
}

}  // namespace rondo::asio
