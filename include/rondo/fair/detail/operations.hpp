// operations.hpp: what producers and consumers of a scheduler await.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <utility>

#include "rondo/core/wait.hpp"
#include "rondo/fair/detail/store.hpp"

namespace rondo::fair::detail {

template <class T, class Key>
class dequeue_op : public engine::taker {
    using node = task_node<T, Key>;

  public:
    using engine::taker::taker;

    std::expected<delivery<T, Key>, dequeue_error> take() noexcept {
        std::unique_ptr<node> const task{static_cast<node*>(this->taken())};
        if (task == nullptr) return std::unexpected{dequeue_error::closed};
        return task->deliver();
    }
    dequeue_error refuse(wait_error why) const noexcept { return reason<dequeue_error>(why); }
};

// Has its task with it until it is accepted, and the tenant by its hand.
template <class T, class Key>
class enqueue_op : public producer {
    using shared = store<T, Key>;
    using node = task_node<T, Key>;
    using tenant_node = keyed_tenant<Key>;

  public:
    enqueue_op(shared& s, tenant_node& t, std::unique_ptr<node> task) noexcept
        : producer(*t.waiting_room), store_(&s), tenant_(&t), task_(std::move(task)) {}
    enqueue_op(enqueue_op&& other) noexcept
        : producer(std::move(other)),
          store_(other.store_),
          tenant_(std::exchange(other.tenant_, nullptr)),
          task_(std::move(other.task_)) {}
    ~enqueue_op() {
        if (tenant_ != nullptr) store_->let_go_held(*tenant_);
    }

    bool ready() noexcept {
        why_ = store_->enqueue_held(task_, tenant_);
        tried_ = !why_ || why_ == enqueue_error::closed;
        return tried_;
    }
    bool ready_revocably() noexcept { return store_->decide_held(*task_, *tenant_, reserved_); }
    enqueue_result<T> take() {
        if (!tried_) why_ = store_->bring(task_, *tenant_, reserved_);
        if (!why_) return {};
        return std::unexpected{give_back(*why_)};
    }
    void hand_on() noexcept {
        if (!tried_ && this->reserved_) store_->give_up(*task_, *tenant_);
    }
    refused<T> refuse(wait_error why) noexcept { return give_back(reason<enqueue_error>(why)); }

  private:
    refused<T> give_back(enqueue_error why) noexcept {
        store_->count_refusal(why);
        return {why, std::move(task_->payload)};
    }

    shared* store_;
    tenant_node* tenant_;
    std::unique_ptr<node> task_;
    std::optional<enqueue_error> why_;
    bool tried_ = false;  // and decided
};

}  // namespace rondo::fair::detail
