// tenant_ledger.hpp: what each tenant asked for and got, for those who watch.
//
// Workers write into a part of their own, so that a request costs two short locks that nobody else
// wants. read() adds the parts up.
//
// Guarantee      exact, but for tenants beyond the first max_tenants of a worker that are not idle:
//                those are summed up under "other".
// Memory         at most max_tenants rows for each worker, a kilobyte each. When a worker has none
//                left, tenants that have had no request at any worker for idle_time lose their rows
//                at all of them: the counts of a tenant fall only when it is forgotten entirely.
// Thread safety  all of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rondo/core/policy.hpp"
#include "rondo/core/short_lock.hpp"

namespace rondo::http {

// How long something took, of many: four classes to each power of two of microseconds.
class wait_times {
  public:
    void record(clock::duration d) noexcept;
    // Up to a fifth more than the one of that rank; zero if there is none.
    clock::duration quantile(double q) const noexcept;
    std::uint64_t count() const noexcept;
    void add(wait_times const& other) noexcept;
    // What came since then.
    wait_times since(wait_times const& before) const noexcept;

  private:
    static constexpr std::size_t classes = 112;
    std::array<std::uint32_t, classes> counts_{};
};

struct tenant_figures {
    std::string tenant;
    std::size_t in_flight = 0;
    std::size_t queued = 0;
    std::uint64_t admitted = 0;
    std::uint64_t refused = 0;  // for want of room, or because of the end
    std::uint64_t expired = 0;  // its deadline passed in line, or it waited for too long
    std::uint64_t gone = 0;     // the client left while it waited
    std::uint64_t cost = 0;     // of those that have ended
    wait_times waits;           // of those that were admitted
    wait_times took;            // from when they came to when they ended
};

class tenant_ledger {
    struct row;
    struct part;

  public:
    enum class end : std::uint8_t { refused, expired, gone };

    // One request. It is ended by exactly one of leave() and turn_away().
    class line {
      public:
        line() = default;
        void admit(clock::duration waited) noexcept;  // it was in line
        void leave(std::uint64_t cost, clock::duration took) noexcept;
        void turn_away(end how) noexcept;

      private:
        friend tenant_ledger;
        line(part& p, row& r) noexcept : part_(&p), row_(&r) {}
        part* part_ = nullptr;
        row* row_ = nullptr;
    };

    explicit tenant_ledger(std::size_t workers, std::size_t max_tenants = 1024,
                           clock::duration idle_time = std::chrono::minutes{10});
    ~tenant_ledger();

    // Another time after which a row may go to another tenant.
    void idle_time(clock::duration d) noexcept {
        idle_time_.store(d.count(), std::memory_order_relaxed);  // a figure
    }

    // A request of that tenant is in line, or has passed at once.
    line open(std::size_t worker, std::string_view tenant, bool in_line, time_point now);

    // Everybody, in no order; the sum of those that have no row as "other".
    std::vector<tenant_figures> read() const;

  private:
    void forget_idle(time_point now, clock::duration long_ago);

    std::size_t const max_tenants_;
    atomic<clock::rep> idle_time_;
    std::vector<std::unique_ptr<part>> parts_;
};

}  // namespace rondo::http
