#include "rondo/sim/node.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "echo.hpp"
#include "rondo/core/shield.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "rondo/sim/detail/place.hpp"
#include "rondo/sim/seeds.hpp"
#include "support/permits.hpp"

namespace {

using namespace std::chrono_literals;
using rondo::datagram_socket;
using rondo::executor;
using rondo::task;
using rondo::time_point;
using rondo::test::echo;
using rondo::test::idle;
using rondo::test::permits;
using rondo::test::to_bytes;
using rondo::test::to_string;
namespace sim = rondo::sim;

using log_lines = std::vector<std::string>;

struct witness {
    witness(std::string n, log_lines* l) : name(std::move(n)), log(l) {}
    ~witness() { log->push_back(name + " goes"); }
    witness(witness const&) = delete;
    witness& operator=(witness const&) = delete;
    std::string name;
    log_lines* log;
};

class Node : public testing::Test {
  protected:
    // A program that counts seconds.
    sim::node::program ticking() {
        return [this](sim::node* self) { return tick(self); };
    }
    task<void> tick(sim::node* self) {
        witness const w{"program", &log};
        for (;;) {
            co_await rondo::sleep_for(1s);
            log.push_back("tick at " + std::to_string(self->now().time_since_epoch() / 1s));
        }
    }
    void run(rondo::clock::duration d) { ASSERT_NE(world.run_for(d), sim::outcome::out_of_turns); }

