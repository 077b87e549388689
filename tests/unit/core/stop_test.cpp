// stop_source, token, callback, hook and link, called from one thread; races are model-checked in
// tests/model/core/stop_model_test.cpp and stressed at the end of this file.
#include "rondo/core/stop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace rondo {
namespace {

static_assert(!std::is_copy_constructible_v<stop_source> &&
                  !std::is_move_constructible_v<stop_source>,
              "tokens point at their source");
static_assert(std::is_trivially_copyable_v<stop_token> && sizeof(stop_token) == sizeof(void*));

using log = std::vector<std::string>;

auto note(log& l, std::string what) {
    return [&l, what = std::move(what)] { l.push_back(what); };
}

TEST(StopSource, TheFirstRequestIsTheOneThatCounts) {
    stop_source source;
    EXPECT_FALSE(source.stop_requested());
    EXPECT_TRUE(source.request_stop());
    EXPECT_TRUE(source.stop_requested());
    EXPECT_TRUE(source.token().stop_requested());
    EXPECT_FALSE(source.request_stop());
}

TEST(StopToken, WithoutASourceNobodyCanAsk) {
    stop_token const none;
    EXPECT_FALSE(none.stop_possible());
    EXPECT_FALSE(none.stop_requested());
    log l;
    {
        stop_callback const callback{none, note(l, "called")};
    }
    stop_source target;
    stop_link link{target};
    link.attach(none);
    link.detach();
    EXPECT_TRUE(l.empty());
    EXPECT_FALSE(target.stop_requested());
}

TEST(StopToken, IsEqualToTokensOfTheSameSource) {
    stop_source a, b;
    EXPECT_EQ(a.token(), a.token());
    EXPECT_NE(a.token(), b.token());
    EXPECT_EQ(stop_token{}, stop_token{});
    EXPECT_NE(a.token(), stop_token{});
}

TEST(StopCallback, AreCalledInTheOrderOfTheirRegistration) {
    log l;
    stop_source source;
    stop_callback const a{source.token(), note(l, "a")};
    stop_callback const b{source.token(), note(l, "b")};
    stop_callback const c{source.token(), note(l, "c")};
    EXPECT_TRUE(l.empty());
    source.request_stop();
    EXPECT_EQ(l, (log{"a", "b", "c"}));
    source.request_stop();
    EXPECT_EQ(l.size(), 3U);
}

TEST(StopCallback, IsNotCalledOnceItIsDestroyed) {
    log l;
    stop_source source;
    stop_callback const a{source.token(), note(l, "a")};
    {
        stop_callback const b{source.token(), note(l, "b")};
    }
    stop_callback const c{source.token(), note(l, "c")};
    source.request_stop();
    EXPECT_EQ(l, (log{"a", "c"}));
}

TEST(StopCallback, RegisteredAfterTheRequestIsCalledAtOnce) {
    log l;
    stop_source source;
    source.request_stop();
    stop_callback const late{source.token(), note(l, "late")};
    EXPECT_EQ(l, log{"late"});
}

TEST(StopCallback, MayDestroyItself) {
    stop_source source;
    log l;
    std::optional<stop_callback<std::function<void()>>> self;
    self.emplace(source.token(), [&] {
        self.reset();
        l.push_back("gone");
    });
    stop_callback const after{source.token(), note(l, "after")};
    source.request_stop();
    EXPECT_FALSE(self.has_value());
    EXPECT_EQ(l, (log{"gone", "after"}));
}

TEST(StopCallback, MayDestroyOneThatWouldHaveComeLater) {
    stop_source source;
    log l;
    std::optional<stop_callback<std::function<void()>>> later;
    stop_callback const first{source.token(), [&] {
                                  l.push_back("first");
                                  later.reset();
                              }};
    later.emplace(source.token(), note(l, "later"));
    stop_callback const last{source.token(), note(l, "last")};
    source.request_stop();
    EXPECT_EQ(l, (log{"first", "last"}));
}

TEST(StopCallback, SeesTheRequestAndMayRegisterAndRequestAgain) {
    stop_source source;
    log l;
    stop_callback const outer{source.token(), [&] {
                                  EXPECT_TRUE(source.stop_requested());
                                  EXPECT_FALSE(source.request_stop());
                                  stop_callback const inner{source.token(), note(l, "inner")};
                                  l.push_back("outer");
                              }};
    source.request_stop();
    EXPECT_EQ(l, (log{"inner", "outer"}));
}

// --- links -----------------------------------------------------------------------------------

TEST(StopLink, PassesTheRequestDownAndNeverUp) {
    stop_source above, below;
    stop_link link{below};
    link.attach(above.token());
    below.request_stop();
    EXPECT_FALSE(above.stop_requested());

    stop_source second;
    stop_link to_second{second};
    to_second.attach(above.token());
    above.request_stop();
    EXPECT_TRUE(second.stop_requested());
}

TEST(StopLink, AttachedAfterTheRequestAsksAtOnce) {
    stop_source above, below;
    above.request_stop();
    stop_link link{below};
    link.attach(above.token());
    EXPECT_TRUE(below.stop_requested());
}

TEST(StopLink, DetachedPassesNothingOn) {
    stop_source above, below;
    stop_link link{below};
    link.attach(above.token());
    link.detach();
    link.detach();
    above.request_stop();
    EXPECT_FALSE(below.stop_requested());
}

TEST(StopLink, WhatIsBelowIsCalledWhereTheLinkStandsInTheOrder) {
    log l;
    stop_source top, middle, bottom;
    stop_callback const before{top.token(), note(l, "before")};
    stop_link to_middle{middle};
    to_middle.attach(top.token());
    stop_callback const after{top.token(), note(l, "after")};
    stop_callback const in_middle{middle.token(), note(l, "middle")};
    stop_link to_bottom{bottom};
    to_bottom.attach(middle.token());
    stop_callback const in_bottom{bottom.token(), note(l, "bottom")};
    stop_callback const middle_again{middle.token(), note(l, "middle again")};
    top.request_stop();
    EXPECT_EQ(l, (log{"before", "middle", "bottom", "middle again", "after"}));
}

TEST(StopLink, ATargetWithTwoLinksIsAskedOnce) {
    log l;
    stop_source first, second, target;
    stop_link from_first{target}, from_second{target};
    from_first.attach(first.token());
    from_second.attach(second.token());
    stop_callback const callback{target.token(), note(l, "asked")};
    second.request_stop();
    first.request_stop();
    EXPECT_EQ(l, log{"asked"});
}

// --- threads ---------------------------------------------------------------------------------

TEST(StopStress, CallbacksComeAndGoWhileStopIsRequested) {
    for (int round = 0; round < 200; ++round) {
        stop_source source;
        std::atomic<int> called{0}, late{0};
        auto const churn = [&] {
            for (int i = 0; i < 50; ++i) {
                bool const requested = source.stop_requested();
                auto const alive =
                    std::make_unique<int>(i);  // freed while a call runs: ASan sees it
                stop_callback const callback{source.token(),
                                             [&] { called += *alive >= 0 ? 1 : 0; }};
                if (requested) ++late;
            }
        };
        std::thread a{churn}, b{churn};
        source.request_stop();
        a.join();
        b.join();
        EXPECT_GE(called.load(), late.load());
    }
}

TEST(StopStress, TargetsComeAndGoBelowASourceThatIsAsked) {
    for (int round = 0; round < 200; ++round) {
        stop_source top;
        auto const churn = [&] {
            for (int i = 0; i < 50; ++i) {
                stop_source middle, bottom;
                stop_link to_middle{middle}, to_bottom{bottom};
                to_middle.attach(top.token());
                to_bottom.attach(middle.token());
                int calls = 0;
                {
                    stop_callback const callback{bottom.token(), [&] { ++calls; }};
                    if (i % 7 == 0) middle.request_stop();
                }
                EXPECT_LE(calls, 1);
            }
        };
        std::thread a{churn}, b{churn};
        top.request_stop();
        a.join();
        b.join();
    }
}

}  // namespace
}  // namespace rondo
