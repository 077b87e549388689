// connection.hpp: a client's connection: one request after the other.
//
//   idle -> head -> handler -> rest of the body -> idle ...           -> closed
//
// While it is idle it has no buffers, so that thousands cost little; and the worker may cancel its
// read, to drain.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "channel.hpp"
#include "rondo/core/task.hpp"
#include "rondo/http/exchange.hpp"
#include "rondo/http/head_text.hpp"
#include "rondo/sync/notify.hpp"
#include "site.hpp"

namespace rondo::http::detail {

class connection final : public channel {
  public:
    using endpoint = boost::asio::ip::tcp::endpoint;

    connection(socket s, endpoint const& peer, site& at,
               std::shared_ptr<boost::asio::ssl::context> tls);
    ~connection();

    // A proxy says whose connection it is, before all else; false: it does not.
    task<bool> be_announced();
    // Until it ends.
    task<void> serve();
    // The server drains: an idle connection ends.
    void drain() noexcept;

    // What an exchange offers.
    request_head const& head() const noexcept { return head_; }
    endpoint const& peer() const noexcept { return peer_; }
    endpoint const& local() noexcept;
    std::string_view peer_address();
    std::string_view local_address();
    std::string_view request_id();
    std::size_t worker() const noexcept { return site_.index; }
    response_text& answer() noexcept { return answer_; }
    bool answered() const noexcept { return head_sent_ && out_head_ == nullptr; }

    task<std::expected<std::string_view, failure>> read();
    task<done> inform(response_text* hints);
    task<done> send(std::string_view body);
    task<done> send_file(int file, std::uint64_t offset, std::uint64_t length);
    task<done> write(std::string_view piece);
    task<done> write_some_file(int file, std::uint64_t offset, std::uint64_t length);
    task<done> flush();
    task<done> finish(std::span<field const> trailer);
    task<done> upgrade();
    task<void> gone();
    void keep_until_end(std::shared_ptr<void> what) { kept_.push_back(std::move(what)); }
    void cut() noexcept { cut_ = true; }

  private:
    // Waits for the first byte of what comes before all requests; false: there will be none.
    task<bool> await_opening();
    task<done> handshake();
    // Waits for the first byte of a request; false: there will be none.
    task<bool> await_request();
    // Whether something of one was read. The end of a line is nothing of it: some clients send one
    // behind a body (RFC 9112, 2.2). It stays, as a second one is refused.
    bool has_begun() const noexcept { return !std::string_view{"\r\n"}.starts_with(in_.data()); }
    // Whether one has come, though its wait was cancelled.
    bool has_come() noexcept;
    task<std::expected<void, head_error>> read_head(bool* gone);
    class request_note;
    task<bool> answer_request();
    task<bool> end_answer();
    task<bool> complete();
    bool has_unread() noexcept;
    task<bool> drop_rest();
    task<done> refuse(int status, std::string_view reason);
    // A request of which nobody hears but who looks after the server.
    task<void> turn_down(int status, char const* reason);
    task<void> linger();

    class interim;
    // A head of 1xx (interim.cpp).
    task<done> send_interim(std::string_view text);
    task<done> send_continue();
    // Until none is being sent: what is left of it goes before the answer.
    task<void> let_interim_end();
    task<done> write_behind_interim(std::string_view piece);
    task<done> write_file_behind_interim(int file, std::uint64_t offset, std::uint64_t length);
    task<done> finish_behind_interim(std::span<field const> trailer);
    task<done> finish_tunnel();
    bool is_followed() const noexcept;
    // It is complete, and was not cleared before somebody began to send it.
    bool has_head() const noexcept { return head_sent_ && !is_to_be_made_anew(answer_); }
    // Completes the head, if that was not done.
    void seal(http::framing otherwise);

    site& site_;
    endpoint peer_;
    std::shared_ptr<boost::asio::ssl::context> secrets_;  // of the door it came in by; or none
    std::optional<endpoint> local_;
    std::string peer_address_;  // empty: nobody has asked
    std::string local_address_;
    std::string request_id_;  // the same
    request_head head_;
    std::vector<field> fields_;
    response_text answer_;
    std::vector<std::shared_ptr<void>> kept_;  // until the request has ended
    std::optional<failure> broken_;            // the request could not be read
    bool idle_ = false;  // what it waits for is not worth waiting for at the end of the server
    bool first_ = true;
    bool head_sent_ = false;
    bool continued_ = false;      // 100 was sent, or need not be
    bool informing_ = false;      // a 1xx is being sent
    bool owes_continue_ = false;  // behind that, 100
    notify informed_;             // no longer
    bool keep_ = true;
    bool tunnel_ = false;
    bool cut_ = false;  // the answer will not be complete
};

}  // namespace rondo::http::detail
