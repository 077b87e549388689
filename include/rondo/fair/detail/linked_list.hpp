// linked_list.hpp: intrusive list of nodes that can leave it without knowing which one they are in.
#pragma once

#include "rondo/core/assert.hpp"

namespace rondo::fair::detail {

// A link of a circular list, and its end.
class list_hook {
  public:
    list_hook() = default;
    list_hook(list_hook const&) = delete;
    list_hook& operator=(list_hook const&) = delete;

    bool linked() const noexcept { return next_ != nullptr; }
    void unlink() noexcept {
        previous_->next_ = next_;
        next_->previous_ = previous_;
        next_ = nullptr;
    }

  private:
    template <class T>
    friend class linked_list;
    template <class T>
    friend class chain;

    list_hook* previous_ = nullptr;
    list_hook* next_ = nullptr;
};

// T derives from list_hook. The nodes belong to the caller.
template <class T>
class linked_list {
  public:
    linked_list() noexcept { clear(); }

    bool empty() const noexcept { return end_.next_ == &end_; }
    T* front() const noexcept { return empty() ? nullptr : static_cast<T*>(end_.next_); }
    T* back() const noexcept { return empty() ? nullptr : static_cast<T*>(end_.previous_); }

    void push_back(T& node) noexcept { insert(node, *end_.previous_, end_); }
    void push_front(T& node) noexcept { insert(node, end_, *end_.next_); }
    T* pop_front() noexcept {
        T* const first = front();
        if (first != nullptr) static_cast<list_hook*>(first)->unlink();
        return first;
    }

    // All of another list, behind what is here.
    void append(linked_list& others) noexcept {
        if (others.empty()) return;
        others.end_.next_->previous_ = end_.previous_;
        end_.previous_->next_ = others.end_.next_;
        others.end_.previous_->next_ = &end_;
        end_.previous_ = others.end_.previous_;
        others.clear();
    }

  private:
    static void insert(list_hook& node, list_hook& before, list_hook& after) noexcept {
        RONDO_ASSERT(!node.linked(), "a node is in one list at a time");
        node.previous_ = &before;
        node.next_ = &after;
        before.next_ = &node;
        after.previous_ = &node;
    }
    void clear() noexcept {
        end_.previous_ = &end_;
        end_.next_ = &end_;
    }

    list_hook end_;
};

// Nodes on their way from one place to another, first in, first out: cheaper to make than a list.
// One that is in it cannot leave by itself.
template <class T>
class chain {
  public:
    bool empty() const noexcept { return first_ == nullptr; }
    void push_back(T& node) noexcept {
        list_hook& hook = node;
        RONDO_ASSERT(!hook.linked(), "a node is in one list at a time");
        (first_ == nullptr ? first_ : last_->next_) = &hook;
        last_ = &hook;
    }
    T* pop_front() noexcept {
        if (first_ == nullptr) return nullptr;
        list_hook* const first = first_;
        first_ = first->next_;
        first->next_ = nullptr;
        return static_cast<T*>(first);
    }

  private:
    list_hook* first_ = nullptr;
    list_hook* last_ = nullptr;  // if there is a first one
};

}  // namespace rondo::fair::detail
