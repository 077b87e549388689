#include "rondo/http/exchange.hpp"

#include <utility>

#include "connection.hpp"

namespace rondo::http {

request_head const& exchange::head() const noexcept { return on_.head(); }
exchange::endpoint const& exchange::peer() const noexcept { return on_.peer(); }
exchange::endpoint const& exchange::local() const noexcept { return on_.local(); }
std::string_view exchange::peer_address() const { return on_.peer_address(); }
std::string_view exchange::local_address() const { return on_.local_address(); }
std::string_view exchange::request_id() const { return on_.request_id(); }
bool exchange::secure() const noexcept { return on_.secure(); }
std::size_t exchange::worker() const noexcept { return on_.worker(); }
bool exchange::ended() const noexcept { return on_.body_ended(); }
http::fields exchange::trailers() const noexcept { return on_.trailers(); }
response_text& exchange::answer() noexcept { return on_.answer(); }
bool exchange::answered() const noexcept { return on_.answered(); }

task<std::expected<std::string_view, failure>> exchange::read() { return on_.read(); }
task<exchange::done> exchange::inform(response_text* hints) { return on_.inform(hints); }
task<exchange::done> exchange::send(std::string_view body) { return on_.send(body); }
task<exchange::done> exchange::send_file(int file, std::uint64_t offset, std::uint64_t length) {
    return on_.send_file(file, offset, length);
}
task<exchange::done> exchange::write(std::string_view piece) { return on_.write(piece); }
task<exchange::done> exchange::write_file(int file, std::uint64_t offset, std::uint64_t length) {
    return on_.write_some_file(file, offset, length);
}
task<exchange::done> exchange::flush() { return on_.flush(); }
task<exchange::done> exchange::finish(std::span<field const> trailer) {
    return on_.finish(trailer);
}
task<exchange::done> exchange::upgrade() { return on_.upgrade(); }
std::uint64_t exchange::received() const noexcept { return on_.body_received(); }
std::uint64_t exchange::sent() const noexcept { return on_.body_sent(); }
task<void> exchange::gone() { return on_.gone(); }
void exchange::keep_until_end(std::shared_ptr<void> what) { on_.keep_until_end(std::move(what)); }
void exchange::cut() noexcept { on_.cut(); }

}  // namespace rondo::http
