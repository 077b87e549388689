// head_text.hpp: a head under construction, written as text in the order of the calls.
//
//   x->answer().status(404);
//   x->answer().add("content-type", "text/plain");
//
// Guarantee      a name is a token (the programmer's promise). A CR, LF or NUL in a value becomes a
//                space: no value can end the line that it is in.
// Framing        is said by length() or chunked(), never by add(): whoever sends the head writes
//                the fields for it, and those of the connection.
// Complete       is a head when somebody begins to send the message. A status or a field that is
//                said later is not part of it, until all of it is forgotten.
// Allocation     a recycled block; larger heads from the heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "rondo/http/detail/buffer.hpp"
#include "rondo/http/message.hpp"

namespace rondo::http {

class head_text {
  public:
    // Content-Length, Transfer-Encoding and Connection are not for here: see below.
    void add(std::string_view name, std::string_view value);
    void add(std::string_view name, std::uint64_t value);
    // A field of a head that was scanned: it is sound.
    void pass_on(field const& f);

    // The body has so many bytes; or it is not known how many. Without either, what is sent in one
    // piece has its length and what is streamed is chunked.
    void length(std::uint64_t n) noexcept {
        framing_ = http::framing::length;
        length_ = n;
    }
    void chunked() noexcept { framing_ = http::framing::chunked; }

    // The connection ends after this message.
    void close() noexcept { close_ = true; }

    // For whoever sends it.
    bool closes() const noexcept { return close_; }
    bool dated() const noexcept { return dated_; }
    std::optional<http::framing> framing() const noexcept { return framing_; }
    std::uint64_t promised() const noexcept { return length_; }
    bool sealed() const noexcept { return sealed_; }
    void add_framing(http::framing f);

  protected:
    // Fields begin after so many bytes, for a first line that is written last.
    explicit head_text(std::size_t room) noexcept : room_(room) {}
    void forget() noexcept;
    // Takes a block when the first thing is said: many wait for long with nothing to say.
    void open() {
        if (!text_.empty()) return;
        text_.make_room(room_);
        text_.commit(room_);
    }
    // The empty line behind the fields.
    void complete() {
        open();
        text_.append("\r\n");
        sealed_ = true;
    }

    detail::buffer text_;

  private:
    void write(std::string_view name, std::string_view value, bool sound);

    std::size_t room_;
    std::uint64_t length_ = 0;
    std::optional<http::framing> framing_;
    bool close_ = false;
    bool dated_ = false;
    bool sealed_ = false;
};

class response_text : public head_text {
  public:
    response_text() noexcept : head_text(room) {}

    // 200 by default; the phrase is the standard one by default.
    void status(int code, std::string_view reason = {}) noexcept;
    int status() const noexcept { return status_; }

    // Forgets everything that was said.
    void clear() noexcept;
    // The whole as text, with room behind it for a small body.
    detail::buffer& seal();
    void release() noexcept { text_.release(); }

  private:
    static constexpr std::size_t room = 80;

    int status_ = 200;
    std::size_t reason_size_ = 0;
    char reason_[48];
};

class request_text : public head_text {
  public:
    request_text() noexcept : head_text(0) {}

    // The first line; it comes before the fields, and forgets what was said before.
    void line(std::string_view verb, std::string_view target);
    http::method method() const noexcept { return method_; }

    detail::buffer& seal();
    void release() noexcept { text_.release(); }

  private:
    http::method method_ = http::method::other;
};

}  // namespace rondo::http
