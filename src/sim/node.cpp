// Each start has a place of its own in the world: jobs that are ready and timers that are pending
// belong to it and go with it. Between fence() and abandon() the place is still there, halted, for
// the destructors of frames that take their timers back.
#include "rondo/sim/node.hpp"

#include <utility>

#include "rondo/core/assert.hpp"

namespace rondo::sim {

node::node(sim::world& w, network& net, host address, program p, disk_options d)
    : world_(w),
      network_(net),
      address_(address),
      program_(std::move(p)),
      seeds_(w.random().split()),
      random_(seeds_.split()),
      disk_(seeds_.split(), d, [this] { crash(); }) {}

node::~node() {
    RONDO_ASSERT(place_ == nullptr || !world_.in_turn_of(*place_),
                 "a node is not destroyed by what runs on it");
    crash();
}

void node::start() {
    RONDO_ASSERT(state_ == state::off, "a node is started when it is off");
    RONDO_ASSERT(place_ == nullptr, "a node that crashed in its own turn is started after it");
    state_ = state::running;
    ++starts_;
    random_ = seeds_.split();
    disk_.power_on();
    place_ = std::make_unique<detail::place>(*this, world_.now());
    world_.add_place(*place_);
    spawn(program_(this)).detach();
}

void node::crash() {
    if (state_ == state::off) return;
    fence();
    if (world_.in_turn_of(*place_)) {
        world_.ending_ = this;
    } else {
        abandon();
    }
}

void node::fence() {
    state_ = state::off;
    place_->halted = true;
    (void)world_.withdraw_jobs(*place_);
    held_.clear();
    network_.unplug(address_);
    disk_.power_off();
}

void node::abandon() noexcept {
    {
        executor::scope const here{this};
        place_->tasks.abandon_all();
    }
    world_.remove_place(*place_);
    place_ = nullptr;
}

void node::pause() {
    if (state_ != state::running) return;
    state_ = state::paused;
    place_->halted = true;
    held_ = world_.withdraw_jobs(*place_);
}

void node::resume() {
    if (state_ != state::paused) return;
    state_ = state::running;
    place_->halted = false;
    for (job* const j : std::exchange(held_, {})) world_.post_for(*place_, *j);
}

void node::post(job& j) noexcept {
    switch (state_) {
        case state::off:
            break;  // its task is being destroyed
        case state::running:
            world_.post_for(*place_, j);
            break;
        case state::paused:
            held_.push_back(&j);
            break;
    }
}

void node::began(live_task& t) noexcept {
    RONDO_ASSERT(place_ != nullptr, "a node that is off runs nothing");
    place_->tasks.add(t);
}

void node::add(timer& t, time_point deadline) noexcept {
    RONDO_ASSERT(place_ != nullptr, "a node that is off has no timers");
    place_->wheel.insert(t, deadline);
}

bool node::cancel(timer& t) noexcept { return place_ != nullptr && place_->wheel.cancel(t); }

void node::unobserved(std::exception_ptr exception) noexcept {
    world_.unobserved(std::move(exception));
}

datagram_network::bound node::open(endpoint local, datagram_options chosen) {
    if (local.host == 0) local.host = address_;
    if (local.host != address_) return std::unexpected{bind_error::not_here};
    if (state_ == state::off) return std::unexpected{bind_error::refused};
    return network_.bind(local, chosen);
}

}  // namespace rondo::sim
