// linked_list.hpp: the intrusive list of everything that stands in a line here.
//
//   class guest : list_hook<guest> { friend linked_list<guest>; ... };
//   linked_list<guest> line;
//   line.push_back(ann);
//   line.remove(ann);
//
// Waiters in a queue, hooks of a stop source, timers in a slot, tasks of an executor or of a
// tenant: each is in at most one list of its kind at a time, and most leave from the middle.
//
// Guarantee      nodes keep the order in which they were put; all operations are O(1) and, but
//                for asking whether the list is empty, free of branches: the links form a ring
//                that is closed by the list itself.
// Lifetime       nodes belong to the caller, and leave before they or the list go. Neither is
//                copied or moved while linked.
// Thread safety  none: the owner of the list synchronises, for the hooks of its nodes too.
// Checked builds see each access to a link, and report the one that no lock orders. Link says
//                otherwise for those that have too many lists for that (plain_link).
// Allocation     none; two words in the node, two in the list.
#pragma once

#include "rondo/core/assert.hpp"
#include "rondo/core/policy.hpp"

namespace rondo {

template <class T, template <class> class Link>
class linked_list;
template <class T>
class linked_chain;

template <class Pointer>
using plain_link = Pointer;

// What T derives from to be put into a linked_list<T, Link>. Another base of T may be such a hook
// for lists of that base.
template <class T, template <class> class Link = cell>
class list_hook {
  public:
    list_hook() = default;
    list_hook(list_hook const&) = delete;
    list_hook& operator=(list_hook const&) = delete;

    // In a list, or in a chain and not the last one there.
    bool linked() const noexcept { return next_ != nullptr; }

  private:
    friend class linked_list<T, Link>;
    friend class linked_chain<T>;

    Link<list_hook*> previous_{nullptr};
    Link<list_hook*> next_{nullptr};
};

template <class T, template <class> class Link = cell>
class linked_list {
    using hook = list_hook<T, Link>;

  public:
    linked_list() noexcept { make_empty(); }
    linked_list(linked_list const&) = delete;
    linked_list& operator=(linked_list const&) = delete;

    bool empty() const noexcept { return end_.next_ == &end_; }
    // Null: there is none.
    T* front() const noexcept { return node_at(end_.next_); }
    T* back() const noexcept { return node_at(end_.previous_); }
    T* after(T const& node) const noexcept { return node_at(static_cast<hook const&>(node).next_); }

    void push_back(T& node) noexcept {
        hook* const last = end_.previous_;
        insert(node, *last, end_);
    }
    void push_front(T& node) noexcept {
        hook* const first = end_.next_;
        insert(node, end_, *first);
    }
    T* pop_front() noexcept {
        T* const first = front();
        if (first != nullptr) remove(*first);
        return first;
    }
    // Out of whichever list it is in.
    static void remove(T& node) noexcept {
        hook& leaver = node;
        hook* const previous = leaver.previous_;
        hook* const next = leaver.next_;
        previous->next_ = next;
        next->previous_ = previous;
        leaver.next_ = nullptr;
    }
    static bool is_linked(T const& node) noexcept {
        return static_cast<hook const&>(node).linked();
    }
    // Whether nobody else is in the list that it is in.
    static bool is_alone(T const& node) noexcept {
        hook const& one = node;
        hook* const next = one.next_;
        return one.previous_ == next;
    }

    // All of another list, behind what is here.
    void append(linked_list& others) noexcept {
        if (others.empty()) return;
        hook* const last = end_.previous_;
        hook* const first_other = others.end_.next_;
        hook* const last_other = others.end_.previous_;
        first_other->previous_ = last;
        last->next_ = first_other;
        last_other->next_ = &end_;
        end_.previous_ = last_other;
        others.make_empty();
    }

  private:
    T* node_at(hook const* at) const noexcept {
        return at == &end_ ? nullptr : static_cast<T*>(const_cast<hook*>(at));
    }
    static void insert(hook& node, hook& before, hook& behind) noexcept {
        RONDO_ASSERT(!node.linked(), "a node is in one list at a time");
        node.previous_ = &before;
        node.next_ = &behind;
        before.next_ = &node;
        behind.previous_ = &node;
    }
    void make_empty() noexcept {
        end_.previous_ = &end_;
        end_.next_ = &end_;
    }

    hook end_;
};

// Nodes that were taken out of a list, on their way to somewhere else: cheaper to make than a list,
// and passed on by value. One that is in it cannot leave by itself.
template <class T>
class linked_chain {
    using hook = list_hook<T>;

  public:
    bool empty() const noexcept { return first_ == nullptr; }
    bool has_one() const noexcept { return first_ != nullptr && first_->next_ == nullptr; }
    void push_back(T& node) noexcept {
        hook& last = node;
        RONDO_ASSERT(!last.linked(), "a node is in one list at a time");
        if (first_ != nullptr) {
            last_->next_ = &last;
        } else {
            first_ = &last;
        }
        last_ = &last;
    }
    void push_front(T& node) noexcept {
        hook& first = node;
        RONDO_ASSERT(!first.linked(), "a node is in one list at a time");
        if (first_ == nullptr) last_ = &first;
        first.next_ = first_;
        first_ = &first;
    }
    // Whoever has the node may link it again, or end its life: it is not touched any more.
    T* pop_front() noexcept {
        hook* const first = first_;
        if (first == nullptr) return nullptr;
        first_ = first->next_;
        first->next_ = nullptr;
        return static_cast<T*>(first);
    }

  private:
    hook* first_ = nullptr;
    hook* last_ = nullptr;  // if there is a first one
};

}  // namespace rondo
