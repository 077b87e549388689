// recycled_signal.hpp: a cancellation signal, with the memory that its slot has come to need.
//
// What an operation puts into a slot is allocated by Asio, which keeps it for the next one only
// within one call of run(). A slot whose signal lives on keeps it too. So signals outlive their
// operations: each thread has some that are free.
//
// Thread safety  none; used at the place of the operation. It may be opened in one thread and
//                closed in another, whose it is then.
// Bounds         a thread keeps at most 64 free signals, and frees them when it ends.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <memory>

namespace rondo::asio::detail {

class recycled_signal {
  public:
    // Throws std::bad_alloc.
    void open();
    // What is in the slot is destroyed, and the signal free for others.
    void close() noexcept;

    // Connected while it is open.
    boost::asio::cancellation_slot slot() const noexcept {
        return signal_ ? signal_->slot() : boost::asio::cancellation_slot{};
    }
    void emit() const {
        if (signal_) signal_->emit(boost::asio::cancellation_type::all);
    }

  private:
    std::unique_ptr<boost::asio::cancellation_signal> signal_;
};

}  // namespace rondo::asio::detail
