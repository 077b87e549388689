#include "rondo/cluster/election.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/node.hpp"
#include "rondo/sim/seeds.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace std::chrono_literals;
using namespace rondo::cluster;
using rondo::endpoint;
using rondo::task;
namespace sim = rondo::sim;

#ifdef RONDO_TEST_SANITIZED
constexpr std::uint64_t thoroughness = 1;
#else
constexpr std::uint64_t thoroughness = 10;
#endif

endpoint at(member_id id) { return {id, 7}; }

// What one member keeps, and what was seen of it in all its runs.
class member final : epoch_store {
  public:
    member(sim::world& w, sim::network& net, member_id id, std::vector<address> all)
        : id_(id),
          all_(std::move(all)),
          node_(w, net, id, [this](sim::node* n) { return live(n); }) {}

    sim::node& node() { return node_; }
    election* now() { return node_.is_up() ? election_ : nullptr; }
    member_id id() const { return id_; }

  private:
    epoch load() override { return saved_; }
    void save(epoch e) override { saved_ = e; }
    task<answer> serve(message m) {
        answer given = election_->serve(m);
        co_return given;
    }
    task<void> live(sim::node* self) {
        election_ = nullptr;
        auto const service = [this](message m) { return serve(std::move(m)); };
        peer me{self->bind(at(id_)).value(),
                secret{},
                {id_, self->starts()},
                service,
                {.jitter_seed = id_ + 1}};
        election leading{me, all_, *this};
        election_ = &leading;
        auto running = self->spawn(me.run());
        co_await leading.run();
    }

    member_id id_;
    std::vector<address> all_;
    epoch saved_;
    election* election_ = nullptr;
    sim::node node_;
};

// Members, and the invariant that is checked at every step of time:
//   I5  an epoch is led by one run of one member; what a member follows never falls.
class members {
  public:
    members(std::uint64_t seed, member_id count, sim::conditions c)
        : world_({.seed = seed}), net_(world_, c) {
        std::vector<address> all;
        for (member_id id = 1; id <= count; ++id) all.push_back({at(id), id});
        for (address const& a : all) members_.emplace_back(world_, net_, a.id, all);
    }

    void start_all() {
        for (member& m : members_) m.node().start();
    }
    void run_for(rondo::clock::duration span) {
        for (auto const end = world_.now() + span; world_.now() < end;) {
            (void)world_.run_for(5ms);
            for (member& m : members_) check(m);
        }
    }
    member& of(member_id id) { return *std::next(members_.begin(), id - 1); }
    // Whom all that are up follow; nobody if they do not agree.
    std::optional<epoch> agreed() {
        std::optional<epoch> leader;
        for (member& m : members_) {
            if (m.now() == nullptr) continue;
            auto const e = m.now()->current().leader;
            if (!e || (leader && *leader != *e)) return std::nullopt;
            leader = e;
        }
        if (!leader || of(leader->leader).now() == nullptr) return std::nullopt;
        if (!of(leader->leader).now()->leads()) return std::nullopt;
        return leader;
    }
    bool agree_within(rondo::clock::duration span) {
        for (auto const end = world_.now() + span; world_.now() < end;) {
            run_for(50ms);
            if (agreed()) return true;
        }
        return false;
    }

    sim::world& world() { return world_; }
    sim::network& net() { return net_; }
    std::list<member>& all() { return members_; }
    std::string violation;
    std::size_t led() const { return leaders_.size(); }

  private:
    void check(member& m) {
        if (m.now() == nullptr) return;
        leadership const seen = m.now()->current();
        if (!seen.leader) return;
        if (*seen.leader < followed_[m.id()]) {
            violation = "member " + std::to_string(m.id()) + " follows a lower epoch";
        }
        followed_[m.id()] = *seen.leader;
        if (seen.mine != (seen.leader->leader == m.id())) violation = "who leads does not know";
        if (!seen.mine) return;
        member_run const run{m.id(), m.node().starts()};
        if (leaders_.try_emplace(*seen.leader, run).first->second != run) {
            violation = "an epoch has two leaders";
        }
    }

    sim::world world_;
    sim::network net_;
    std::list<member> members_;
    std::map<member_id, epoch> followed_;
    std::map<epoch, member_run> leaders_;
};

constexpr sim::conditions bad{
    .most_delay = 40ms, .loss = 0.3, .duplication = 0.2, .straggling = 0.1, .straggle = 500ms};

TEST(Election, TheHighestLeadsWhenAllStart) {
    for (std::uint64_t const seed : sim::seeds(20)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        members m{seed, 5, {}};
        m.start_all();
        EXPECT_TRUE(m.agree_within(500ms));
        ASSERT_TRUE(m.agreed());
        EXPECT_EQ(m.agreed()->leader, 5U);
        std::uint64_t const term = m.agreed()->term;
        m.run_for(60s);
        ASSERT_TRUE(m.agreed());
        EXPECT_EQ(m.agreed()->term, term) << "a leader that is heard stays";
    }
}

