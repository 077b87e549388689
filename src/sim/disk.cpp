// A file is two images: what programs see, and what is sure to be there after a power failure; and
// the sectors in which they may differ. A power failure makes one of the two, sector by sector.
#include "rondo/sim/disk.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "rondo/core/assert.hpp"

namespace rondo::sim {

struct disk::content {
    std::vector<std::byte> seen;
    std::vector<std::byte> durable;
    std::set<std::size_t> dirty;     // sectors written since the last sync
    std::set<std::size_t> doubtful;  // covered by a sync that failed, and not written since
    bool resized = false;            // since the last sync, which may have failed
    std::size_t shortest = uncut;    // that it was cut to since the last sync that did not fail

    static constexpr std::size_t uncut = std::numeric_limits<std::size_t>::max();
};

disk::disk(random_source random, disk_options chosen, std::function<void()> failed)
    : random_(random), options_(chosen), failed_(std::move(failed)) {
    RONDO_ASSERT(chosen.sector > 0, "a sector has bytes");
}

// --- directory ---

std::expected<disk::file, disk_error> disk::open(std::string const& name, make if_absent) {
    if (!on_) return std::unexpected{disk_error::off};
    if (!names_.contains(name)) {
        if (if_absent == make::no) return std::unexpected{disk_error::no_such_file};
        names_[name] = std::make_shared<content>();
        doubtful_names_.erase(name);
    }
    return file{*this, name, names_[name]};
}

std::vector<std::string> disk::names() const {
    std::vector<std::string> all;
    for (auto const& [name, c] : names_) all.push_back(name);
    return all;
}

std::expected<void, disk_error> disk::remove(std::string const& name) {
    if (!on_) return std::unexpected{disk_error::off};
    if (!names_.contains(name)) return std::unexpected{disk_error::no_such_file};
    bool const last = fails_now();
    names_.erase(name);
    doubtful_names_.erase(name);
    if (durable_names_.contains(name)) removed_.insert(name);
    if (!last) return {};
    cut_power();
    return std::unexpected{disk_error::off};
}

std::expected<void, disk_error> disk::sync_directory() {
    if (!on_) return std::unexpected{disk_error::off};
    bool const last = fails_now();
    bool const fails = !last && sync_fails();
    if (fails) {
        doubtful_names_ = changed_names();
        return std::unexpected{disk_error::sync_failed};
    }
    if (!last || random_.chance(0.5)) {
        for (std::string const& name : changed_names()) cover_name(name);
    }
    if (!last) return {};
    cut_power();
    return std::unexpected{disk_error::off};
}

std::set<std::string> disk::changed_names() const {
    std::set<std::string> changed;
    auto const differs = [](directory const& from, std::string const& name, auto const& c) {
        auto const at = from.find(name);
        return at == from.end() || at->second != c;
    };
    for (auto const& [name, c] : names_) {
        if (differs(durable_names_, name, c)) changed.insert(name);
    }
    for (auto const& [name, c] : durable_names_) {
        if (differs(names_, name, c)) changed.insert(name);
    }
    return changed;
}

void disk::cover_name(std::string const& name) {
    if (doubtful_names_.contains(name)) return;
    removed_.erase(name);
    auto const now = names_.find(name);
    if (now != names_.end()) {
        durable_names_[name] = now->second;
    } else {
        durable_names_.erase(name);
    }
}

// --- files ---

std::expected<std::size_t, disk_error> disk::file::read(std::uint64_t offset,
                                                        std::span<std::byte> to) const {
    if (dead()) return std::unexpected{disk_error::off};
    std::vector<std::byte> const& all = content_->seen;
    if (offset >= all.size()) return 0;
    std::size_t const length = std::min<std::uint64_t>(to.size(), all.size() - offset);
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(offset), length, to.begin());
    return length;
}

std::expected<void, disk_error> disk::file::write(std::uint64_t offset,
                                                  std::span<std::byte const> bytes) const {
    if (dead()) return std::unexpected{disk_error::off};
    RONDO_ASSERT(bytes.size() <= std::numeric_limits<std::uint64_t>::max() - offset,
                 "a file ends at an offset");
    ++disk_->counts_.writes;
    std::vector<std::byte>& all = content_->seen;
    std::uint64_t const old_end = all.size();
    std::uint64_t const end = offset + bytes.size();
    if (end > old_end) {
        all.resize(end);
        content_->resized = true;
    }
    std::ranges::copy(bytes, all.begin() + static_cast<std::ptrdiff_t>(offset));
    std::size_t const sector = disk_->options_.sector;
    for (std::size_t s = std::min(offset, old_end) / sector; s * sector < end; ++s) {
        content_->dirty.insert(s);
        content_->doubtful.erase(s);
    }
    if (!disk_->fails_now()) return {};
    disk_->cut_power();
    return std::unexpected{disk_error::off};
}

std::expected<void, disk_error> disk::file::truncate(std::uint64_t length) const {
    if (dead()) return std::unexpected{disk_error::off};
    std::uint64_t const old = content_->seen.size();
    content_->seen.resize(length);
    content_->shortest = std::min<std::uint64_t>(content_->shortest, length);
    if (length != old) content_->resized = true;
    std::size_t const sector = disk_->options_.sector;
    for (std::size_t s = std::min(length, old) / sector; s * sector < std::max(length, old); ++s) {
        content_->dirty.insert(s);
    }
    if (!disk_->fails_now()) return {};
    disk_->cut_power();
    return std::unexpected{disk_error::off};
}

