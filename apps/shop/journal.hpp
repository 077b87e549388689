// journal.hpp: what a screen remembers over restarts: each step of an order, before it is taken.
//
// Steps          read -> prepared -> ordered -> ready -> committed -> cup -> done
//                (or done from anywhere, with how it ended). `ordered` may come again, with another
//                attempt, until one is ready.
// Identity       a file has a journal id from the first time it is opened; with the number of a
//                line that is the order's name everywhere. The digest of each line is kept: one
//                that has changed is an error, those that were appended are new orders.
// Left behind    an order that was begun, and whose line the file has no more as it was read: it
//                has to be ended without knowing what it was.
// Storage        a failure is final, as in cluster/database.hpp: end the process.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages.hpp"
#include "rondo/cluster/database.hpp"
#include "rondo/cluster/election.hpp"

namespace rondo::shop {

enum class step : std::uint8_t { read, prepared, ordered, ready, committed, cup, done };

char const* to_text(step s) noexcept;

struct journalled {
    step at = step::read;
    std::uint64_t attempt = 0;
    std::uint32_t robot = 0;
    std::vector<cluster::take> takes;  // of the cup
    std::string outcome;               // when it is done

    friend bool operator==(journalled const&, journalled const&) = default;
};

// The highest epoch, on the disk of a screen or a robot.
class durable_epoch final : public cluster::epoch_store {
  public:
    // `fail` ends the process, when it cannot be saved.
    durable_epoch(cluster::database& db, std::function<void(std::string const&)> fail);

    cluster::epoch load() override;
    void save(cluster::epoch highest) override;

  private:
    cluster::database& database_;
    std::function<void(std::string const&)> fail_;
};

class journal {
  public:
    // `id` is what the file is called by if it is new.
    static std::expected<journal, std::string> open(std::string const& database_file,
                                                    std::string const& orders_file,
                                                    std::string const& id,
                                                    char const* vfs = nullptr);

    std::string const& id() const noexcept { return id_; }

    // The state of a line, which is new or was seen before with the same text.
    enum class refused : std::uint8_t { changed };
    std::expected<journalled, refused> line(std::uint32_t number, std::string_view text);

    // An order that has not come to its end.
    struct open_line {
        std::string journal;  // the id of its file
        std::uint32_t number = 0;
        journalled state;
    };
    // Those of other files, and those of this one that are not among its lines as they were read.
    std::vector<open_line> left_behind(std::span<order_line const> lines);
    // Whether the order is one of its lines, of whatever file. If it cannot be read: yes.
    bool knows(std::uint32_t screen, std::string_view oid);

    // Writes a step; it is durable when this returns, unless failed().
    void write(std::uint32_t line, journalled const& now) { write({id_, line, now}); }
    void write(open_line const& now);
    // A cup that nobody will have; written down once.
    void write_waste(std::string_view oid, std::uint64_t attempt, std::string_view reason);

    cluster::database& storage() noexcept { return database_; }
    bool failed() const noexcept { return database_.failed(); }
    std::string const& failure() const noexcept { return database_.failure(); }

  private:
    journal(cluster::database db, std::string file)
        : database_(std::move(db)), file_(std::move(file)) {}

    cluster::database database_;
    std::string file_;
    std::string id_;
};

}  // namespace rondo::shop
