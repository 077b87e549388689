#include "rondo/http/admission.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <mutex>
#include <variant>

#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"

namespace rondo::http {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

// "250ms", "2s", or a number of milliseconds.
std::optional<clock::duration> parse_patience(std::string_view text) {
    std::uint32_t n = 0;
    auto const* const end = std::to_address(text.end());
    auto const read = std::from_chars(std::to_address(text.begin()), end, n);
    if (read.ec != std::errc{}) return std::nullopt;
    std::string_view const unit{read.ptr, end};
    if (unit.empty() || unit == "ms") return milliseconds{n};
    if (unit == "s") return std::chrono::seconds{n};
    return std::nullopt;
}

time_point deadline_of(request_head const& head, admission_settings const& s, time_point now) {
    std::optional<clock::duration> patience;
    if (!s.deadline_header.empty()) {
        patience = parse_patience(head.fields.value_or(s.deadline_header, ""));
    }
    return later(now, std::min(patience.value_or(s.deadline_default), s.deadline_max));
}

std::uint64_t cost_of_bytes(std::uint64_t bytes, admission_settings const& s) noexcept {
    return std::min(1 + bytes / std::max<std::uint64_t>(s.bytes_per_cost, 1), fair::max_cost);
}

// Without turns all are one tenant to the gate: who is refused for what that one has in line is
// refused because the line is full.
refused reason_of(fair::gate_error why, bool turns, bool deadline_passed) noexcept {
    switch (why) {
        case fair::gate_error::tenant_full:
            return turns ? refused::tenant_full : refused::full;
        case fair::gate_error::gate_full:
            return refused::full;
        case fair::gate_error::evicted:
            return turns ? refused::evicted : refused::full;
        case fair::gate_error::timed_out:
            return deadline_passed ? refused::expired : refused::waited_too_long;
        case fair::gate_error::closed:
        case fair::gate_error::stopped:
            break;
    }
    return refused::draining;
}

tenant_ledger::end end_of(refused why) noexcept {
    if (why == refused::gone) return tenant_ledger::end::gone;
    bool const late = why == refused::expired || why == refused::waited_too_long;
    return late ? tenant_ledger::end::expired : tenant_ledger::end::refused;
}

// A request in line, which leaves the ledger however its wait ends.
class in_line {
  public:
    explicit in_line(tenant_ledger::line l) noexcept : line_(l) {}
    in_line(in_line const&) = delete;
    in_line& operator=(in_line const&) = delete;
    ~in_line() {
        if (!decided_) line_.turn_away(tenant_ledger::end::gone);
    }
    tenant_ledger::line admit(clock::duration waited) noexcept {
        decided_ = true;
        line_.admit(waited);
        return line_;
    }
    void turn_away(refused why) noexcept {
        decided_ = true;
        line_.turn_away(end_of(why));
    }

  private:
    tenant_ledger::line line_;
    bool decided_ = false;
};

std::string_view default_reason(refused why) noexcept {
    switch (why) {
        case refused::tenant_full:
            return "too many of your requests are waiting";
        case refused::evicted:
            return "too many of your requests were waiting, and this one made room for another's";
        case refused::full:
            return "too many requests are waiting";
        case refused::draining:
            return "this server is being shut down";
        case refused::expired:
            return "the deadline passed before it was this request's turn";
        case refused::waited_too_long:
            return "it was not this request's turn in time";
        case refused::gone:
            break;
    }
    return "";
}

// What a request comes to by its bytes, however its handler ends: it may throw, or be stopped.
class bytes_at_end {
  public:
    bytes_at_end(exchange const& of, admission_settings const& s, admission::stay& payer) noexcept
        : of_(of), settings_(s), payer_(payer) {}
    bytes_at_end(bytes_at_end const&) = delete;
    bytes_at_end& operator=(bytes_at_end const&) = delete;
    ~bytes_at_end() {
        if (settings_.cost != cost_by::bytes) return;
        payer_.costs(cost_of_bytes(of_.received() + of_.sent(), settings_));
    }

