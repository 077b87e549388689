// join_group.hpp: what a join_set and its tasks share; it goes with the last of them.
//
// The page at the head of src/core/join_group.cpp has the states of a member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/core/detail/root.hpp"
#include "rondo/core/linked_list.hpp"
#include "rondo/core/waiter.hpp"

namespace rondo::detail {

class join_group;

// A task of a set, without its result.
class join_member : public root_base, list_hook<join_member> {
  public:
    join_member(executor& where, std::source_location origin, stop_token parent,
                join_group& group) noexcept
        : root_base(where, origin, parent), group_(group) {}

  protected:
    void end() noexcept;

  private:
    friend join_group;
    friend linked_list<join_member>;

    enum class place : std::uint8_t {
        running,
        asked,    // runs, and was asked to stop
        ended,    // waits to be joined
        granted,  // to a joiner that has not taken it yet
        outside,  // joined, detached, or not in the set yet
    };

    join_group& group_;           // until it has ended
    cell<std::uint64_t> number_;  // in the set
    cell<place> place_{place::outside};
};

// A wait in the line of a group.
class group_op : public waiter {
  public:
    enum class wish : std::uint8_t {
        next,    // a member that has ended, or to hear that there is none
        silence  // that none runs any more
    };

    group_op(join_group& group, wish w) noexcept;
    group_op(group_op&& other) noexcept
        : waiter(static_cast<waiter&&>(other)), group_(other.group_), wish_(other.wish_) {}

    // What it was granted: null when the set was empty.
    join_member* member() const noexcept { return member_; }

  protected:
    join_group& group() const noexcept { return *group_; }

  private:
    friend join_group;

    join_group* group_;
    wish wish_;
    bool joined_ = false;  // try_join() has taken the member out of the set
    cell<join_member*> member_{nullptr};
};

class join_group final : public wait_queue, public recycled {
  public:
    // For the set, and for each task until it has ended.
    void hold() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }
    void let_go() noexcept;

    std::size_t size() noexcept;
    // Whether somebody waits, or was granted a member and has not taken it.
    bool awaited() noexcept;

    // Before the member begins.
    void add(join_member& m) noexcept;
    // Asks those who are there now to stop. (What a stop does may be to spawn others.)
    void stop_all() noexcept;
    // The same, and those who come meanwhile.
    void stop_for_good() noexcept;
    // The same, and those who are added later, until end_shutdown() was called as often.
    void begin_shutdown() noexcept;
    void end_shutdown() noexcept;
    void detach_all() noexcept;

    // Grants it now if it can.
    bool try_grant(group_op& op) noexcept;
    // The same for one that takes the member at once, whatever happens.
    bool try_join(group_op& op) noexcept;
    // The member that it was granted is joined, and out of the set.
    void join(group_op& op) noexcept;
    // What was granted and not taken is the first to be joined again.
    void put_back(join_member& m) noexcept;
    // Drops those that have ended.
    void drop_ended() noexcept;

  private:
    friend join_member;
    using place = join_member::place;
    using member_list = linked_list<join_member>;

    void ended(join_member& m) noexcept;
    std::uint64_t next_number() noexcept;
    void stop_before(std::uint64_t number) noexcept;
    bool grant(waiter& first) noexcept override;
    bool grant_next(group_op& op) noexcept;
    void move(join_member& m, place to) noexcept;
    void take_out(join_member& m) noexcept;
    member_list& list_at(place p) noexcept;
    bool none_runs() const noexcept { return running_.empty() && asked_.empty(); }
    join_member* take(place from) noexcept;
    void drop_all(place from) noexcept;
    bool detach_granted() noexcept;

    // Under the lock.
    member_list running_;
    member_list asked_;
    member_list ended_;
    member_list granted_;
    cell<std::size_t> size_;
    cell<std::uint64_t> next_number_;
    cell<std::size_t> shutdowns_;  // that somebody waits for: who is added is asked to stop

    atomic<int> owners_{1};
};

inline group_op::group_op(join_group& group, wish w) noexcept
    : waiter(group), group_(&group), wish_(w) {}

}  // namespace rondo::detail