TEST(Election, OneAloneLeads) {
    members m{1, 1, {}};
    m.start_all();
    m.run_for(1s);
    ASSERT_TRUE(m.agreed());
    EXPECT_EQ(*m.agreed(), (epoch{1, 1}));
}

TEST(Election, TheNextTakesOverWithin1500MillisecondsOfACrash) {
    for (std::uint64_t const seed : sim::seeds(100)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        members m{seed, 3, {.loss = 0.1}};
        m.start_all();
        m.run_for(5s + m.world().random().between(0ms, 1s));
        ASSERT_TRUE(m.agreed());
        m.of(3).node().crash();
        EXPECT_TRUE(m.agree_within(1500ms));
        EXPECT_EQ(m.violation, "");
    }
}

TEST(Election, TheHighestTakesOverWhenItReturns) {
    for (std::uint64_t const seed : sim::seeds(20)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        members m{seed, 3, {}};
        m.start_all();
        m.run_for(2s);
        m.of(3).node().crash();
        m.run_for(3s);
        ASSERT_TRUE(m.agreed());
        EXPECT_EQ(m.agreed()->leader, 2U);
        m.of(3).node().start();
        m.run_for(2s);
        ASSERT_TRUE(m.agreed());
        EXPECT_EQ(m.agreed()->leader, 3U);
        EXPECT_EQ(m.violation, "");
    }
}

TEST(Election, ALeaderThatWasCutOffStepsDown) {
    members m{1, 3, {}};
    m.start_all();
    m.run_for(2s);
    ASSERT_TRUE(m.agreed());
    epoch const before = *m.agreed();
    std::array<sim::host, 1> const leader{3};
    std::array<sim::host, 2> const rest{1, 2};
    m.net().partition(leader, rest);
    m.run_for(3s);
    EXPECT_TRUE(m.of(3).now()->leads());
    EXPECT_TRUE(m.of(2).now()->leads());
    m.net().heal();
    m.run_for(3s);
    ASSERT_TRUE(m.agreed());
    EXPECT_GT(*m.agreed(), before);
    EXPECT_EQ(m.of(3).now()->counts().stepped_down, 1U);
    EXPECT_EQ(m.violation, "");
}

TEST(Election, ALeaderStepsDownWhenItsFollowersSaySo) {
    members m{1, 3, {}};
    m.start_all();
    m.run_for(2s);
    std::array<sim::host, 1> const leader{3};
    std::array<sim::host, 2> const rest{1, 2};
    m.net().partition(leader, rest);
    m.run_for(3s);
    ASSERT_TRUE(m.of(2).now()->leads());
    m.net().heal();
    m.net().cut(2, 3);  // the new leader is not heard by the old one, but 1 is
    EXPECT_TRUE(m.agree_within(5s));
    EXPECT_EQ(m.of(3).now()->counts().stepped_down, 1U);
    EXPECT_EQ(m.violation, "");
}

TEST(Election, ALeaderIsToldByOthersThatItsEpochIsOver) {
    members m{1, 2, {}};
    m.start_all();
    m.run_for(2s);
    ASSERT_TRUE(m.of(2).now()->leads());
    epoch const newer{m.of(2).now()->highest().term + 5, 1};
    m.of(2).now()->step_down(newer);
    EXPECT_FALSE(m.of(2).now()->leads());
    EXPECT_EQ(m.of(2).now()->highest(), newer);
    EXPECT_FALSE(m.of(2).now()->admit({newer.term - 1, 9}));
    EXPECT_TRUE(m.of(2).now()->admit(newer));
    EXPECT_GT(m.of(2).now()->counts().stale, 0U);
    EXPECT_TRUE(m.agree_within(5s));
    EXPECT_GT(*m.agreed(), newer);
}

TEST(Election, AMemberWhoseRequestsDoNotReachTheLeaderMaySuspectIt) {
    members m{1, 2, {}};
    m.start_all();
    m.run_for(2s);
    ASSERT_TRUE(m.agreed());
    epoch const before = *m.agreed();
    m.net().cut(1, 2);  // it still hears the leader
    m.run_for(300ms);
    ASSERT_EQ(m.of(1).now()->current().leader, before);
    m.of(1).now()->suspect({before.term, 7});  // somebody of the past
    m.run_for(250ms);
    EXPECT_FALSE(m.of(1).now()->leads());
    m.of(1).now()->suspect(before);
    m.run_for(250ms);
    EXPECT_TRUE(m.of(1).now()->leads());
    m.net().heal();
    EXPECT_TRUE(m.agree_within(3s));
    EXPECT_EQ(m.violation, "");
}

