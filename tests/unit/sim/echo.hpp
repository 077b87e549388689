// echo.hpp: the smallest service on a node, and who asks it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/core/datagram.hpp"
#include "rondo/core/task.hpp"
#include "rondo/sim/node.hpp"

namespace rondo::test {

inline std::vector<std::byte> to_bytes(std::string_view text) {
    auto const view = std::as_bytes(std::span{text});
    return {view.begin(), view.end()};
}
inline std::string to_string(datagram const& d) {
    return {reinterpret_cast<char const*>(d.bytes.data()), d.bytes.size()};
}

// Answers everything with itself.
inline task<void> echo(sim::node* self) {
    std::unique_ptr<datagram_socket> const s = self->bind({0, 7}).value();
    for (;;) {
        auto d = co_await s->receive();
        s->send_to(d->from, d->bytes);
    }
}

inline task<void> idle(sim::node*) { co_return; }

}  // namespace rondo::test
