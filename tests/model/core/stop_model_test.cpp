// Races of stop sources, hooks and links. Hooks live on the stack of their thread and are gone
// when it ends: a call that comes too late is a use after destroy, one that overlaps a race.
#include <memory>

#include "rondo/core/stop.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;

// A hook that counts its calls in a plain cell: reading it after remove() races with a call that
// remove() did not wait for.
class counting_hook : public stop_hook {
  public:
    counting_hook()
        : stop_hook(
              [](stop_hook& h) noexcept { ++static_cast<counting_hook&>(h).calls_.write(); }) {}
    int calls() const { return calls_; }

  private:
    cell<int> calls_{0};
};

TEST(StopModel, AHookIsCalledOnceOrRemovedAndNeverRunsAfterRemove) {
    EXPECT_HOLDS([] {
        stop_source source;
        thread registers{[&] {
            counting_hook hook;
            bool const added = source.token().add(hook);
            source.token().remove(hook);
            RONDO_CHECK_EXPECT(hook.calls() <= (added ? 1 : 0));
        }};
        source.request_stop();
        registers.join();
    });
}

TEST(StopModel, WhoHasSeenTheRequestIsRefused) {
    EXPECT_HOLDS([] {
        stop_source source;
        thread requests{[&] { source.request_stop(); }};
        counting_hook hook;
        bool const seen = source.stop_requested();
        bool const added = source.token().add(hook);
        RONDO_CHECK_EXPECT(!(seen && added));
        if (added) source.token().remove(hook);
        requests.join();
    });
}

TEST(StopModel, AHookThatStaysIsCalledExactlyOnce) {
    EXPECT_HOLDS([] {
        stop_source source;
        counting_hook early;
        RONDO_CHECK_EXPECT(source.token().add(early));
        thread requests{[&] { source.request_stop(); }};
        counting_hook late;
        bool const added = source.token().add(late);
        requests.join();
        RONDO_CHECK_EXPECT(early.calls() == 1);
        RONDO_CHECK_EXPECT(late.calls() == (added ? 1 : 0));
    });
}

TEST(StopModel, RemovingOneHookDoesNotDisturbTheOthers) {
    EXPECT_HOLDS([] {
        stop_source source;
        counting_hook first, second, third;
        RONDO_CHECK_EXPECT(source.token().add(first));
        RONDO_CHECK_EXPECT(source.token().add(second));
        RONDO_CHECK_EXPECT(source.token().add(third));
        thread requests{[&] { source.request_stop(); }};
        source.token().remove(second);
        int const calls = second.calls();
        requests.join();
        RONDO_CHECK_EXPECT(second.calls() == calls);
        RONDO_CHECK_EXPECT(first.calls() == 1 && third.calls() == 1);
    });
}

// I5: the word is free for a hook again only when the list is empty.
TEST(StopModel, AHookThatComesWhileOthersLeaveIsCalled) {
    EXPECT_HOLDS([] {
        stop_source source;
        counting_hook first, second, third;
        RONDO_CHECK_EXPECT(source.token().add(first));
        RONDO_CHECK_EXPECT(source.token().add(second));
        thread leaves{[&] {
            source.token().remove(first);
            source.token().remove(second);
        }};
        RONDO_CHECK_EXPECT(source.token().add(third));
        leaves.join();
        source.request_stop();
        RONDO_CHECK_EXPECT(third.calls() == 1 && first.calls() == 0 && second.calls() == 0);
    });
}

TEST(StopModel, OfTwoThatRequestOneIsFirstAndItsHooksRunOnce) {
    EXPECT_HOLDS([] {
        stop_source source;
        counting_hook hook;
        RONDO_CHECK_EXPECT(source.token().add(hook));
        cell<bool> other_first{false};
        thread other{[&] { other_first = source.request_stop(); }};
        bool const first = source.request_stop();
        other.join();
        RONDO_CHECK_EXPECT(first != other_first.read());
        RONDO_CHECK_EXPECT(hook.calls() == 1);
    });
}

TEST(StopModel, WhatHappenedBeforeTheRequestIsSeenAfterIt) {
    EXPECT_HOLDS([] {
        stop_source source;
        cell<int> reason{0};
        thread requests{[&] {
            reason = 7;
            source.request_stop();
        }};
        if (source.stop_requested()) RONDO_CHECK_EXPECT(reason == 7);
        requests.join();
    });
}

TEST(StopModel, AHookMayRemoveItself) {
    EXPECT_HOLDS([] {
        struct one_shot : stop_hook {
            explicit one_shot(stop_source& s)
                : stop_hook([](stop_hook& h) noexcept {
                      auto& self = static_cast<one_shot&>(h);
                      self.source.token().remove(self);
                      self.done = true;
                  }),
                  source(s) {}
            stop_source& source;
            cell<bool> done{false};
        };
        stop_source source;
        one_shot hook{source};
        RONDO_CHECK_EXPECT(source.token().add(hook));
        thread requests{[&] { source.request_stop(); }};
        requests.join();
        RONDO_CHECK_EXPECT(hook.done);
    });
}

TEST(StopModel, ALinkPassesTheRequestOnAndItsTargetMayGoAtAnyTime) {
    EXPECT_HOLDS([] {
        stop_source above;
        thread below{[&] {
            counting_hook hook;
            stop_source target;
            stop_link link{target};
            link.attach(above.token());
            bool const added = target.token().add(hook);
            bool const seen = target.stop_requested();
            if (added) target.token().remove(hook);
            link.detach();
            RONDO_CHECK_EXPECT(hook.calls() <= 1);
            if (seen) RONDO_CHECK_EXPECT(above.stop_requested());
        }};
        above.request_stop();
        below.join();
    });
}

TEST(StopModel, ATargetReachedByItsOwnerAndByItsLinkIsWalkedOnce) {
    EXPECT_HOLDS([] {
        stop_source above;
        counting_hook hook;
        int calls = 0;
        thread requests;
        {
            stop_source target;
            stop_link link{target};
            link.attach(above.token());
            RONDO_CHECK_EXPECT(target.token().add(hook));
            requests = thread{[&] { above.request_stop(); }};
            bool const walked = target.request_stop();
            target.token().remove(hook);  // if the link walks, this may come before the call
            RONDO_CHECK_EXPECT(hook.calls() == 1 || (!walked && hook.calls() == 0));
            calls = hook.calls();
        }
        requests.join();
        RONDO_CHECK_EXPECT(hook.calls() == calls);
    });
}

TEST(StopModel, AChainOfLinksIsWalkedToItsEndAndBack) {
    EXPECT_HOLDS([] {
        stop_source top;
        counting_hook at_top;
        thread owner{[&] {
            counting_hook hook;
            stop_source middle, bottom;
            stop_link to_middle{middle}, to_bottom{bottom};
            to_middle.attach(top.token());
            to_bottom.attach(middle.token());
            bool const added = bottom.token().add(hook);
            if (added) bottom.token().remove(hook);
        }};
        bool const added = top.token().add(at_top);
        top.request_stop();
        owner.join();
        RONDO_CHECK_EXPECT(at_top.calls() == (added ? 1 : 0));
    });
}

}  // namespace
}  // namespace rondo
