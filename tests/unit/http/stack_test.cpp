#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "rondo/core/block_on.hpp"
#include "rondo/http/client.hpp"
#include "rondo/http/exchange.hpp"
#include "rondo/http/server.hpp"

namespace rondo::http {
namespace {

static_assert(std::is_nothrow_move_constructible_v<call>);

TEST(Stack, TheFirstLayerIsTheOutermost) {
    std::string order;
    auto const layer_named = [&order](char name) {
        return [&order, name](exchange* x, next inner) {
            return [](std::string* o, char n, exchange* on, http::next in) -> task<void> {
                *o += n;
                co_await in(on);
                *o += n;
            }(&order, name, x, inner);
        };
    };
    stack const s{[&order](exchange*) {
                      return [](std::string* o) -> task<void> {
                          *o += 'h';
                          co_return;
                      }(&order);
                  },
                  {layer_named('a'), layer_named('b')}};
    block_on(s(nullptr));
    EXPECT_EQ(order, "abhba");
}

TEST(Stack, ALayerMayAnswerItself) {
    bool reached = false;
    stack const s{[&reached](exchange*) {
                      reached = true;
                      return []() -> task<void> { co_return; }();
                  },
                  {[](exchange*, next) -> task<void> { co_return; }}};
    block_on(s(nullptr));
    EXPECT_FALSE(reached);
}

}  // namespace
}  // namespace rondo::http
