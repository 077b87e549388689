#include "place.hpp"

#include <exception>
#include <utility>

#include "rondo/core/this_task.hpp"

namespace rondo::shop {

namespace {

char const* reason_of(bind_error e) noexcept {
    switch (e) {
        case bind_error::in_use:
            return "another process does already";
        case bind_error::not_here:
            return "it is not an address of this machine";
        case bind_error::refused:
            break;
    }
    return "the system refuses it";
}

}  // namespace

std::unique_ptr<datagram_socket> place::bind(member_id id) const {
    endpoint const at = endpoint_of(id);
    auto socket = network->bind(at);
    if (socket) return *std::move(socket);
    cannot_start("cannot listen at " + to_text(at) + ": " + reason_of(socket.error()));
    // A process has ended here; a node of the simulator goes on until its next wait.
    return network->bind({at.host, 0}).value();
}

task<void> reporting(task<void> part) {
    environment const& env = co_await this_environment();
    try {
        co_await std::move(part);
    } catch (...) {
        env.where->unobserved(std::current_exception());
    }
}

}  // namespace rondo::shop
