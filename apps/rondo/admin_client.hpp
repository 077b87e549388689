// admin_client.hpp: what `rondo reload`, `rondo drain` and `rondo top` ask a gateway that runs.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <expected>
#include <string>
#include <string_view>

#include "events.hpp"

namespace rondo::gateway {

struct admin_target {
    boost::asio::ip::tcp::endpoint at;
    std::string token;  // empty: none is asked for
};

struct admin_reply {
    int status = 0;
    std::string body;
};

struct no_answer {
    std::string why;
    bool gone = false;  // nobody is there, or who was has closed the connection
    bool late = false;  // nothing came in time
};

// Blocks, for a minute or so at most.
std::expected<admin_reply, no_answer> ask(admin_target const& whom, std::string_view verb,
                                          std::string_view path);

// The same, for a stream of events: each is given to `take`, by another thread, until it returns
// false. Returns then, when the stream has ended, or when nothing came for ten seconds. The body is
// that of an answer other than 200.
std::expected<admin_reply, no_answer> watch(admin_target const& whom, std::string_view path,
                                            event_reader::taker take);

}  // namespace rondo::gateway