    log_lines log;
    sim::world world{{.seed = 1, .order = sim::schedule::fifo}};
    sim::network net{world};
};

TEST_F(Node, RunsItsProgramWhereItsExecutorIsTheNode) {
    executor* where = nullptr;
    sim::node n{world, net, 1, [&where](sim::node* self) {
                    where = executor::current();
                    return idle(self);
                }};
    EXPECT_FALSE(n.is_up());
    n.start();
    struct asks {
        static task<void> where(executor** w) {
            *w = executor::current();
            co_return;
        }
    };
    n.spawn(asks::where(&where)).detach();
    run(1s);
    EXPECT_EQ(where, &n);
    EXPECT_EQ(n.starts(), 1U);
    EXPECT_EQ(n.address(), 1U);
}

TEST_F(Node, ACrashDestroysFramesAndRunsNothingElse) {
    sim::node n{world, net, 1, ticking()};
    n.start();
    run(2500ms);
    n.crash();
    EXPECT_EQ(log, (log_lines{"tick at 1", "tick at 2", "program goes"}));
    EXPECT_FALSE(n.is_up());
    EXPECT_EQ(world.live_tasks(), 0U);
    run(10s);
    EXPECT_EQ(log.size(), 3U);
}

TEST_F(Node, StartsFromTheBeginningAfterACrash) {
    sim::node n{world, net, 1, ticking()};
    n.start();
    run(1500ms);
    n.crash();
    n.crash();
    run(1s);
    n.start();
    run(1s);
    EXPECT_EQ(log, (log_lines{"tick at 1", "program goes", "tick at 3"}));
    EXPECT_EQ(n.starts(), 2U);
}

TEST_F(Node, APausedNodeRunsNothingAndIsLateAfterwards) {
    sim::node n{world, net, 1, ticking()};
    n.start();
    run(1500ms);
    n.pause();
    EXPECT_TRUE(n.is_paused());
    run(8500ms);
    EXPECT_EQ(log.size(), 1U);
    n.resume();
    run(1s);
    EXPECT_EQ(log, (log_lines{"tick at 1", "tick at 10", "tick at 11"}));
}

TEST_F(Node, WhatBecomesReadyOnAPausedNodeRunsAfterwards) {
    permits gate{0};
    sim::node n{world, net, 1, idle};
    n.start();
    struct passes {
        static task<void> gate(permits* g, log_lines* l) {
            permits::permit const p = co_await g->acquire();
            l->push_back("passed");
        }
    };
    n.spawn(passes::gate(&gate, &log)).detach();
    run(1s);
    n.pause();
    gate.release();
    run(1s);
    EXPECT_TRUE(log.empty());
    n.resume();
    run(0s);
    EXPECT_EQ(log, log_lines{"passed"});
}

TEST_F(Node, ANodeThatIsPausedMayCrash) {
    sim::node n{world, net, 1, ticking()};
    n.start();
    run(1500ms);
    n.pause();
    n.crash();
    n.resume();
    run(10s);
    EXPECT_EQ(log, (log_lines{"tick at 1", "program goes"}));
}

TEST_F(Node, ItsOwnCrashEndsWithTheTurn) {
    struct falls {
        static task<void> down(sim::node* self, log_lines* l) {
            witness const w{"program", l};
            std::unique_ptr<datagram_socket> const s = self->bind({0, 5}).value();
            co_await rondo::sleep_for(1s);
            self->crash();
            s->send_to({2, 7}, to_bytes("from beyond"));
            l->push_back("still in its turn");
            co_await rondo::sleep_for(1s);
            l->push_back("never");
        }
    };
    sim::node n{world, net, 1, [this](sim::node* self) { return falls::down(self, &log); }};
    sim::node other{world, net, 2, echo};
    n.start();
    other.start();
    run(5s);
    EXPECT_EQ(log, (log_lines{"still in its turn", "program goes"}));
    EXPECT_EQ(net.counts().sent, 0U);
    n.start();
    run(5s);
    EXPECT_EQ(log.size(), 4U);
}

TEST_F(Node, NothingArrivesAtACrashedNodeAndItsPortIsFreeAgain) {
    sim::node server{world, net, 1, echo};
    sim::node client{world, net, 2, idle};
    server.start();
    client.start();
    run(0s);
    auto const s = client.bind({0, 0}).value();
    s->send_to({1, 7}, to_bytes("on its way"));
    server.crash();
    run(1s);
    EXPECT_EQ(net.counts().unheard, 1U);
    server.start();
    run(0s);
    s->send_to({1, 7}, to_bytes("again"));
    run(1s);
    EXPECT_EQ(to_string(s->try_receive().value()), "again");
    EXPECT_FALSE(s->try_receive());
}

TEST_F(Node, TasksOfAnotherPlaceLearnThatATaskOfTheirsIsGone) {
    sim::node n{world, net, 1, idle};
    n.start();
    struct joins {
        static task<bool> other(sim::node* at, task<void> t) {
            rondo::join_handle<void> h = at->spawn(std::move(t));
            auto const r = co_await h.join();
            co_return !r;
        }
        static task<void> crash_later(sim::node* n) {
            co_await rondo::sleep_for(2s);
            n->crash();
        }
    };
    world.spawn(joins::crash_later(&n)).detach();
    EXPECT_EQ(world.block_on(joins::other(&n, tick(&n))).value(), true);
}

TEST_F(Node, ExceptionsOfItsTasksAreTheWorlds) {
    struct throws {
        static task<void> program(sim::node*) {
            throw std::string{"no"};
            co_return;
        }
    };
    sim::node n{world, net, 1, throws::program};
    n.start();
    run(1s);
    EXPECT_EQ(world.take_unobserved().size(), 1U);
}

TEST_F(Node, AWorldWhoseNodesWaitForNothingIsStuckAndSaysWhere) {
    sim::node n{world, net, 1, echo};
    n.start();
    EXPECT_EQ(world.run(), sim::outcome::stuck);
    ASSERT_EQ(world.dump().size(), 1U);
    EXPECT_NE(rondo::to_text(world.dump()).find("echo"), std::string::npos);
    n.crash();
    EXPECT_EQ(world.run(), sim::outcome::finished);
}

// Every kind of wait, crashed at every moment: what it holds is let go, and nothing is left.
TEST(NodeUnderRandomCrashes, LeaveNothingBehind) {
    struct program {
        permits gate{2};
        int inside = 0;

        struct stay {
            explicit stay(int* n) : count(n) { ++*count; }
            ~stay() { --*count; }
            stay(stay const&) = delete;
            stay& operator=(stay const&) = delete;
            int* count;
        };
        task<void> visit(sim::node* self) {
            permits::permit const p = co_await gate.acquire();
            stay const here{&inside};
            co_await rondo::sleep_for(self->random().between(0ms, 3ms));
        }
        task<void> cleaned_up(sim::node* self) {
            co_await rondo::shield(visit(self));
            co_await rondo::yield();
        }
        task<void> all(sim::node* self) {
            for (;;) {
                auto const kind = self->random().below(3);
                if (kind == 0) {
                    auto const r = co_await rondo::with_timeout(visit(self), 2ms);
                    (void)r;
                } else if (kind == 1) {
                    co_await rondo::when_any(visit(self), cleaned_up(self));
                } else {
                    self->spawn(cleaned_up(self)).detach();
                    co_await rondo::when_all(visit(self), rondo::sleep_for(1ms));
                }
            }
        }
    };
    for (std::uint64_t const seed : sim::seeds(200)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        sim::world world{{.seed = seed}};
        sim::network net{world};
        program p;
        {
            sim::node a{world, net, 1, [&p](sim::node* self) { return p.all(self); }};
            sim::node b{world, net, 2, [&p](sim::node* self) { return p.all(self); }};
            a.start();
            b.start();
            for (int i = 0; i < 5; ++i) {
                ASSERT_NE(world.run_for(world.random().between(0ms, 10ms)),
                          sim::outcome::out_of_turns);
                sim::node& chosen = world.random().chance(0.5) ? a : b;
                if (world.random().chance(0.3)) chosen.pause();
                if (world.random().chance(0.3)) chosen.resume();
                chosen.crash();
                chosen.start();
            }
        }
        EXPECT_EQ(p.gate.available(), 2U);
        EXPECT_EQ(p.inside, 0);
        EXPECT_EQ(world.live_tasks(), 0U);
        EXPECT_EQ(world.run(), sim::outcome::finished);
    }
}

}  // namespace
