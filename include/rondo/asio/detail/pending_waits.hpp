// pending_waits.hpp: the waits of one execution context that are still in some queue.
//
// A wait in a queue is known to that queue only; Asio learns of it when it is posted. So that a
// context which is destroyed early takes its waits along, they are listed here, in a service of
// the context. src/asio/pending_waits.cpp says how that ends.
#pragma once

#include <boost/asio/execution_context.hpp>
#include <cstdint>

#include "rondo/core/linked_list.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/core/short_lock.hpp"

namespace rondo::asio::detail {

class pending_wait : list_hook<pending_wait> {
  public:
    // The context goes away. True: it has left its queue and is destroyed. False: it had been
    // decided, and its wake-up comes.
    virtual bool abandon() noexcept = 0;

  protected:
    ~pending_wait() = default;

  private:
    friend class pending_waits;
    friend linked_list<pending_wait>;
};

class pending_waits final : public boost::asio::execution_context::service {
  public:
    inline static boost::asio::execution_context::id id;

    explicit pending_waits(boost::asio::execution_context& context);

    void add(pending_wait& w) noexcept;

    // Open while a decided wait is posted to its executor, which owns it from then on. The
    // context is not destroyed meanwhile.
    class hand_over {
      public:
        hand_over(pending_waits& from, pending_wait& w) noexcept : from_(from) { from.remove(w); }
        ~hand_over() { from_.settle(); }
        hand_over(hand_over const&) = delete;
        hand_over& operator=(hand_over const&) = delete;

      private:
        pending_waits& from_;
    };

  private:
    // Set in owed_ once the context waits for the last hand_over.
    static constexpr std::uint32_t closing = 1U << 31U;

    void shutdown() noexcept override;
    void remove(pending_wait& w) noexcept;
    void settle() noexcept;
    pending_wait* take_first() noexcept;

    short_lock lock_;
    linked_list<pending_wait> waits_;
    atomic<std::uint32_t> owed_{0};  // waits that were added and not yet handed over or abandoned
};

}  // namespace rondo::asio::detail
