// on_arrival.hpp: a read of a socket that takes its room when the bytes are there, and knows when
// it has read all of them.
//
// Room           a connection that waits for bytes has no block for them: thousands wait, and those
//                that do not share a few blocks, which are warm.
// Fewer calls    Asio begins each read by trying it, though the answer to a request, or the next
//                request, is hardly there yet: a system call for nothing, each time. It need not
//                try after a read that found the end of what was there, as more is announced by an
//                event; but it takes none but an empty read for such a one, since behind what a
//                short read got there may be a FIN, whose event was the same. The system says how
//                it is if it is asked to (TCP_INQ): 0 is nothing behind it, and no FIN.
//                An error may be behind it. So who expects more of a message has to try before it
//                waits; who has written since then would have heard of it.
//                Who also looks at the socket before a message begins, as is done with upstreams,
//                finds a FIN by itself: a short read is enough then, and cheaper than to ask.
//
// What a read does when its event comes is no part of Asio's interface, so this is for the one
// version that it was written for, over epoll. With others reads are as usual, and who waits has a
// block. The system is Linux 5.6 or later, as for files: before 5.1 TCP_INQ did not tell of a FIN.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/detail/reactive_socket_recv_op.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/version.hpp>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "rondo/http/detail/buffer.hpp"

namespace rondo::http::detail {

// Has the system tell what is left behind a read.
inline void ask_for_rest(int socket) noexcept {
    int const on = 1;
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_INQ, &on, sizeof on);
}

struct arrived {
    ssize_t size;  // as recv() says
    bool all;      // there is nothing behind it
};

inline arrived receive(int socket, char* to, std::size_t room) noexcept {
    iovec piece{to, room};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> notes;
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = notes.data();
    message.msg_controllen = notes.size();
    ssize_t const n = ::recvmsg(socket, &message, MSG_DONTWAIT);
    cmsghdr const* const note = n > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (note == nullptr || note->cmsg_level != IPPROTO_TCP || note->cmsg_type != TCP_CM_INQ) {
        return {n, false};
    }
    int left = 1;
    std::memcpy(&left, CMSG_DATA(note), sizeof left);
    return {n, left == 0};
}

// The same for who looks before it waits for anything.
inline arrived receive_some(int socket, char* to, std::size_t room) noexcept {
    ssize_t const n = ::recv(socket, to, room, MSG_DONTWAIT);
    return {n, n > 0 && static_cast<std::size_t>(n) < room};
}

// What a read is given in place of a buffer: where its room is taken.
class on_arrival {
  public:
    using value_type = boost::asio::mutable_buffer;
    using const_iterator = value_type const*;

    // Up to `most`, with room for as much as is wanted.
    on_arrival(buffer& to, std::size_t wanted, std::size_t most, bool looks) noexcept
        : to_(&to), wanted_(wanted), most_(most), looks_(looks) {}

    // As a sequence of buffers it only says that it is not empty.
    const_iterator begin() const noexcept { return &something_; }
    const_iterator end() const noexcept { return &something_ + 1; }

    // The buffer has room, or no block.
    arrived read(int socket) const noexcept {
        bool const had_block = to_->capacity() != 0;
        try {
            if (!had_block) to_->make_room(wanted_);
        } catch (...) {
            errno = ENOMEM;
            return {-1, false};
        }
        std::size_t const room = std::min(to_->room(), most_);
        arrived const a =
            looks_ ? receive_some(socket, to_->tail(), room) : receive(socket, to_->tail(), room);
        if (a.size < 0 && !had_block) {
            int const why = errno;
            to_->release();
            errno = why;
        }
        return a;
    }

  private:
    static constexpr int unused_ = 0;
    value_type something_{const_cast<int*>(&unused_), sizeof unused_};
    buffer* to_;
    std::size_t wanted_;
    std::size_t most_;
    bool looks_;  // before each wait, for an end of the connection
};

}  // namespace rondo::http::detail

#if BOOST_ASIO_VERSION != 102600 || defined(BOOST_ASIO_HAS_IO_URING_AS_DEFAULT)

namespace rondo::http::detail {
inline constexpr bool reads_on_arrival = false;
}

#else

namespace rondo::http::detail {
inline constexpr bool reads_on_arrival = true;
}

template <>
class boost::asio::detail::reactive_socket_recv_op_base<rondo::http::detail::on_arrival>
    : public reactor_op {
  public:
    reactive_socket_recv_op_base(boost::system::error_code const& success, socket_type socket,
                                 socket_ops::state_type, rondo::http::detail::on_arrival const& to,
                                 socket_base::message_flags, func_type then)
        : reactor_op(success, &reactive_socket_recv_op_base::perform_now, then),
          socket_(socket),
          to_(to) {}

  private:
    static status perform_now(reactor_op* base) {
        auto* const o = static_cast<reactive_socket_recv_op_base*>(base);
        for (;;) {
            rondo::http::detail::arrived const a = o->to_.read(o->socket_);
            if (a.size < 0 && errno == EINTR) continue;
            if (a.size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return not_done;
            if (a.size < 0) {
                o->ec_ = boost::system::error_code{errno, boost::system::system_category()};
                return done;
            }
            o->bytes_transferred_ = static_cast<std::size_t>(a.size);
            if (a.size == 0) o->ec_ = boost::asio::error::eof;
            return a.size == 0 || a.all ? done_and_exhausted : done;
        }
    }

    socket_type socket_;
    rondo::http::detail::on_arrival to_;
};

#endif
