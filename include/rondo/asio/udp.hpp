// udp.hpp: datagrams over UDP, received by an I/O context of Asio.
//
//   rondo::asio::udp_network network{io.get_executor()};
//   std::unique_ptr<datagram_socket> s = *network.bind({localhost, 4000});
//
// Guarantee      that of core/datagram.hpp. Arrivals are taken from the system where the executor
//                says and put into the socket's queue; so the context has to be run.
// Sending        happens in send_to() itself, in whatever thread that is, without waiting: what the
//                system has no room for is dropped and counted as not sent.
// Close          the port is given back where the executor says, soon after close().
// Errors         that arrive in the place of a datagram (a port nobody listens at) are ignored.
// Thread safety  that of datagram_socket. The executor may be one of many threads.
// Lifetime       sockets go before their context, as always in Asio.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <utility>

#include "rondo/core/datagram.hpp"

namespace rondo::asio {

class udp_network final : public datagram_network {
  public:
    explicit udp_network(boost::asio::any_io_executor where) : where_(std::move(where)) {}

  private:
    bound open(endpoint local, datagram_options chosen) override;

    boost::asio::any_io_executor where_;
};

}  // namespace rondo::asio
