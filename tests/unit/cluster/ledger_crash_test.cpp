// What was replied is in the ledger: after SIGKILL of a real process, and after power failures,
// torn writes and failing syncs in the simulator.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "rondo/cluster/ledger.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/seeds.hpp"
#include "rondo/sim_sqlite/vfs.hpp"
#include "support/child_process.hpp"

namespace {

using namespace std::chrono_literals;
using namespace rondo::cluster;
using rondo::task;
namespace sim = rondo::sim;

constexpr std::int64_t capacity = 400;
std::vector<amount_of> const stock{{"mint", capacity}};

std::optional<std::string> accept() { return std::nullopt; }

struct reply {
    int number = 0;
    ledger_entry entry;
};

// One order through its whole life; false if the ledger failed.
template <class Replied>
bool serve_one(ledger& book, int number, ledger::moment now, Replied const& replied) {
    std::string const key = std::to_string(number);
    std::int64_t const grams = 1 + number % 7;
    auto const told = [&](ledger::result const& r) {
        if (r) replied(reply{number, *r});
        return r.has_value();
    };
    if (!told(book.prepare(key, {{{"mint", grams}}, "1", grams}, accept, now, now + 60s))) {
        return false;
    }
    std::vector<take> const takes{{"mint", grams, 1, static_cast<std::uint64_t>(number)}};
    if (number % 5 == 0) return told(book.abort(key, "no", now));
    if (!told(book.commit(key, 1, takes, now))) return false;
    if (number % 3 == 0) return told(book.refund(key, "lost", now));
    return told(book.deliver(key, 1, now));
}

// The last reply of each key is what the ledger says, or a later step of its way.
void check(ledger& book, std::map<int, ledger_entry> const& replied) {
    for (auto const& [number, entry] : replied) {
        ledger_entry const now = book.look(std::to_string(number)).value();
        EXPECT_GE(static_cast<int>(now.at), static_cast<int>(entry.at)) << "order " << number;
        if (entry.at != standing::prepared && entry.at != standing::committed) {
            EXPECT_EQ(now, entry) << "order " << number;
        }
    }
    resource_level const mint = book.levels()->front();
    EXPECT_LE(mint.committed, capacity);
}

std::int64_t sum_of_takes(std::string const& file, char const* vfs) {
    database db = database::open(file, vfs).value();
    return db.number("SELECT coalesce(sum(amount), 0) FROM takes").value_or(-1);
}

[[noreturn]] void serve_until_killed(std::string const& file, int first, int out) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto opened = ledger::open(file, stock);
    if (!opened) _exit(1);
    for (int number = first;; ++number) {
        bool const served = serve_one(*opened, number, 12h, [out](reply const& r) {
            int const line[2] = {r.number, static_cast<int>(r.entry.at)};
            if (::write(out, line, sizeof line) != sizeof line) _exit(2);
        });
        if (!served) _exit(3);
    }
}

TEST(LedgerCrash, WhatWasRepliedIsThereAfterSigkill) {
    rondo::test::scratch_directory const in;
    std::string const file = in.path() / "ledger.db";
    std::minstd_rand random{7};
    std::map<int, ledger_entry> replied;
    int next = 1;
    for (int round = 0; round < 8; ++round) {
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        pid_t const child = ::fork();
        if (child == 0) serve_until_killed(file, next, ends[1]);
        ::close(ends[1]);
        auto const kill_after = 1 + random() % 25;
        int line[2];
        for (unsigned n = 0; ::read(ends[0], line, sizeof line) == sizeof line; ++n) {
            replied[line[0]].at = static_cast<standing>(line[1]);
            next = line[0] + 1;
            if (n == kill_after) ::kill(child, SIGKILL);  // and reads what it had said before
        }
        ::close(ends[0]);
        int status = 0;
        ::waitpid(child, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
        ledger book = ledger::open(file, stock).value();
        for (auto const& [number, entry] : replied) {
            ledger_entry const now = book.look(std::to_string(number)).value();
            EXPECT_GE(static_cast<int>(now.at), static_cast<int>(entry.at)) << "order " << number;
        }
        EXPECT_EQ(book.levels()->front().committed, sum_of_takes(file, nullptr));
        EXPECT_LE(book.levels()->front().committed, capacity);
    }
    EXPECT_GT(next, 8);
}

class faulty_gateway {
  public:
    faulty_gateway(std::uint64_t seed, double sync_failure)
        : sync_failure_(sync_failure), world_({.seed = seed}) {}

    void run() {
        for (int i = 0; i < 10; ++i) {
            node_.disk().set_sync_failure(world_.random().chance(0.5) ? sync_failure_ : 0);
            node_.start();
            node_.crash_in_write(1 + world_.random().below(150));
            (void)world_.run_for(world_.random().between(10ms, 2s));
            node_.crash();
        }
        node_.disk().set_sync_failure(0);
        node_.crash_in_write(0);
        checking_ = true;
        node_.start();
        (void)world_.run_for(1s);
        node_.crash();
    }
    std::size_t orders() const noexcept { return replied_.size(); }
    int syncs_failed() const noexcept { return syncs_failed_; }
    bool checked() const noexcept { return checked_; }

  private:
    task<void> program(sim::node* self) {
        auto opened = ledger::open("ledger.db", stock, files_.name());
        if (!opened) co_return self->crash();
        if (checking_) {
            check(*opened, replied_);
            EXPECT_EQ(opened->levels()->front().committed,
                      sum_of_takes("ledger.db", files_.name()));
            checked_ = true;
            co_return;
        }
        for (;;) {
            co_await rondo::sleep_for(1ms);
            bool const served = serve_one(*opened, next_++, 12h, [this, self](reply const& r) {
                if (self->is_up()) replied_[r.number] = r.entry;
            });
            if (served) continue;
            if (self->is_up()) ++syncs_failed_;
            co_return self->crash();  // as the process ends
        }
    }

    double sync_failure_;
    std::map<int, ledger_entry> replied_;
    int next_ = 1;
    int syncs_failed_ = 0;
    bool checking_ = false;
    bool checked_ = false;
    sim::world world_;
    sim::network net_{world_};
    sim::node node_{world_, net_, 1, [this](sim::node* n) { return program(n); }};
    sim::sqlite_vfs files_{node_};
};

TEST(LedgerCrash, WhatWasRepliedIsThereAfterPowerFailuresAndFailingSyncs) {
    std::size_t orders = 0;
    int failed = 0;
    for (std::uint64_t const seed : sim::seeds(60)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        faulty_gateway g{seed, 0.02};
        g.run();
        ASSERT_TRUE(g.checked());
        orders += g.orders();
        failed += g.syncs_failed();
    }
    EXPECT_GT(orders, 0U);
    if (sim::seeds(60).size() > 1) {
        EXPECT_GT(failed, 0);
    }
}

}  // namespace
