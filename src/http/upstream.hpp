// upstream.hpp: a connection of ours to an upstream, and the idle ones of a worker.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "channel.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/http/client.hpp"
#include "rondo/http/head_text.hpp"

namespace rondo::http::detail {

class pool;

class upstream final : public channel {
  public:
    using endpoint = boost::asio::ip::tcp::endpoint;

    upstream(socket s, endpoint const& to, pool& from);

    task<done> connect();
    // Before each request.
    void begin(bool reused) noexcept;

    bool reused() const noexcept { return reused_; }
    bool answered() const noexcept { return answered_; }
    request_text& head() noexcept { return request_; }
    endpoint const& to() const noexcept { return to_; }
    pool& from_pool() const noexcept { return pool_; }

    task<done> write(std::string_view piece);
    task<done> finish(std::span<field const> trailer);
    task<std::expected<response_head const*, failure>> read_head();
    task<std::expected<response_head const*, failure>> read_any_head();
    task<std::expected<std::string_view, failure>> read() { return read_body(); }
    std::optional<std::expected<std::string_view, failure>> try_read() { return try_read_body(); }

    // Whether another request may go over it.
    bool clean() const noexcept;
    // Whether the other side has closed it, or said something that nobody asked for.
    bool stale() noexcept;
    void rest() noexcept;
    bool has_leftovers() const noexcept { return !in_.empty(); }

  private:
    void seal();
    // Until something of the request was sent; an error if something comes before.
    task<done> await_request();
    bool has_ended_unasked() noexcept { return listens_ && sent_nothing() && stale(); }
    failure unasked() const noexcept;
    task<std::expected<void, failure>> read_one_head();
    failure refused_by(head_error e) const noexcept;
    failure with_retry(failure f) const noexcept;
    void renew_patience() noexcept;

    endpoint to_;
    pool& pool_;
    request_text request_;
    response_head response_;
    std::vector<field> fields_;
    int interim_ = 0;  // 1xx that have come
    bool reused_ = false;
    bool head_sent_ = false;
    bool answered_ = false;  // a byte of the response came
    bool complete_ = false;  // its head came
    bool tunnel_ = false;
    bool listens_ = false;  // for what comes before anything is sent
};

// The idle connections of one worker.
class pool {
  public:
    pool(client_options const& o, boost::asio::io_context& at, clock::duration tick)
        : options(o), context(at), deadlines(tick), table(o.limits.fields) {}

    // One that was used before, or null. It is looked at: the other side may have closed it, or
    // said something that nobody asked for, which would be taken for the next answer.
    std::unique_ptr<upstream> take(boost::asio::ip::tcp::endpoint const& to);
    void give_back(std::unique_ptr<upstream> u) noexcept;
    void forget_old() noexcept;
    void clear() noexcept { idle_.clear(); }
    // Sees to it that deadlines are looked after, as long as there are any.
    void look_after(runtime& rt);
    task<void> end();

    client_options const& options;
    boost::asio::io_context& context;
    watch deadlines;
    std::vector<field> table;

  private:
    struct idle {
        std::unique_ptr<upstream> connection;
        time_point until;
    };
    task<void> look();

    std::map<boost::asio::ip::tcp::endpoint, std::vector<idle>> idle_;
    std::optional<join_handle<void>> looking_;
};

}  // namespace rondo::http::detail
