// config.hpp: the configuration of the gateway, read and checked: a value that never changes.
//
//   auto loaded = load("rondo.toml");
//   if (!loaded) for (diagnostic const& d : loaded.error()) print(to_string(d, "rondo.toml"));
//
// Guarantee      a config can be started as far as the file and the file system tell: addresses are
//                well-formed, directories and certificates readable, every route can be reached.
//                Ports that are taken and names that do not exist show when it starts.
// Paths          are relative to the folder of the file they are written in.
// Reference      docs/gateway.md has every key; keys() is the table behind it, and a test holds one
//                against the other.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "address.hpp"
#include "diagnostic.hpp"
#include "rondo/http/admission.hpp"

namespace rondo::gateway {

struct backend {
    address where;
    std::uint32_t weight = 1;

    friend bool operator==(backend const&, backend const&) = default;
};

// Requests go to these in turn, by weight, evenly interleaved.
struct forward_to {
    std::vector<backend> backends;
};

struct serve_from {
    std::filesystem::path root;
    std::optional<std::string> not_found;  // the page for what is not there, below root
};

struct route {
    std::string uri = "/";
    std::variant<forward_to, serve_from> target;
    bool admission = true;  // its requests wait their turn, if there are turns
};

struct certificate {
    std::filesystem::path chain;
    std::filesystem::path key;
    position at;  // for what is found wrong when it is loaded
};

struct timeouts {
    std::chrono::milliseconds header = std::chrono::seconds{10};  // to receive a request's header
    std::chrono::milliseconds idle = std::chrono::seconds{60};    // of a connection, and in a body
    std::chrono::milliseconds connect = std::chrono::seconds{5};  // to an upstream
    std::chrono::milliseconds response = std::chrono::seconds{60};  // until its response begins
};

struct server_config {
    std::string name;  // by default its first address
    std::vector<address> listen;
    std::size_t max_connections = 1024;
    std::optional<std::size_t> max_connections_per_address;
    std::vector<route> routes;              // the first that matches is taken
    std::vector<certificate> certificates;  // with any, TLS; the first is the default one
    std::vector<http::network> proxies;     // which speak the PROXY protocol
    timeouts limits;
};

// Where operators look and speak to the gateway.
struct admin_config {
    std::vector<address> listen;
    std::string token;  // empty: none is asked for; then all addresses are of this machine
};

enum class access_log : std::uint8_t { off, text, json };

enum class log_level : std::uint8_t { trace, debug, info, warn, error, off };

struct config {
    std::chrono::milliseconds shutdown_grace = std::chrono::seconds{10};
    log_level log = log_level::info;
    std::optional<admin_config> admin;
    gateway::access_log access = access_log::off;
    std::optional<http::admission_settings> admission;  // without: nobody waits
    std::vector<server_config> servers;
};

using config_result = std::expected<config, std::vector<diagnostic>>;

config_result load(std::filesystem::path const& file);
// The same for a text that would be in a file of that folder.
config_result parse(std::string_view text, std::filesystem::path const& folder);

// Where the gateway that runs with this file can be asked, also if something is wrong with the rest
// of it. Nothing if the file does not say; an error if it cannot be read, or the section is wrong.
std::expected<std::optional<admin_config>, std::vector<diagnostic>> admin_of(
    std::filesystem::path const& file);

// A key that a file may have. `section` is the table it stands in, as the reference names it.
struct key_info {
    std::string_view section;
    std::string_view name;
    std::string_view value;     // what it takes
    std::string_view fallback;  // what holds without it; "required" if it has to be there
    std::string_view meaning;
};
std::span<key_info const> keys();

}  // namespace rondo::gateway
