// The keys of a configuration file: what the reader knows, and what docs/gateway.md says.
#include <array>

#include "config.hpp"

namespace rondo::gateway {

namespace {

constexpr auto table = std::to_array<key_info>({
    {"[gateway]", "shutdown_grace", "duration", "\"10s\"",
     "how long requests and tunnels may go on after SIGTERM or SIGINT"},
    {"[gateway]", "log", "\"trace\", \"debug\", \"info\", \"warn\", \"error\", \"off\"", "\"info\"",
     "messages of this level and above are written to stderr"},
    {"[gateway]", "access_log", "\"off\", \"text\", \"json\"", "\"off\"",
     "one line for each request, on stdout"},

    {"[admission]", "max_in_flight", "number from 1", "1024",
     "requests answered at a time; the others wait their turn"},
    {"[admission]", "max_in_flight_per_tenant", "number from 1", "no limit",
     "the same for one tenant"},
    {"[admission]", "max_queued", "number", "10000",
     "requests that may wait, of all tenants together"},
    {"[admission]", "when_full", "\"evict_longest\", \"drop_oldest\", \"drop_newest\", \"reject\"",
     "\"evict_longest\"", "which request is refused when `max_queued` requests wait"},
    {"[admission]", "max_wait", "duration", "no limit", "how long a request may wait for its turn"},
    {"[admission]", "cost", "\"fixed\", \"bytes\", \"measured\"", "\"fixed\"",
     "what a request takes of its tenant's share: always 1, by size, or by the time it took"},
    {"[admission]", "bytes_per_cost", "number from 1", "16384",
     "with `cost = \"bytes\"`: how many bytes cost one more"},
    {"[admission]", "turns", "boolean", "true",
     "false: first in, first out, whoever asks; the limits of one tenant do not apply"},
    {"[admission]", "deadline", "table", "", "see [admission.deadline]"},

    {"[admission.deadline]", "header", "name of a field", "none",
     "where a request says how long it may wait: 250ms, 2s, or a number of milliseconds"},
    {"[admission.deadline]", "default", "duration", "no limit",
     "the limit for requests that do not name one"},
    {"[admission.deadline]", "max", "duration", "no limit", "the most that a request may ask for"},
    {"[admission.deadline]", "reserve", "duration", "none",
     "the usual time of an answer: a request still queued this long before its deadline is "
     "refused; less than `default` and `max`"},

    {"[tenants]", "key", "list of sources", "[\"address\"]",
     "where the tenant's name comes from: the first of these sources that a request has"},
    {"[tenants]", "trusted", "list of networks", "none",
     "peers whose tenant header and Forwarded are believed"},
    {"[tenants]", "default_weight", "number from 1", "1",
     "the weight of tenants that have none of their own"},
    {"[tenants]", "max_queued", "number from 1", "1000", "requests that may wait, of one tenant"},
    {"[tenants]", "idle_time", "duration", "\"10m\"",
     "a tenant without requests for this long may be dropped from the figures"},

    {"[[tenant]]", "name", "string", "required", "the name as `key` gives it"},
    {"[[tenant]]", "weight", "number from 1", "that of [tenants]",
     "its share, relative to the others"},
    {"[[tenant]]", "api_key", "string", "none",
     "the secret that identifies it, if `key` has the source api_key"},

    {"[admin]", "listen", "address, or a list of them", "\"127.0.0.1:9180\"",
     "where dashboard, metrics and commands are; an address beyond this machine needs a token"},
    {"[admin]", "token", "string of at least 16 characters", "none",
     "the secret that clients must show: as a bearer token, or as the password of any user"},

    {"[[server]]", "listen", "address, or a list of them", "required",
     "where connections are accepted; port 0 takes a free one"},
    {"[[server]]", "name", "string", "its first address",
     "its name in logs and metrics; no two servers have the same"},
    {"[[server]]", "max_connections", "number from 1", "1024",
     "connections open at a time; more wait in the backlog of the system"},
    {"[[server]]", "connections", "number from 1", "", "another name for max_connections"},
    {"[[server]]", "max_connections_per_address", "number from 1", "no limit",
     "connections from one client address (of IPv6: from one /64 network); more are closed at "
     "once"},
    {"[[server]]", "proxy_protocol", "list of networks", "none",
     "peers that must begin each connection with a PROXY header (1 or 2), and are believed"},
    {"[[server]]", "forward", "address, list, or table", "",
     "short form of one route: forwards to these; see *forward*"},
    {"[[server]]", "serve", "directory", "", "short form of one route: serves files from here"},
    {"[[server]]", "uri", "path", "\"/\"", "the path of the short form's route"},
    {"[[server]]", "not_found", "file below the directory", "a plain 404",
     "the page for what is not there, with `serve`"},
    {"[[server]]", "admission", "boolean", "true",
     "false: requests of the short form's route do not wait their turn"},
    {"[[server]]", "match", "list of routes", "",
     "the routes; the first that matches is taken. Not together with a short form"},
    {"[[server]]", "tls", "table, or a list of them", "no TLS",
     "certificates; the client's SNI chooses, the first is the default"},
    {"[[server]]", "timeouts", "table", "", "see *timeouts*"},

    {"match", "uri", "path", "\"/\"",
     "the route takes this path and everything below it: /api takes /api and /api/x, not /apix"},
    {"match", "forward", "address, list, or table", "", "forwards to these; see *forward*"},
    {"match", "serve", "directory", "", "serves files from here"},
    {"match", "not_found", "file below the directory", "a plain 404",
     "the page for what is not there, with `serve`"},

    {"match", "admission", "boolean", "true", "false: its requests do not wait their turn"},

    {"forward", "algorithm", "\"WRR\"", "\"WRR\"", "weighted round robin, evenly interleaved"},
    {"forward", "backends", "list of addresses or backends", "required", "where requests go"},

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
     "for the header of a backend's response, from the end of the request; then for each pause in "
     "it"},
});

}  // namespace

std::span<key_info const> keys() { return table; }

}  // namespace rondo::gateway
