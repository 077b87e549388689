// The keys of a configuration file: what the reader knows, and what docs/gateway.md says.
#include <array>

#include "config.hpp"

namespace rondo::gateway {

namespace {

constexpr auto table = std::to_array<key_info>({
    {"[gateway]", "shutdown_grace", "duration", "\"10s\"",
     "how long requests and tunnels may go on after SIGTERM or SIGINT"},
    {"[gateway]", "log", "\"trace\", \"debug\", \"info\", \"warn\", \"error\", \"off\"", "\"info\"",
     "the least important messages that are written to stderr"},

    {"[admin]", "listen", "address, or a list of them", "\"127.0.0.1:9180\"",
     "where operators look; elsewhere than on this machine only with a token"},
    {"[admin]", "token", "string of 16 characters at least", "none",
     "what who asks has to show: as a bearer token, or as the password of any user"},

    {"[[server]]", "listen", "address, or a list of them", "required",
     "where connections are accepted; port 0 takes a free one"},
    {"[[server]]", "name", "string", "its first address", "how logs call this server"},
    {"[[server]]", "max_connections", "number from 1", "1024",
     "connections open at a time; more wait in the backlog of the system"},
    {"[[server]]", "connections", "number from 1", "", "another name of max_connections"},
    {"[[server]]", "max_connections_per_address", "number from 1", "no limit",
     "connections from one client address; more are closed at once"},
    {"[[server]]", "forward", "address, list, or table", "",
     "short form of one route: forwards to these; see *forward*"},
    {"[[server]]", "serve", "directory", "", "short form of one route: serves files from here"},
    {"[[server]]", "uri", "path", "\"/\"", "the path of the short form's route"},
    {"[[server]]", "not_found", "file below the directory", "a plain 404",
     "the page for what is not there, with `serve`"},
    {"[[server]]", "match", "list of routes", "",
     "the routes, of which the first that matches is taken; not with a short form"},
    {"[[server]]", "tls", "table, or a list of them", "no TLS",
     "certificates; the client's SNI chooses, the first is the default"},
    {"[[server]]", "timeouts", "table", "", "see *timeouts*"},

    {"match", "uri", "path", "\"/\"",
     "the route has this path and what is below it: /api has /api and /api/x, not /apix"},
    {"match", "forward", "address, list, or table", "", "forwards to these; see *forward*"},
    {"match", "serve", "directory", "", "serves files from here"},
    {"match", "not_found", "file below the directory", "a plain 404",
     "the page for what is not there, with `serve`"},

    {"forward", "algorithm", "\"WRR\"", "\"WRR\"", "weighted round robin, evenly interleaved"},
    {"forward", "backends", "list of addresses or backends", "required", "who gets the requests"},

    {"backend", "address", "address", "required", "where it is"},
    {"backend", "weight", "number from 0", "1", "its share; with 0 it gets none"},

    {"tls", "certificate", "PEM file", "required", "the certificate, then its chain"},
    {"tls", "key", "PEM file", "required", "its private key"},

    {"timeouts", "header", "duration", "\"10s\"",
     "for the header of a request, from its first byte"},
    {"timeouts", "idle", "duration", "\"60s\"",
     "for a connection between requests, and between two pieces of a body"},
    {"timeouts", "connect", "duration", "\"5s\"", "to connect to a backend"},
    {"timeouts", "response", "duration", "\"60s\"",
     "for the header of a backend's response, from the end of the request"},
});

}  // namespace

std::span<key_info const> keys() { return table; }

}  // namespace rondo::gateway
