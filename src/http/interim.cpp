// interim.cpp: what comes before an answer: 100, hints, and the order of all of these.
//
// One task may read the body, and have 100 sent, while another one has hints for the client, or the
// answer. While one of these is not taken whole no other may begin.
//   hints    that come meanwhile are left out: they are not worth waiting for
//   100      goes behind it, from the task that sends that: the client may wait for it with the
//            body. Who reads does not wait: the client may as well have begun with the body, and
//            take nothing before that is read
//   answers  wait
#include <string_view>
#include <utility>

#include "connection.hpp"
#include "rondo/core/assert.hpp"

namespace rondo::http::detail {

namespace {

constexpr std::string_view say_continue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

// Notes that a 1xx is being sent, until it has been, or its sender is stopped.
class connection::interim {
  public:
    explicit interim(connection& c) noexcept : of_(c) { of_.informing_ = true; }
    ~interim() {
        of_.informing_ = false;
        of_.informed_.notify_waiters();
    }
    interim(interim const&) = delete;
    interim& operator=(interim const&) = delete;

  private:
    connection& of_;
};

task<done> connection::send_interim(std::string_view text) {
    if (informing_) co_return done{};
    interim const sending{*this};
    while (!text.empty()) {
        pieces p;
        p.add(text);
        auto const sent = co_await channel::send(&p);
        if (!sent) co_return sent;
        text = std::exchange(owes_continue_, false) ? say_continue : std::string_view{};
    }
    co_return done{};
}

task<done> connection::send_continue() {
    if (informing_) {
        owes_continue_ = true;
        co_return done{};
    }
    co_return co_await send_interim(say_continue);
}

task<void> connection::let_interim_end() {
    while (informing_) co_await informed_.notified();
}

task<done> connection::write_behind_interim(std::string_view piece) {
    co_await let_interim_end();
    co_return co_await write(piece);
}

task<done> connection::write_file_behind_interim(int file, std::uint64_t offset,
                                                 std::uint64_t length) {
    co_await let_interim_end();
    co_return co_await write_some_file(file, offset, length);
}

task<done> connection::finish_behind_interim(std::span<field const> trailer) {
    co_await let_interim_end();
    co_return co_await finish(trailer);
}

task<done> connection::inform(response_text* hints) {
    RONDO_ASSERT(is_interim(hints->status()), "what comes before an answer is 1xx");
    if (has_head()) co_return std::unexpected{misused("the head was sent before")};
    if (head_.minor == 0) co_return done{};
    co_return co_await send_interim(hints->seal().data());
}

}  // namespace rondo::http::detail
