// mpsc_channel.hpp: what the ends of an mpsc channel share. The algorithm: src/sync/mpsc.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/core/waiter.hpp"
#include "rondo/sync/detail/block_list.hpp"

namespace rondo::detail {

// Where senders wait for the end of the receiver.
class mpsc_end final : public wait_queue {
  public:
    void reach() noexcept;
    bool reached() const noexcept {
        // acquire: pairs with the release in reach()
        return reached_.load(std::memory_order_acquire);
    }

  private:
    bool grant(waiter&) noexcept override { return reached(); }

    atomic<bool> reached_{false};
};

// The part that does not depend on the type of the values: who is there, and who sleeps. The queue
// is the receiver's; there is one receiver, so at most one waits in it.
class mpsc_base : public wait_queue {
  public:
    // A sender has changed something that the receiver may sleep for.
    void signal() noexcept {
        // seq_cst: I1
        std::uint32_t const receiver = receiver_.load();
        if (receiver != awake) [[unlikely]]
            signal_to(receiver);
    }
    // The same, where it is rare enough for the lock: needs no order of the change before it.
    void signal_surely() noexcept;

    void add_sender() noexcept {
        senders_.fetch_add(1, std::memory_order_relaxed);  // by a sender: it is not the first
    }
    // False: there is none any more, and there will be none.
    bool add_sender_if_any() noexcept;
    void drop_sender() noexcept;
    std::size_t sender_count() const noexcept { return senders_.load(std::memory_order_relaxed); }

    void add_weak_sender() noexcept {
        owners_.fetch_add(weak_sender, std::memory_order_relaxed);  // by an owner
    }
    void drop_weak_sender() noexcept { disown(weak_sender); }
    std::size_t weak_sender_count() const noexcept {
        return owners_.load(std::memory_order_relaxed) / weak_sender;
    }

    mpsc_end& end() noexcept { return end_; }
    bool closed() const noexcept { return end_.reached(); }
    bool deserted() const noexcept {
        return senders_.load() == 0;  // seq_cst: I1
    }

  protected:
    mpsc_base() = default;
    ~mpsc_base() = default;

    // Nothing is received any more: what is or comes into the list is to be destroyed.
    void receiver_gone() noexcept;
    // The receiver's thread sleeps until a recv() could be answered.
    void sleep() noexcept;
    void disown(std::size_t part) noexcept;

    // Whether a recv() need not wait.
    virtual bool answerable() const noexcept = 0;
    // Destroys what is in the list, with no lock held meanwhile.
    virtual void discard() noexcept = 0;
    virtual void destroy() noexcept = 0;

    // owners_ is made of these.
    static constexpr std::size_t the_receiver = 1;
    static constexpr std::size_t the_senders = 2;  // all of them together
    static constexpr std::size_t weak_sender = 4;

  private:
    bool grant(waiter&) noexcept override;
    void give_back(waiter&) noexcept override;
    void signal_to(std::uint32_t receiver) noexcept;

    // receiver_ is one of these.
    static constexpr std::uint32_t awake = 0;
    static constexpr std::uint32_t waits = 1;  // and whoever has something for it wakes it
    static constexpr std::uint32_t gone = 2;   // and whoever pushed something destroys it

    atomic<std::uint32_t> receiver_{awake};
    atomic<std::size_t> senders_{1};
    atomic<std::size_t> owners_{the_receiver + the_senders};
    mpsc_end end_;
};

// Room is what there is for values: unlimited_room, limited_room.
template <class T, class Room>
class mpsc_channel final : public mpsc_base, public recycled {
  public:
    explicit mpsc_channel(Room::limit limit) : room_(limit) {}

    // False: too late, and the value is where it was. Throws std::bad_alloc, and then too.
    bool push(T& value) {
        if (!list_.push(value)) return false;
        signal();
        return true;
    }

    Room& room() noexcept { return room_; }
    Room const& room() const noexcept { return room_; }
    std::size_t length() const noexcept { return list_.length(); }

    // What follows is for the receiver.

    bool has_next() const noexcept { return list_.has_next(); }
    T pop() noexcept {
        T value = list_.pop();
        room_.give_back(1);
        return value;
    }
    // Appends up to `limit`, of which at least one must be there. Throws what the vector throws.
    std::size_t pop_many(std::vector<T>& to, std::size_t limit) {
        struct popped {
            Room& room;
            std::size_t count = 0;
            ~popped() { room.give_back(count); }
        } done{room_};
        while (done.count < limit && has_next()) {
            if (to.size() == to.capacity()) to.reserve(to.size() * 2 + 1);
            to.push_back(list_.pop());
            ++done.count;
        }
        return done.count;
    }

    // Waits for a push that is under way: a few instructions of another thread, unless that was
    // interrupted in the middle of them. `spins` counts the calls.
    void await_push(int spins) noexcept {
        constexpr int patience = checked_build ? 1 : 100;
        if (spins < patience) {
            spin_pause();
        } else {
            sleep();
        }
    }

    // Whether nothing is there and nothing will come.
    bool ended() const noexcept {
        // The senders first: the list is final only when they are gone, or kept out.
        bool const over = deserted() || (closed() && room_.all_back());
        return over && list_.length() == 0;
    }

    void close() noexcept {
        room_.close();
        if constexpr (!Room::limited) list_.close();  // else permits that are out may still send
        end().reach();
        signal_surely();
    }
    void drop_receiver() noexcept {
        close();
        list_.close();
        receiver_gone();
        disown(the_receiver);
    }

    bool answerable() const noexcept override { return has_next() || ended(); }

  private:
    void discard() noexcept override {
        for (;;) {
            slot<T>* passed = nullptr;
            {
                std::lock_guard const guard{lock()};
                passed = list_.pass_over();
            }
            if (passed == nullptr) return;
            passed->drop();
        }
    }
    void destroy() noexcept override { delete this; }

    [[no_unique_address]] Room room_;
    block_list<T> list_;
};

struct unlimited_room {
    struct limit {};
    static constexpr bool limited = false;

    explicit unlimited_room(limit) noexcept {}
    void give_back(std::size_t) noexcept {}
    bool all_back() const noexcept { return true; }
    void close() noexcept {}
};

}  // namespace rondo::detail
