// disk.hpp: the disk of a simulated machine: it forgets what was not synced.
//
// Guarantee      what was written is read back until the power fails. What was synced, without an
//                error, is there after every power failure.
// Power failure  each sector that was written since its file was last synced is, drawn from the
//                seed, as it was before, as it was written, or torn: a part of it new, the rest
//                old. A file that grew has its old length, its new one or one in between; sectors
//                of it that were not kept hold zeros or garbage. One that was cut short has its old
//                length or its new one. A file that was made is there or not, one that was removed
//                is gone or back. Of two changes that follow each other the first one may be all
//                that is kept: a file that was cut short and then grew may be as after the cut, one
//                that was removed and made anew may be gone.
// Sync           of a file covers its bytes, its length and its name; sync_directory() the names of
//                all files. One that fails says so, and what it should have covered is in doubt for
//                good: a later sync that succeeds does not cover it (as on Linux, where the page
//                cache takes it for written). Only what is written again is covered again: a
//                length that changes again, a name that is made or removed again.
// Handles        a file that was opened before a power failure is dead after it: every call answers
//                disk_error::off. So does every call while the power is off.
// fail_after(n)  cuts the power in the middle of the n-th change from now (1: the next; 0: not at
//                all), so that it happens inside a sequence of writes that takes one turn.
// Thread safety  none, as of the world.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "rondo/sim/random.hpp"

namespace rondo::sim {

struct disk_options {
    std::size_t sector = 512;
    double sync_failure = 0;  // how likely a sync is to fail
    double tearing = 0.1;     // how likely a sector in doubt is to be torn
};

enum class disk_error : std::uint8_t {
    off,           // no power, or a handle of before it failed
    no_such_file,  // open() was not to make one
    sync_failed,
};

struct disk_counts {
    std::uint64_t writes = 0;
    std::uint64_t syncs = 0;
    std::uint64_t failed_syncs = 0;
    std::uint64_t power_failures = 0;
    std::uint64_t sectors_lost = 0;  // in power failures
    std::uint64_t sectors_torn = 0;
    std::uint64_t removals_undone = 0;
};

class disk {
    struct content;

  public:
    class file {
      public:
        // Reads what there is of it; says how many bytes.
        std::expected<std::size_t, disk_error> read(std::uint64_t offset,
                                                    std::span<std::byte> to) const;
        // Past the end: what is in between reads as zeros.
        std::expected<void, disk_error> write(std::uint64_t offset,
                                              std::span<std::byte const> bytes) const;
        std::expected<void, disk_error> truncate(std::uint64_t length) const;
        std::expected<std::uint64_t, disk_error> size() const;
        std::expected<void, disk_error> sync() const;

      private:
        friend disk;
        file(disk& d, std::string name, std::shared_ptr<content> c)
            : disk_(&d), power_(d.power_), name_(std::move(name)), content_(std::move(c)) {}
        bool dead() const noexcept { return !disk_->on_ || power_ != disk_->power_; }

        disk* disk_;
        std::uint64_t power_;
        std::string name_;
        std::shared_ptr<content> content_;
    };

    // `failed` is called when fail_after() has cut the power.
    disk(random_source random, disk_options chosen, std::function<void()> failed);
    disk(disk const&) = delete;
    disk& operator=(disk const&) = delete;

    enum class make : bool { no, yes };
    std::expected<file, disk_error> open(std::string const& name, make if_absent);
    bool exists(std::string const& name) const { return on_ && names_.contains(name); }
    std::vector<std::string> names() const;
    std::expected<void, disk_error> remove(std::string const& name);
    std::expected<void, disk_error> sync_directory();

    bool is_on() const noexcept { return on_; }
    std::size_t sector() const noexcept { return options_.sector; }
    void power_off();
    void power_on() noexcept { on_ = true; }
    void fail_after(std::uint64_t changes) noexcept { until_failure_ = changes; }
    // What syncs do from now on.
    void set_sync_failure(double probability) noexcept { options_.sync_failure = probability; }

    disk_counts const& counts() const noexcept { return counts_; }

  private:
    using directory = std::map<std::string, std::shared_ptr<content>>;

    // Counts down to the failure that was asked for; true when this change is the one.
    bool fails_now() noexcept;
    void cut_power();
    bool sync_fails() noexcept;
    void cover(content& c);
    void cover_name(std::string const& name);
    // Those that are not as they are sure to be.
    std::set<std::string> changed_names() const;
    void settle(content& c);
    void settle_sector(content const& c, std::size_t sector, std::vector<std::byte>& result);
    void settle_names();

    random_source random_;
    disk_options options_;
    std::function<void()> failed_;
    bool on_ = false;
    std::uint64_t power_ = 0;
    std::uint64_t until_failure_ = 0;
    directory names_;
    directory durable_names_;
    std::set<std::string> doubtful_names_;  // left by a sync that failed, and not changed since
    std::set<std::string> removed_;         // durable names that were, and that may be there anew
    disk_counts counts_;
};

}  // namespace rondo::sim