  private:
    exchange const& of_;
    admission_settings const& settings_;
    admission::stay& payer_;
};

task<void> refuse(exchange* x, refusal_answer a) {
    x->answer().status(a.status);
    x->answer().add("content-type", "text/plain; charset=utf-8");
    if (a.retry_after) {
        x->answer().add("retry-after", static_cast<std::uint64_t>(a.retry_after->count()));
    }
    a.reason += '\n';
    (void)co_await x->send(a.reason);
}

}  // namespace

refusal_answer usual_refusal(refusal const& r) {
    refusal_answer a;
    a.reason = default_reason(r.why);
    switch (r.why) {
        case refused::tenant_full:
        case refused::evicted:
            a.status = 429;
            break;
        case refused::expired:
            a.status = 504;
            return a;
        default:
            break;
    }
    a.retry_after = std::chrono::seconds{1};
    return a;
}

// --- stay --------------------------------------------------------------------------------------

admission::stay::stay(fair::gate_permit p, tenant_ledger::line l, timer_service& time,
                      time_point came, cost_by how) noexcept
    : permit_(std::move(p)),
      line_(l),
      time_(&time),
      came_(came),
      since_(came + permit_.waited()),
      cost_(permit_.cost()),
      how_(how) {}

admission::stay::stay(stay&& other) noexcept
    : permit_(std::move(other.permit_)),
      line_(other.line_),
      time_(std::exchange(other.time_, nullptr)),
      came_(other.came_),
      since_(other.since_),
      cost_(other.cost_),
      how_(other.how_) {}

admission::stay::~stay() {
    if (time_ == nullptr) return;
    time_point const now = time_->now();
    if (how_ == cost_by::measured) {
        auto const ms = std::chrono::duration_cast<milliseconds>(now - since_).count();
        cost_ = permit_.cost() + static_cast<std::uint64_t>(std::max<milliseconds::rep>(ms, 0));
    }
    permit_.release(cost_);
    line_.leave(cost_, now - came_);
}

// --- admission ---------------------------------------------------------------------------------

fair::gate_terms<std::string> admission::terms_of(admission_settings const& s) {
    fair::gate_terms<std::string> t;
    static_cast<fair::gate_limits&>(t) = s.limits;
    if (!s.turns) {  // the one tenant that there is then is everybody: it always has the most
        t.max_in_flight_per_tenant = no_limit;
        t.max_queued_per_tenant = no_limit;
        if (t.when_full == fair::backpressure::evict_longest) {
            t.when_full = fair::backpressure::reject;
        }
    }
    for (auto const& [name, weight] : s.weights) {
        t.tenants.emplace_back(name, fair::entitlement{.weight = weight});
    }
    fair::entitlement const usual{.weight = s.default_weight};
    fair::detail::require(fair::validate(usual));
    t.entitlement_of = [usual](std::string const&) { return usual; };
    return t;
}

admission::admission(admission_settings s, std::size_t workers, std::uint64_t quantum,
                     timer_service const* time)
    : shares_(std::max<std::size_t>(workers, 1)),
      ledger_(shares_.size(), 1024, s.idle_time),
      gate_([&] {
          fair::gate_config<std::string> c;
          static_cast<fair::gate_terms<std::string>&>(c) = terms_of(s);
          c.quantum = quantum;
          c.time = time;
          return c;
      }()) {
    auto fresh = one_each(std::move(s), shares_.size());
    for (std::size_t i = 0; i < shares_.size(); ++i) shares_[i].now = std::move(fresh[i]);
}

// The same settings, with a count for each worker.
auto admission::one_each(admission_settings s, std::size_t workers)
    -> std::vector<shared_settings> {
    auto const common = std::make_shared<admission_settings const>(std::move(s));
    std::vector<shared_settings> all;
    for (std::size_t i = 0; i < workers; ++i) {
        all.emplace_back(common.get(), [common](admission_settings const*) {});
    }
    return all;
}

auto admission::settings_of(std::size_t worker) const -> shared_settings {
    share const& mine = shares_[worker % shares_.size()];
    std::lock_guard const guard{mine.lock};
    return mine.now;
}

