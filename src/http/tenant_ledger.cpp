#include "rondo/http/tenant_ledger.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <mutex>
#include <unordered_set>

namespace rondo::http {

// --- wait_times --------------------------------------------------------------------------------

namespace {

constexpr std::uint64_t micros(clock::duration d) noexcept {
    auto const n = std::chrono::duration_cast<std::chrono::microseconds>(d).count();
    return n < 0 ? 0 : static_cast<std::uint64_t>(n);
}

// 0 .. 7 have classes of their own.
constexpr std::size_t class_of(std::uint64_t us) noexcept {
    if (us < 8) return static_cast<std::size_t>(us);
    auto const power = static_cast<std::size_t>(std::bit_width(us)) - 1;  // from 3
    return 8 + (power - 3) * 4 + static_cast<std::size_t>((us >> (power - 2)) & 3U);
}

// The highest of a class.
constexpr std::uint64_t top_of(std::size_t c) noexcept {
    if (c < 8) return c;
    std::size_t const power = 3 + (c - 8) / 4;
    return ((4 + (c - 8) % 4 + 1) << (power - 2)) - 1;
}

static_assert(class_of(7) == 7 && class_of(8) == 8 && class_of(9) == 8 && class_of(10) == 9);
static_assert(top_of(8) == 9 && top_of(11) == 15 && class_of(16) == 12 && top_of(12) == 19);

}  // namespace

void wait_times::record(clock::duration d) noexcept {
    ++counts_[std::min(class_of(micros(d)), classes - 1)];
}

std::uint64_t wait_times::count() const noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t const n : counts_) sum += n;
    return sum;
}

clock::duration wait_times::quantile(double q) const noexcept {
    std::uint64_t const all = count();
    if (all == 0) return {};
    auto const rank = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(all)));
    std::uint64_t seen = 0;
    for (std::size_t c = 0; c < classes; ++c) {
        seen += counts_[c];
        if (seen >= std::max<std::uint64_t>(rank, 1)) return std::chrono::microseconds{top_of(c)};
    }
    return {};
}

void wait_times::add(wait_times const& other) noexcept {
    for (std::size_t c = 0; c < classes; ++c) counts_[c] += other.counts_[c];
}

wait_times wait_times::since(wait_times const& before) const noexcept {
    wait_times d;
    for (std::size_t c = 0; c < classes; ++c) d.counts_[c] = counts_[c] - before.counts_[c];
    return d;
}

// --- the ledger --------------------------------------------------------------------------------

struct tenant_ledger::row {
    tenant_figures figures;
    time_point used{};

    bool idle() const noexcept { return figures.in_flight == 0 && figures.queued == 0; }
};

struct tenant_ledger::part {
    struct hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view s) const noexcept {
            return std::hash<std::string_view>{}(s);
        }
    };

    mutable short_lock lock;
    std::unordered_map<std::string, row, hash, std::equal_to<>> rows;
    row other;
    time_point swept{};
};

tenant_ledger::tenant_ledger(std::size_t workers, std::size_t max_tenants,
                             clock::duration idle_time)
    : max_tenants_(max_tenants), idle_time_(idle_time.count()) {
    for (std::size_t i = 0; i < workers; ++i) {
        parts_.push_back(std::make_unique<part>());
        parts_.back()->other.figures.tenant = "other";
    }
}

tenant_ledger::~tenant_ledger() = default;

tenant_ledger::line tenant_ledger::open(std::size_t worker, std::string_view tenant, bool in_line,
                                        time_point now) {
    part& p = *parts_[worker % parts_.size()];
    clock::duration const long_ago{idle_time_.load(std::memory_order_relaxed)};
    std::unique_lock guard{p.lock};
    auto at = p.rows.find(tenant);
    if (at == p.rows.end() && p.rows.size() >= max_tenants_ && now - p.swept >= long_ago) {
        p.swept = now;
        guard.unlock();
        forget_idle(now, long_ago);
        guard.lock();
        at = p.rows.find(tenant);
    }
    if (at == p.rows.end() && p.rows.size() < max_tenants_) {
        at = p.rows.emplace(std::string{tenant}, row{}).first;
        at->second.figures.tenant = tenant;
    }
    row& r = at == p.rows.end() ? p.other : at->second;
    r.used = now;
    if (in_line) {
        ++r.figures.queued;
    } else {
        ++r.figures.in_flight;
        ++r.figures.admitted;
        r.figures.waits.record({});
    }
    return {p, r};
}

// At all workers or at none: a sum that falls looks like a tenant that began anew. Only who has no
// lock takes all of them, in the order of the workers.
void tenant_ledger::forget_idle(time_point now, clock::duration long_ago) {
    std::vector<std::unique_lock<short_lock>> held;
    held.reserve(parts_.size());
    std::unordered_set<std::string_view> needed;
    for (auto const& p : parts_) {
        held.emplace_back(p->lock);
        p->swept = now;  // for all: whoever else is full need not do it again
        for (auto const& [name, r] : p->rows) {
            if (!r.idle() || now - r.used < long_ago) needed.insert(name);
        }
    }
    for (auto const& p : parts_) {
        std::erase_if(p->rows, [&](auto const& r) { return !needed.contains(r.first); });
    }
}

void tenant_ledger::line::admit(clock::duration waited) noexcept {
    std::lock_guard const guard{part_->lock};
    --row_->figures.queued;
    ++row_->figures.in_flight;
    ++row_->figures.admitted;
    row_->figures.waits.record(waited);
}

void tenant_ledger::line::leave(std::uint64_t cost, clock::duration took) noexcept {
    std::lock_guard const guard{part_->lock};
    --row_->figures.in_flight;
    row_->figures.cost += cost;
    row_->figures.took.record(took);
}

void tenant_ledger::line::turn_away(end how) noexcept {
    std::lock_guard const guard{part_->lock};
    --row_->figures.queued;
    switch (how) {
        case end::refused:
            ++row_->figures.refused;
            break;
        case end::expired:
            ++row_->figures.expired;
            break;
        case end::gone:
            ++row_->figures.gone;
            break;
    }
}

std::vector<tenant_figures> tenant_ledger::read() const {
    std::unordered_map<std::string, tenant_figures> sum;
    auto const add = [&](tenant_figures const& f) {
        auto const [at, fresh] = sum.try_emplace(f.tenant, f);
        if (fresh) return;
        tenant_figures& to = at->second;
        to.in_flight += f.in_flight;
        to.queued += f.queued;
        to.admitted += f.admitted;
        to.refused += f.refused;
        to.expired += f.expired;
        to.gone += f.gone;
        to.cost += f.cost;
        to.waits.add(f.waits);
        to.took.add(f.took);
    };
    for (auto const& p : parts_) {
        std::vector<tenant_figures> rows;
        {
            std::lock_guard const guard{p->lock};
            rows.reserve(p->rows.size() + 1);
            for (auto const& [name, r] : p->rows) rows.push_back(r.figures);
            rows.push_back(p->other.figures);
        }
        for (tenant_figures const& f : rows) add(f);
    }
    std::vector<tenant_figures> all;
    all.reserve(sum.size());
    for (auto& [name, f] : sum) {
        bool const empty =
            f.tenant == "other" &&
            f.admitted + f.refused + f.expired + f.gone + f.in_flight + f.queued == 0;
        if (!empty) all.push_back(std::move(f));
    }
    return all;
}

}  // namespace rondo::http
