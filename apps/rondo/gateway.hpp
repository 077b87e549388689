// gateway.hpp: the servers of a configuration, running.
//
//   auto made = gateway::prepare(std::move(config), log);     // nothing is open yet
//   auto started = (*made)->start();                          // all addresses are bound, or none
//   ...
//   (*made)->stop();                                          // within the grace
//
// Routes         are made once, when it is prepared; every connection of every worker uses them.
// Start          binds every address of every server before it says that it has; if one cannot be
//                bound, those that were are closed again.
// Stop           servers stop at the same time, each as http::server::stop() says.
// Thread safety  start() and stop() by one plain thread.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "config.hpp"
#include "diagnostic.hpp"

namespace rondo::gateway {

class gateway {
  public:
    using endpoint = boost::asio::ip::tcp::endpoint;

    // Loads certificates, opens directories, looks names up.
    static std::expected<std::unique_ptr<gateway>, std::vector<diagnostic>> prepare(
        config c, std::shared_ptr<spdlog::logger> log);
    ~gateway();
    gateway(gateway const&) = delete;
    gateway& operator=(gateway const&) = delete;

    // What could not be bound, and why.
    std::expected<void, std::string> start();
    // Where the servers listen, in the order of the configuration.
    std::vector<endpoint> addresses() const;
    // How many connections were cut off at the end of the grace.
    std::size_t stop();

  private:
    struct state;
    explicit gateway(std::unique_ptr<state> s) noexcept;

    std::unique_ptr<state> state_;
};

}  // namespace rondo::gateway