TEST(Election, WhoSpeaksInTheNameOfAnotherIsNotFollowed) {
    members m{1, 2, {}};
    m.start_all();
    m.run_for(2s);
    ASSERT_TRUE(m.agreed());
    epoch const before = *m.agreed();
    message forged;
    forged.type = piece_types + 1;  // COORDINATOR
    forged.source = {1, 1};
    forged.epoch = {before.term + 1, 9};
    (void)m.of(2).now()->serve(forged);
    EXPECT_EQ(m.of(2).now()->current().leader, before);
    EXPECT_EQ(m.of(2).now()->highest(), before);
}

TEST(Election, ChangesAreToldToWhoWatches) {
    members m{1, 2, {}};
    m.start_all();
    (void)m.world().run_ready();
    auto seen = m.of(1).now()->subscribe();
    m.run_for(2s);
    auto const changed = seen.try_changed();
    EXPECT_TRUE(changed);
    EXPECT_EQ(seen.borrow()->leader, m.agreed());
    m.of(1).node().crash();  // and with it the other end
    auto const gone = seen.try_changed();
    EXPECT_FALSE(gone);
}

// One that leads, and one that follows.
TEST(Election, EndsWhenItAsksWithAPeerThatIsClosed) {
    class closing final : epoch_store {
      public:
        task<void> live(sim::node* self, member_id id) {
            std::vector<address> const all{{at(1), 1}, {at(2), 2}};
            peer me{self->bind(at(id)).value(), secret{}, {id, 1}, [this](message m) {
                        return serve(std::move(m));
                    }};
            election choosing{me, all, *this};
            election_ = &choosing;
            auto receiving = self->spawn(me.run());
            auto electing = self->spawn(choosing.run());
            co_await rondo::sleep_for(2s);
            EXPECT_EQ(choosing.leads(), id == 2);
            me.close();
            auto const received = co_await receiving.join();
            auto const elected = co_await electing.join();
            has_ended = received && elected;
        }
        bool has_ended = false;

      private:
        epoch load() override { return {}; }
        void save(epoch) override {}
        task<answer> serve(message m) {
            answer given = election_->serve(m);
            co_return given;
        }
        election* election_ = nullptr;
    };
    sim::world world{{.seed = 1}};
    sim::network net{world};
    std::array<closing, 2> programs;
    sim::node low{world, net, 1, [&](sim::node* n) { return programs[0].live(n, 1); }};
    sim::node high{world, net, 2, [&](sim::node* n) { return programs[1].live(n, 2); }};
    low.start();
    high.start();
    EXPECT_EQ(world.run(), sim::outcome::finished);
    EXPECT_TRUE(programs[0].has_ended);
    EXPECT_TRUE(programs[1].has_ended);
}

// Faults of every kind, for a while; then quiet, in which all agree.
class storm {
  public:
    explicit storm(std::uint64_t seed)
        : random_(seed), members_(seed, 2 + static_cast<member_id>(random_.below(4)), bad) {}

    members& run() {
        members_.start_all();
        for (int i = 0; i < 12; ++i) {
            members_.run_for(random_.between(0ms, 1500ms));
            fault(members_.of(some_member()));
        }
        members_.net().heal();
        for (member& m : members_.all()) {
            if (!m.node().is_up()) m.node().start();
            if (m.node().is_paused()) m.node().resume();
        }
        return members_;
    }

  private:
    member_id some_member() {
        return 1 + static_cast<member_id>(random_.below(members_.all().size()));
    }
    void fault(member& m) {
        member_id const other = some_member();
        switch (random_.below(6)) {
            case 0:
                if (m.node().is_up()) m.node().crash();
                break;
            case 1:
                if (!m.node().is_up()) m.node().start();
                break;
            case 2:
                if (m.node().is_up() && !m.node().is_paused()) m.node().pause();
                break;
            case 3:
                if (m.node().is_paused()) m.node().resume();
                break;
            case 4:
                members_.net().cut(m.id(), other);
                break;
            default:
                members_.net().heal(m.id(), other);
        }
    }

    sim::random_source random_;
    members members_;
};

TEST(Election, EpochsHaveOneLeaderAndNeverFallWhateverHappens) {
    std::size_t led = 0;
    for (std::uint64_t const seed : sim::seeds(100 * thoroughness)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        storm s{seed};
        members& m = s.run();
        EXPECT_TRUE(m.agree_within(20s));
        ASSERT_EQ(m.violation, "");
        led += m.led();
    }
    EXPECT_GT(led, 200 * thoroughness) << "too few changes of the leader to show anything";
}

}  // namespace
