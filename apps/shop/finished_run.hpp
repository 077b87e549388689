// finished_run.hpp: what the files of a run say, read with SQL of its own.
//
// It shares no code with the roles that write these files, so that a mistake there is not made here
// again. It may also be used while the shop runs.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

namespace rondo::shop {

struct invariant_check {
    std::string name;                     // "I1 no flavour is oversold"
    std::vector<std::string> violations;  // empty: it holds
};

// Every invariant that can be seen in the files: the ledger and the journals of screens. The error
// says which file cannot be read.
std::expected<std::vector<invariant_check>, std::string> verify(std::string const& directory);

// Everything in the ledger, charged, delivered, rejected or aborted, with reasons.
enum class report_form : std::uint8_t { text, json };
std::expected<std::string, std::string> report(std::string const& directory, report_form form);

// A look at the ledger.
struct flavour_level {
    std::string name;
    std::int64_t capacity = 0;
    std::int64_t committed = 0;
};
struct ledger_summary {
    std::int64_t delivered = 0;
    std::int64_t aborted = 0;
    std::int64_t refunded = 0;
    std::int64_t open = 0;  // prepared or committed
    std::vector<flavour_level> stock;
};
std::expected<ledger_summary, std::string> summarise(std::string const& directory);
// The number of the screen that led last, -1 if none has; from the journal of a screen.
std::int64_t last_leader(std::string const& directory, std::uint32_t screens);

}  // namespace rondo::shop
