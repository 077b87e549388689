// mpsc.hpp: many senders, one receiver, values in the order in which they were sent.
//
//   auto [tx, rx] = mpsc::channel<job>(100);       // room for 100: send() waits when it is full
//   auto [tx, rx] = mpsc::unbounded<event>();      // send() never waits; memory is the limit
//
//   auto sent = co_await tx.send(j);               // unbounded: auto sent = tx.send(e);
//   auto got = co_await rx.recv();                 // expected<job, recv_error>
//
// Guarantee      what one sender sends arrives in its order, once. Of several senders each value
//                has its place in one order, the one in which their sends took effect; senders that
//                wait for room get it in turns.
// Close          when the last sender is gone recv() gives what is left and then says `closed`.
//                When the receiver closes or goes, senders get their values back; a receiver that
//                has closed still gets what was sent before, and what is sent with a permit that
//                was reserved before. What the receiver leaves behind is destroyed with it.
// Values         moved in and out with no lock held, and destroyed with none: a value's destructor
//                may use the channel that it came from. The move must not throw (asserted at
//                compile time).
// Thread safety  a sender may be used by many threads at once, and copied: a copy is another sender
//                of the same channel. A receiver belongs to one thread at a time; whatever that one
//                does, others may call close() and the observers, but for len() and is_empty().
// Memory order   what happens before a send is visible after the recv() of that value; what happens
//                before close(), or the receiver's end, after is_closed() or closed() said so.
// Cancellation   a recv() that is stopped, or loses, has taken nothing: the value stays for the
//                next. A send() that is stopped has not sent, and gives its value back if it was
//                bounded.
// Resumption     on the waiter's executor, never inside a send, a close or a destructor.
// Lifetime       an end outlives its waits; it may be moved meanwhile.
// Allocation     blocks of 32 values, used again; waiting takes none. send() throws std::bad_alloc
//                when there is no memory for a block, and has sent nothing then.
// Examples       examples/sync/pipeline.cpp, examples/sync/event_log.cpp
#pragma once

#include "rondo/sync/mpsc_bounded.hpp"
#include "rondo/sync/mpsc_permit.hpp"
#include "rondo/sync/mpsc_receiver.hpp"
#include "rondo/sync/mpsc_unbounded.hpp"
