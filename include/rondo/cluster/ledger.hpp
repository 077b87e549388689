// ledger.hpp: two-phase commit with a durable ledger: what was promised, taken and paid back.
//
//   auto opened = cluster::ledger::open("ledger.db", {{"lemon", 5000}});
//   auto const e = opened->prepare("s1-1", {{{"lemon", 250}}, "4242", 300}, roll, now, now + 60s);
//   if (!e) end_the_process(opened->failure());      // nothing may be replied
//   reply(*e);
//
// An entry has a key and stands somewhere on one of these ways:
//
//   PREPARED -> COMMITTED -> DELIVERED        PREPARED -> ABORTED
//                         -> REFUNDED         ABORTED                (refused at once)
//
// Guarantee      every operation gives the entry as it stands afterwards, and that is on the disk
//                when it returns. A repetition changes nothing and gives the same. What does not
//                fit the way of an entry changes nothing and gives the entry as it is.
// Commit         is one transaction: still PREPARED, not expired, the takes are what was prepared,
//                and of each resource there is enough: committed + amount <= capacity. Otherwise
//                the entry is ABORTED, with the reason. So no resource is ever oversold, however
//                many believe that there is enough of it.
// Refund         does not give the resources back: what was made is gone.
// Storage        a failure ends the ledger: every operation gives storage_failed from then on, and
//                the process must end without a reply (database.hpp says why).
// History        every step is kept in the table `steps`, in order, with its time and reason.
// Thread safety  none.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/cluster/database.hpp"

namespace rondo::cluster {

// So much of a resource.
struct amount_of {
    std::string resource;
    std::int64_t amount = 0;

    friend bool operator==(amount_of const&, amount_of const&) = default;
};

// The same, and by which token it was taken.
struct take {
    std::string resource;
    std::int64_t amount = 0;
    std::uint64_t generation = 0;
    std::uint64_t hop = 0;

    friend bool operator==(take const&, take const&) = default;
};

enum class standing : std::uint8_t { unknown, prepared, committed, delivered, refunded, aborted };

// "PREPARED"
char const* to_text(standing s) noexcept;

struct ledger_entry {
    standing at = standing::unknown;
    std::string reason;  // why it is refunded or aborted
    std::uint64_t authorisation = 0;
    std::chrono::milliseconds expires{};
    std::uint64_t attempt = 0;  // that was committed

    friend bool operator==(ledger_entry const&, ledger_entry const&) = default;
};

struct proposal {
    std::vector<amount_of> items;
    std::string card;
    std::int64_t price = 0;
};

struct resource_level {
    std::string resource;
    std::int64_t capacity = 0;
    std::int64_t committed = 0;

    friend bool operator==(resource_level const&, resource_level const&) = default;
};

struct storage_failed {};

// Why there is no ledger.
struct cannot_open {
    enum class because : std::uint8_t {
        storage,   // the file cannot be read or written
        capacity,  // more was sold of a resource than it is to have
    };
    because cause;
    std::string text;  // for a person
};

// Times are since the beginning of 1970: they outlive the process.
class ledger {
  public:
    using moment = std::chrono::milliseconds;
    using result = std::expected<ledger_entry, storage_failed>;
    // Why this one is refused, if it is.
    using judgement = std::function<std::optional<std::string>()>;

    // The capacity of a resource may change between two runs, but not below what was sold.
    static std::expected<ledger, cannot_open> open(std::string const& file,
                                                   std::span<amount_of const> capacities,
                                                   char const* vfs = nullptr);

    // `judge` is asked once for each key that is new, and its answer is kept.
    result prepare(std::string_view key, proposal const& asked, judgement const& judge, moment now,
                   moment expires);
    result commit(std::string_view key, std::uint64_t attempt, std::span<take const> takes,
                  moment now);
    // Also of a key that was never prepared: it cannot be any more.
    result abort(std::string_view key, std::string_view reason, moment now);
    result deliver(std::string_view key, std::uint64_t attempt, moment now);
    result refund(std::string_view key, std::string_view reason, moment now);
    result look(std::string_view key);

    std::expected<std::vector<resource_level>, storage_failed> levels();
    // Keys that are prepared or committed, the oldest first.
    std::expected<std::vector<std::string>, storage_failed> unresolved(std::size_t at_most);

    bool failed() const noexcept { return database_.failed(); }
    std::string const& failure() const noexcept { return database_.failure(); }

  private:
    explicit ledger(database db) : database_(std::move(db)) {}

    void make_tables();
    std::optional<std::string> set_capacities(std::span<amount_of const> capacities);
    ledger_entry read(std::string_view key);
    void step(std::string_view key, ledger_entry const& e, moment now);
    std::optional<std::string> why_not(std::string_view key, std::span<take const> takes);
    result over(transaction& change, ledger_entry e);

    database database_;
};

}  // namespace rondo::cluster
