// route_table.hpp: the routes of a server, opened: what answers its requests.
//
// Immutable and shared by all connections. A table that succeeds another takes over what has not
// changed: a route that forwards to the same backends keeps their connections, their turns and
// what is known of their health. Each route of the old table has one heir at most, the one of its
// own path if there is one: two that forward to the same backends stay apart, also if a server is
// split in two.
//
// Thread safety  answer() by tasks that are pinned to workers, all at once.
// Lifetime       until the requests that it answers have ended. Its end waits, so it is for plain
//                threads.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config.hpp"
#include "diagnostic.hpp"
#include "names.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/http/admission.hpp"
#include "rondo/http/client.hpp"
#include "rondo/http/files.hpp"
#include "rondo/http/proxy.hpp"
#include "rondo/http/server.hpp"
#include "tls.hpp"

namespace rondo::gateway {

// As the system writes it.
std::string to_string(boost::asio::ip::tcp::endpoint const& e);

// What requests go through on their way to a route. Shared by all servers.
struct reception {
    std::shared_ptr<http::admission> turns = {};  // null: nobody waits
    std::shared_ptr<spdlog::logger> access = {};  // null: no line for each
    bool json = false;
};

// What routes are made with.
struct surroundings {
    runtime& rt;
    std::shared_ptr<spdlog::logger> log;
    resolver names = ask_the_system;  // the same answer for each route to a name
};

class route_table;

// The table before, and what other successors of it have taken.
struct predecessor {
    route_table const* table = nullptr;
    std::set<http::proxy const*>& taken;
};

class route_table {
  public:
    // Of one backend of one route, though it be listed twice there.
    struct backend_figures : http::proxy::figures {
        std::string route;
    };

    // Loads certificates, opens directories, looks names up. Null if something is wrong: `wrong`
    // says what.
    static std::shared_ptr<route_table> open(server_config const& from, reception const& through,
                                             surroundings const& with, predecessor before,
                                             std::vector<diagnostic>& wrong);
    // The same with the addresses that names have now, and the certificates and directories that
    // are open. Null if something is wrong.
    std::shared_ptr<route_table> look_up_again(surroundings const& with,
                                               std::vector<diagnostic>& wrong) const;

    task<void> answer(http::exchange* x) const;
    // Which cannot even be understood.
    void note(http::refused_request const& r) const noexcept;

    server_config const& made_from() const noexcept { return made_from_; }
    reception const& through() const noexcept { return through_; }
    // Null without TLS.
    std::shared_ptr<boost::asio::ssl::context> tls() const noexcept;
    std::vector<backend_figures> backends() const;
    // Backends that are known by name, each once.
    std::vector<address> names() const;
    // The address that was taken for a backend, in all routes.
    std::optional<boost::asio::ip::tcp::endpoint> address_of(address const& backend) const;

  private:
    struct route {
        std::string uri;
        std::shared_ptr<http::files const> files;
        std::shared_ptr<http::proxy> proxy;
        forward_to forward = {};  // of the proxy
        tcp_addresses at = {};    // of its backends
        bool takes_turns = true;
    };

    route_table(server_config from, reception through)
        : made_from_(std::move(from)), through_(std::move(through)) {}
    task<void> answer(http::exchange* x, http::admission::visit* note) const;
    static task<void> answer_and_log(route_table const* by, http::exchange* x);
    void open(gateway::route const& r, surroundings const& with, route_table const* before,
              std::vector<diagnostic>& wrong);
    void open_files(gateway::route const& r, serve_from const& from,
                    std::vector<diagnostic>& wrong);
    static void find_backends(route& of, surroundings const& with, route_table const* before,
                              std::vector<diagnostic>& wrong);
    void open_proxies(surroundings const& with, predecessor before);
    // The proxy of a route of another table that is as good for this one.
    std::shared_ptr<http::proxy> inherit(route const& r, predecessor before, bool same_path) const;

    server_config made_from_;
    reception through_;
    std::shared_ptr<tls_certificates> certificates_;
    std::shared_ptr<http::client> client_;
    std::vector<route> routes_;
};

}  // namespace rondo::gateway
