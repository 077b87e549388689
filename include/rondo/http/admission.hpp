// admission.hpp: a layer in which requests wait their turn, tenant by tenant.
//
//   http::admission_settings s;
//   s.limits.max_in_flight = 32;
//   s.tenants.key = {*http::parse_tenant_key("header:x-tenant"), ...};
//   http::admission turns{s, rt.workers()};
//   options.layers.push_back(turns.as_layer());
//
// Turns          at most limits.max_in_flight requests are inside; the others wait as fair::gate
//                says, of which this is a use. For a request that finds room workers meet at one
//                atomic operation; settings and ledger each worker has for itself.
// Tenants        are named by tenants.hpp. With `turns` off requests wait first in, first out,
//                whosever they are: no limit of a tenant holds, nobody is refused as tenant_full or
//                evicted but as full, and only the ledger knows whose they are.
// Cost           fixed: 1. bytes: 1 and one for each bytes_per_cost of the bodies of request and
//                answer: at first of the length that the request says, at its end of what was read
//                and sent. measured: 1, and one more for each millisecond that it took: known, and
//                charged, at its end.
// Deadline       of a request: what its field says (deadline_header: "250ms", "2s", or a number of
//                milliseconds), at most deadline_max; deadline_default without. It is about the
//                wait: who has not been let in by then is told so at that moment, and never gets to
//                the handler. Who has been may take as long as the handler does. deadline_reserve
//                is what an answer usually takes: who is still in line so long before its
//                deadline would be answered too late, and is told instead, at that moment. Who
//                finds room is let in, as it may take less.
// Refusals       refuse() makes an answer of the reason. By default: 429 tenant_full and evicted,
//                503 full, draining and waited_too_long, all with Retry-After; 504 expired.
// Gone           a client that closes its connection while it waits, or its side of it, leaves the
//                line, and the connection ends.
// Thread safety  everything but the destructor; of reconfigure() one call at a time.
// Lifetime       longer than the servers that use it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rondo/core/short_lock.hpp"
#include "rondo/core/task.hpp"
#include "rondo/fair/gate.hpp"
#include "rondo/http/server.hpp"
#include "rondo/http/tenant_ledger.hpp"
#include "rondo/http/tenants.hpp"

namespace rondo::http {

enum class refused : std::uint8_t {
    tenant_full,      // its tenant has as many in line as it may, or the most of all
    evicted,          // it was in line; its tenant had the most, and another needed the place
    full,             // as many as may are in line
    draining,         // nobody is let in any more
    expired,          // its deadline passed
    waited_too_long,  // limits.max_wait passed
    gone,             // who asked has left: there is nobody to tell
};

struct refusal {
    refused why;
    std::string_view tenant;
    clock::duration waited;
};

// What a client is told.
struct refusal_answer {
    int status = 503;
    std::optional<std::chrono::seconds> retry_after = std::nullopt;
    std::string reason = {};
};

refusal_answer usual_refusal(refusal const& r);

enum class cost_by : std::uint8_t { fixed, bytes, measured };

struct admission_settings {
    fair::gate_limits limits = {};
    tenant_rules tenants = {};
    std::uint32_t default_weight = 1;
    std::vector<std::pair<std::string, std::uint32_t>> weights = {};
    bool turns = true;
    cost_by cost = cost_by::fixed;
    std::uint64_t bytes_per_cost = std::uint64_t{16} * 1024;
    std::string deadline_header = {};  // "": none
    clock::duration deadline_default = clock::duration::max();
    clock::duration deadline_max = clock::duration::max();
    clock::duration deadline_reserve{};
    // A tenant that has had no request for so long may leave the ledger.
    clock::duration idle_time = std::chrono::minutes{10};
    std::function<refusal_answer(refusal const&)> refuse = usual_refusal;
};

class admission {
  public:
    // What became of one request, for a log.
    struct visit {
        std::string tenant = {};
        clock::duration waited{};
        std::optional<refused> turned_away = {};
    };

    // Throws as fair::gate does. `quantum`: what a tenant of weight 1 may have let in in a round.
    explicit admission(admission_settings s, std::size_t workers = 1, std::uint64_t quantum = 8,
                       timer_service const* time = nullptr);

    // Other settings from the next request on; for who waits what fair::gate::reconfigure() says.
    void reconfigure(admission_settings s);

    // Has `inner` answer when it is the request's turn; or answers that it cannot, and `inner` does
    // not begin. The route is for tenants that are named by it.
    task<void> answer(exchange* x, task<void> inner, std::string_view route = {},
                      visit* note = nullptr);
    layer as_layer(std::string route = {});

    // The same without an exchange, for other protocols.
    struct request {
        std::string tenant;
        std::uint64_t cost = 1;
        time_point deadline = time_point::max();
        std::size_t worker = 0;
    };
    class stay;
    // `gone` ends when whoever asked is not there any more; it is begun if there is a line.
    task<std::expected<stay, refused>> admit(request r, task<void> gone);

    // Nobody is let in any more but those in line.
    void drain() noexcept { gate_.close_drain(); }
    // Nor are they: who is in line is told at once that this ends. Who is inside stays.
    void close() noexcept { gate_.close_immediate(); }

    fair::gate_stats stats() noexcept { return gate_.stats(); }
    std::vector<tenant_figures> tenants() const { return ledger_.read(); }
    std::uint32_t weight_of(std::string_view tenant) const;
    std::shared_ptr<admission_settings const> settings() const { return settings_of(0); }

  private:
    using shared_settings = std::shared_ptr<admission_settings const>;
    // The settings as a worker has them: with a lock and a count of its own, so that a request
    // touches nothing for them that another worker's does.
    struct alignas(64) share {
        mutable short_lock lock;
        shared_settings now;
    };
    static std::vector<shared_settings> one_each(admission_settings s, std::size_t workers);
    shared_settings settings_of(std::size_t worker) const;
    static fair::gate_terms<std::string> terms_of(admission_settings const& s);
    // If there is room and no line.
    std::optional<stay> try_pass(request const& r, admission_settings const& s, timer_service& time,
                                 time_point came);
    task<std::expected<stay, refused>> line_up(request r, shared_settings s, time_point came,
                                               task<void> gone);

    std::vector<share> shares_;  // by worker
    tenant_ledger ledger_;
    fair::gate<std::string> gate_;
};

// A request that was let in, until it is destroyed.
class [[nodiscard("who is let in leaves when this is dropped")]] admission::stay {
  public:
    stay(fair::gate_permit p, tenant_ledger::line l, timer_service& time, time_point came,
         cost_by how) noexcept;
    stay(stay&& other) noexcept;
    stay& operator=(stay&&) = delete;
    ~stay();

    clock::duration waited() const noexcept { return permit_.waited(); }
    // What it has come to, unless that is measured.
    void costs(std::uint64_t cost) noexcept { cost_ = cost; }

  private:
    fair::gate_permit permit_;
    tenant_ledger::line line_;
    timer_service* time_;  // null once it was moved from
    time_point came_;
    time_point since_;
    std::uint64_t cost_;
    cost_by how_;
};

}  // namespace rondo::http
