// monitor.hpp: looks at the gateway once a second, and tells those who watch.
//
// Thread safety  run() once; the others by any thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "rondo/core/task.hpp"
#include "rondo/sync/watch.hpp"
#include "status.hpp"

namespace rondo::gateway {

class monitor {
  public:
    using source = std::function<task<std::unique_ptr<readings>>()>;
    // What those get who watch: a status as JSON.
    using text = std::shared_ptr<std::string const>;

    static constexpr clock::duration interval = std::chrono::seconds{1};
    static constexpr std::size_t averaged = 3;      // intervals, for rates and quantiles
    static constexpr std::size_t remembered = 120;  // statuses

    explicit monitor(source from) : source_(std::move(from)), latest_(text{}) {}

    // Until it is stopped.
    task<void> run();

    task<std::unique_ptr<readings>> read() const { return source_(); }
    // How it is just now, as those are told who watch.
    task<std::string> look() const;
    watch::receiver<text> subscribe() const noexcept { return latest_.subscribe(); }
    // The oldest first; the last one is the latest.
    std::deque<text> past() const;

  private:
    source source_;
    mutable std::mutex lock_;                             // of the next two
    std::deque<std::shared_ptr<readings const>> before_;  // written by run() alone
    std::deque<text> past_;
    watch::sender<text> latest_;
};

}  // namespace rondo::gateway