void admission::reconfigure(admission_settings s) {
    auto fresh = one_each(std::move(s), shares_.size());
    gate_.reconfigure(terms_of(*fresh.front()));  // if this throws nothing has changed
    ledger_.idle_time(fresh.front()->idle_time);
    for (std::size_t i = 0; i < shares_.size(); ++i) {
        std::lock_guard const guard{shares_[i].lock};
        shares_[i].now.swap(fresh[i]);
    }
}

std::uint32_t admission::weight_of(std::string_view tenant) const {
    auto const s = settings();
    for (auto const& [name, weight] : s->weights) {
        if (name == tenant) return weight;
    }
    return s->default_weight;
}

task<std::expected<admission::stay, refused>> admission::admit(request r, task<void> gone) {
    using result = std::expected<stay, refused>;
    environment const& env = co_await this_environment();
    auto const s = settings_of(r.worker);
    time_point const came = env.timers().now();
    auto passed = try_pass(r, *s, env.timers(), came);
    if (passed) co_return result{std::move(*passed)};
    auto turn = line_up(std::move(r), s, came, std::move(gone));
    co_return co_await std::move(turn);
}

std::optional<admission::stay> admission::try_pass(request const& r, admission_settings const& s,
                                                   timer_service& time, time_point came) {
    auto permit = gate_.try_acquire(s.turns ? r.tenant : std::string{}, r.cost);
    if (!permit) return std::nullopt;
    tenant_ledger::line const l = ledger_.open(r.worker, r.tenant, false, came);
    return std::optional<stay>{std::in_place, std::move(*permit), l, time, came, s.cost};
}

task<std::expected<admission::stay, refused>> admission::line_up(request r, shared_settings s,
                                                                 time_point came, task<void> gone) {
    using result = std::expected<stay, refused>;
    environment const& env = co_await this_environment();
    in_line place{ledger_.open(r.worker, r.tenant, true, came)};
    time_point const patience = later(came, gate_.max_wait());
    if (r.deadline != time_point::max()) r.deadline -= s->deadline_reserve;
    time_point const until = std::min(r.deadline, patience);
    std::string key = s->turns ? std::move(r.tenant) : std::string{};
    auto turn = gate_.acquire_until(std::move(key), until, r.cost);
    auto ended = co_await when_any(std::move(turn), std::move(gone));
    if (ended.index() == 1) {
        place.turn_away(refused::gone);
        co_return result{std::unexpect, refused::gone};
    }
    auto& got = std::get<0>(ended);
    if (!got) {
        refused const why = reason_of(got.error(), s->turns, r.deadline <= patience);
        place.turn_away(why);
        co_return result{std::unexpect, why};
    }
    tenant_ledger::line const l = place.admit(got->waited());
    co_return result{std::in_place, std::move(*got), l, env.timers(), came, s->cost};
}

task<void> admission::answer(exchange* x, task<void> inner, std::string_view route, visit* note) {
    visit unread;
    visit& v = note != nullptr ? *note : unread;
    auto const s = settings_of(x->worker());
    environment const& env = co_await this_environment();
    time_point const came = env.timers().now();
    request r;
    r.tenant = tenant_of({x->head(), x->peer().address(), route}, s->tenants);
    r.cost = s->cost == cost_by::bytes ? cost_of_bytes(x->head().length, *s) : 1;
    r.worker = x->worker();
    v.tenant = r.tenant;
    std::optional<stay> inside = try_pass(r, *s, env.timers(), came);
    if (!inside) {
        r.deadline = deadline_of(x->head(), *s, came);
        auto turn = line_up(std::move(r), s, came, x->gone());
        auto let_in = co_await std::move(turn);
        if (!let_in) {
            v.waited = env.timers().now() - came;
            v.turned_away = let_in.error();
            if (let_in.error() == refused::gone) {
                x->cut();
                co_return;
            }
            refusal_answer a = s->refuse({let_in.error(), v.tenant, v.waited});
            co_await refuse(x, std::move(a));
            co_return;
        }
        inside.emplace(*std::move(let_in));
    }
    v.waited = inside->waited();
    bytes_at_end const bill{*x, *s, *inside};
    co_await std::move(inner);
}

layer admission::as_layer(std::string route) {
    return [this, name = std::move(route)](exchange* x, next inner) {
        return answer(x, inner(x), name);
    };
}

}  // namespace rondo::http