std::expected<std::uint64_t, disk_error> disk::file::size() const {
    if (dead()) return std::unexpected{disk_error::off};
    return content_->seen.size();
}

std::expected<void, disk_error> disk::file::sync() const {
    if (dead()) return std::unexpected{disk_error::off};
    bool const last = disk_->fails_now();
    bool const fails = !last && disk_->sync_fails();
    auto const at = disk_->names_.find(name_);
    bool const named = at != disk_->names_.end() && at->second == content_;
    if (fails) {
        content_->doubtful.merge(content_->dirty);
        content_->dirty.clear();
        content_->resized = false;
        if (named && disk_->changed_names().contains(name_)) disk_->doubtful_names_.insert(name_);
        return std::unexpected{disk_error::sync_failed};
    }
    if (!last || disk_->random_.chance(0.5)) {
        disk_->cover(*content_);
        if (named) disk_->cover_name(name_);
    }
    if (!last) return {};
    disk_->cut_power();
    return std::unexpected{disk_error::off};
}

bool disk::sync_fails() noexcept {
    ++counts_.syncs;
    bool const fails = random_.chance(options_.sync_failure);
    if (fails) ++counts_.failed_syncs;
    return fails;
}

// The bytes of the sectors that were written since, and the length if it has changed since. One
// that is in doubt is sure as far as something was written again.
void disk::cover(content& c) {
    if (c.resized) c.durable.resize(c.seen.size());
    c.resized = false;
    // Also if a sync failed after the cut: what is covered now is beyond it, and stays.
    c.shortest = content::uncut;
    for (std::size_t const s : c.dirty) {
        std::size_t const begin = s * options_.sector;
        if (begin >= c.seen.size()) continue;
        std::size_t const length = std::min(options_.sector, c.seen.size() - begin);
        c.durable.resize(std::max(c.durable.size(), begin + length));
        std::copy_n(c.seen.begin() + static_cast<std::ptrdiff_t>(begin), length,
                    c.durable.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    c.dirty.clear();
}

// --- power ---

bool disk::fails_now() noexcept {
    if (until_failure_ == 0) return false;
    --until_failure_;
    return until_failure_ == 0;
}

void disk::cut_power() {
    power_off();
    failed_();
}

void disk::power_off() {
    if (!std::exchange(on_, false)) return;
    ++power_;
    ++counts_.power_failures;
    until_failure_ = 0;
    settle_names();
    for (auto const& [name, c] : names_) settle(*c);
}

// Each name that differs is as before or as now; nothing says that changes are kept in order.
void disk::settle_names() {
    for (std::string const& name : changed_names()) {
        bool const undone = random_.chance(0.5);
        bool const made_anew = !undone && removed_.contains(name) && names_.contains(name);
        if (made_anew && random_.chance(0.5)) names_.erase(name);  // only removed
        if (!undone) continue;
        auto const before = durable_names_.find(name);
        if (before == durable_names_.end()) {
            names_.erase(name);
            continue;
        }
        if (!names_.contains(name)) ++counts_.removals_undone;
        names_[name] = before->second;
    }
    durable_names_ = names_;
    doubtful_names_.clear();
    removed_.clear();
}

void disk::settle(content& c) {
    std::size_t const now = c.seen.size();
    bool const grew = c.shortest < std::min(c.durable.size(), now);
    if (grew && random_.chance(0.5)) c.durable.resize(c.shortest);  // the cut was kept
    std::size_t const before = c.durable.size();
    std::size_t length = random_.chance(0.5) ? before : now;
    // Growing is writing, block by block; to be cut short is one change.
    if (now > before && random_.chance(0.3)) length = before + random_.below(now - before + 1);
    std::vector<std::byte> result = c.durable;
    bool const garbage = random_.chance(0.5);
    while (result.size() < length) {
        result.push_back(garbage ? static_cast<std::byte>(random_.below(256)) : std::byte{0});
    }
    result.resize(length);
    c.dirty.merge(c.doubtful);
    for (std::size_t const s : c.dirty) settle_sector(c, s, result);
    c.dirty.clear();
    c.doubtful.clear();
    c.resized = false;
    c.shortest = content::uncut;
    c.seen = result;
    c.durable = std::move(result);
}

void disk::settle_sector(content const& c, std::size_t sector, std::vector<std::byte>& result) {
    std::size_t const begin = sector * options_.sector;
    std::size_t const end = std::min({begin + options_.sector, result.size(), c.seen.size()});
    if (begin >= end) return;
    std::size_t from = begin;
    std::size_t to = end;
    if (random_.chance(options_.tearing)) {
        ++counts_.sectors_torn;
        std::size_t const tear = begin + random_.below(end - begin + 1);
        (random_.chance(0.5) ? from : to) = tear;
    } else if (random_.chance(0.5)) {
        ++counts_.sectors_lost;
        return;
    }
    std::copy(c.seen.begin() + static_cast<std::ptrdiff_t>(from),
              c.seen.begin() + static_cast<std::ptrdiff_t>(to),
              result.begin() + static_cast<std::ptrdiff_t>(from));
}

}  // namespace rondo::sim
