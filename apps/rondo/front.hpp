// front.hpp: one [[server]], running, whose configuration can change under it.
//
// A request takes the routes that its worker has at its beginning, and keeps them to its end. Each
// worker has a share of its own in the table, so that a request counts nothing that another worker
// counts too.
//
// Thread safety  start(), change() and stop() one at a time; the figures by any thread.
// Lifetime       its end waits, so it is for plain threads.
#pragma once

#include <spdlog/logger.h>

#include <expected>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rondo/exec/runtime.hpp"
#include "rondo/http/server.hpp"
#include "route_table.hpp"

namespace rondo::gateway {

class front {
  public:
    using door = http::server_options::door;

    front(runtime& rt, std::shared_ptr<route_table> routes, std::shared_ptr<spdlog::logger> log);

    // `doors` listen already.
    std::expected<void, std::string> start(std::vector<door> doors);
    // Requests that begin from now on have these routes, limits and doors. It fails only if the
    // system has no descriptors left; then nothing has changed.
    task<std::expected<void, std::string>> change(std::shared_ptr<route_table> routes,
                                                  std::vector<door> doors);

    std::shared_ptr<route_table> routes() const;
    http::server& server() noexcept { return *server_; }

  private:
    using share = std::shared_ptr<route_table const>;
    struct alignas(64) slot {
        share now;
    };

    static share share_of(std::shared_ptr<route_table> const& table);
    static task<void> take(slot* at, share next);
    static task<void> answer(slot const* at, http::exchange* x);

    runtime& rt_;
    mutable std::mutex lock_;  // of the next
    std::shared_ptr<route_table> routes_;
    std::vector<slot> slots_;  // of the workers
    std::unique_ptr<http::server> server_;
};

}  // namespace rondo::gateway
