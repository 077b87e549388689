// front.hpp: one [[server]], running, whose configuration can change under it.
//
// A request takes the routes that its worker has at its beginning, and keeps them to its end. Each
// worker has a share of its own in the table, so that a request counts nothing that another worker
// counts too.
//
// Thread safety  change() and stop() one at a time; the figures by any thread.
// Lifetime       its end waits, so it is for plain threads.
#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <mutex>
#include <vector>

#include "rondo/exec/runtime.hpp"
#include "rondo/http/server.hpp"
#include "route_table.hpp"

namespace rondo::gateway {

class front {
  public:
    // It runs, and accepts there.
    front(runtime& rt, std::shared_ptr<route_table> routes, http::open_doors doors,
          std::shared_ptr<spdlog::logger> log);

    // Requests that begin from now on have these routes and limits, and come by these doors.
    task<void> change(std::shared_ptr<route_table> routes, http::open_doors doors);

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
