// gateway.hpp: the servers of a configuration, running.
//
//   auto made = gateway::prepare(std::move(config), log);     // nothing is open yet
//   auto started = (*made)->start();                          // all addresses are bound, or none
//   auto changed = (*made)->reload(std::move(other));         // no connection ends
//   ...
//   (*made)->stop();                                          // within the grace
//
// Routes         are made once, when it is prepared; every connection of every worker uses them.
// Start          binds every address of every server before it says that it has; if one cannot be
//                bound, those that were are closed again.
// Reload         everything that can fail is done before anything is changed: a configuration that
//                cannot be had leaves the old one as it is. Then: a server is the same one if it
//                listens at an address at which it did. Its connections go on, and their next
//                request has the new routes, limits and times; requests that are being answered
//                keep the old ones. An address that stays is never closed, also if it goes to
//                another server: what is queued there is accepted by whoever has it then. A server
//                that is gone ends as by stop().
// Names          of backends are looked up when a configuration is loaded, and again now and then:
//                one that has lost its address is as a new configuration with the new address. If
//                it cannot be found the address stays. No worker waits for an answer; the end of
//                the gateway does.
// Stop           servers stop at the same time, each as http::server::stop() says; the admin
//                address answers until they have.
// Thread safety  start() and stop() by one plain thread, reload() and follow_names() by any plain
//                thread; the figures by all.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "admin.hpp"
#include "config.hpp"
#include "diagnostic.hpp"
#include "names.hpp"

namespace rondo::gateway {

class gateway {
  public:
    using endpoint = boost::asio::ip::tcp::endpoint;

    // Loads certificates, opens directories, looks names up.
    static std::expected<std::unique_ptr<gateway>, std::vector<diagnostic>> prepare(
        config c, std::shared_ptr<spdlog::logger> log, name_service names = {});
    ~gateway();
    gateway(gateway const&) = delete;
    gateway& operator=(gateway const&) = delete;

    // What the admin address does when it is told to. Before start().
    void obey(commands c);
    // What could not be bound, and why.
    std::expected<void, std::string> start();
    // The number of the configuration, or what is wrong with it.
    std::expected<std::uint64_t, std::vector<diagnostic>> reload(config c);
    // Looks the names of backends up now. Whether one has another address, which is used from then
    // on; not while something else changes the gateway.
    bool follow_names();
    // A configuration could not even be read; counted.
    void refused() noexcept;
    // How many requests were cut off at the end of the grace.
    std::size_t stop();

    // Where the servers listen, in the order of the configuration; and where operators look.
    std::vector<endpoint> addresses() const;
    std::vector<endpoint> admin_addresses() const;

  private:
    struct state;
    explicit gateway(std::unique_ptr<state> s) noexcept;

    std::unique_ptr<state> state_;
};

}  // namespace rondo::gateway
