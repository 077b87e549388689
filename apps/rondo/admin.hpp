// admin.hpp: what the admin address answers.
//
//   GET  /            the dashboard            GET  /metrics   for Prometheus
//   GET  /status      its figures, as JSON     GET  /healthz   200: it runs
//   GET  /events      the same each second,    GET  /readyz    200, or 503 while it ends
//                     as server-sent events
//   POST /reload      loads the configuration again; 422 and what is wrong with it
//   POST /drain       ends the gateway as SIGTERM does; again: it ends already
//
// Access         with a token everything but /healthz and /readyz asks for it, as a bearer token or
//                as the password of any user, which browsers can send. Without one, the address is
//                of this machine, and it has to be asked for by such an address: a name that
//                somebody else's DNS points here is refused, so no page in a browser can read this.
//                So is a connection that is left of an address for others, which had a token.
//                A stream of events ends when it could not be asked for any more.
// Streams        at most most_watchers: a page that is left open takes a connection for as long,
//                and commands and /healthz need some too.
// Commands       need the field X-Rondo-Command, which no page of another origin can send.
// Thread safety  every member may be called concurrently, but for the destructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "monitor.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/http/exchange.hpp"
#include "rondo/sync/semaphore.hpp"

namespace rondo::gateway {

// What an operator can have done. Both may be empty: then nobody does it.
struct commands {
    // Loads the configuration again; the number of the new one, or what is wrong. May block.
    std::function<std::expected<std::uint64_t, std::string>()> reload = {};
    std::function<void()> drain = {};  // called for each who asks
};

class admin {
  public:
    static constexpr std::size_t most_connections = 64;
    static constexpr std::size_t most_watchers = most_connections / 2;

    admin(runtime& rt, monitor& of, std::function<bool()> draining) noexcept
        : rt_(rt), monitor_(of), draining_(std::move(draining)) {}

    // Before it is asked.
    void obey(commands c) { commands_ = std::move(c); }
    // Empty: none is asked for.
    void ask_for(std::string token);

    task<void> answer(http::exchange* x);

  private:
    bool knows_token(http::exchange const& x, std::string_view token) const;
    std::string token() const;
    // Whether it asks as it has to, by what is asked for now.
    bool may_look(http::exchange const& x) const;
    task<void> answer_reading(http::exchange* x, std::string_view path);
    task<void> answer_command(http::exchange* x, std::string_view path);
    task<void> stream(http::exchange* x);

    runtime& rt_;
    monitor& monitor_;
    std::function<bool()> draining_;
    commands commands_;
    semaphore places_{most_watchers};
    mutable std::mutex lock_;  // of the next
    std::string token_;
};

}  // namespace rondo::gateway
