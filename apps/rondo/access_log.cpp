#include "access_log.hpp"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <exception>
#include <iterator>
#include <mutex>
#include <system_error>

namespace rondo::gateway {

namespace {

// As between the quotes of JSON, in ASCII: a byte above it stands for itself as a code point.
std::string escaped(std::string_view text) {
    std::string out;
    for (char const c : text) {
        auto const byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20 || byte >= 0x7f) {
            fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
        } else {
            out += c;
        }
    }
    return out;
}

double ms(std::chrono::nanoseconds d) noexcept { return static_cast<double>(d.count()) / 1e6; }

std::string stamp(std::chrono::system_clock::time_point t) {
    auto const in_ms = std::chrono::time_point_cast<std::chrono::milliseconds>(t);
    auto const seconds = std::chrono::floor<std::chrono::seconds>(in_ms);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                       (in_ms - seconds).count());
}

std::string_view name_of(http::refused why) noexcept {
    switch (why) {
        case http::refused::tenant_full:
            return "tenant_full";
        case http::refused::evicted:
            return "evicted";
        case http::refused::full:
            return "full";
        case http::refused::draining:
            return "draining";
        case http::refused::expired:
            return "expired";
        case http::refused::waited_too_long:
            return "waited_too_long";
        case http::refused::gone:
            return "gone";
    }
    return "";
}

// By hand: what stdio could not write it forgets, without a word, and a line that it has begun is
// continued by the next.
class stdout_lines : public spdlog::sinks::base_sink<std::mutex> {
  public:
    explicit stdout_lines(std::shared_ptr<spdlog::logger> problems)
        : problems_(std::move(problems)) {}

  private:
    void sink_it_(spdlog::details::log_msg const& m) override {
        text_.clear();
        if (in_a_line_) text_ += '\n';
        text_.append(m.payload.data(), m.payload.size());
        text_ += '\n';
        int const error = write_all(text_);
        if (error == 0) {
            std::uint64_t const lost = std::exchange(lost_, 0);
            if (lost != 0)
                problems_->warn("the access log is written again: {} lines are lost", lost);
        } else if (lost_++ == 0) {
            problems_->error("the access log cannot be written: {}",
                             std::generic_category().message(error));
        }
    }
    void flush_() override {}

    // Why not.
    int write_all(std::string_view rest) {
        while (!rest.empty()) {
            ssize_t const n = ::write(STDOUT_FILENO, rest.data(), rest.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return errno;
            in_a_line_ = rest[static_cast<std::size_t>(n) - 1] != '\n';
            rest.remove_prefix(static_cast<std::size_t>(n));
        }
        return 0;
    }

    std::shared_ptr<spdlog::logger> problems_;
    std::string text_;
    bool in_a_line_ = false;
    std::uint64_t lost_ = 0;
};

}  // namespace

std::shared_ptr<spdlog::sinks::sink> lines_on_stdout(std::shared_ptr<spdlog::logger> problems) {
    return std::make_shared<stdout_lines>(std::move(problems));
}

access_line::~access_line() {
    try {
        write();
    } catch (std::exception const&) {
        return;  // there was no memory for it
    }
}

void access_line::write() const {
    access_record r;
    r.time = time_;
    r.client = x_.peer_address();
    r.method = x_.head().verb;
    r.target = x_.head().target;
    r.status = x_.answered() ? x_.answer().status() : 0;
    r.bytes = x_.sent();
    r.duration = clock::now() - came_;
    r.request_id = x_.request_id();
    r.tenant = note.tenant;
    r.wait = note.waited;
    if (note.turned_away) r.refused = name_of(*note.turned_away);
    to_->info(json_ ? to_json(r) : to_text(r));
}

void write_refusal(spdlog::logger& to, bool json, http::refused_request const& r) noexcept {
    try {
        std::string const client = r.peer.address().to_string();
        access_record line;
        line.time = std::chrono::system_clock::now();
        line.client = client;
        line.status = r.status;
        line.bytes = r.reason.size() + 1;  // and the end of the line
        line.refused = r.status == 408 ? "too_slow" : "malformed";
        line.reason = r.reason;
        to.info(json ? to_json(line) : to_text(line));
    } catch (std::exception const&) {
        return;  // there was no memory for it
    }
}

std::string to_text(access_record const& r) {
    std::string const asked =
        r.method.empty() ? "-" : fmt::format("{} {}", escaped(r.method), escaped(r.target));
    std::string line = fmt::format("{} {} \"{}\" {} {}B {:.1f}ms", stamp(r.time), r.client, asked,
                                   r.status, r.bytes, ms(r.duration));
    if (!r.tenant.empty()) {
        line += fmt::format(" tenant=\"{}\" wait={:.1f}ms", escaped(r.tenant), ms(r.wait));
    }
    if (!r.refused.empty()) line += fmt::format(" refused={}", r.refused);
    if (!r.reason.empty()) line += fmt::format(" reason=\"{}\"", escaped(r.reason));
    if (!r.request_id.empty()) line += fmt::format(" id={}", escaped(r.request_id));
    return line;
}

std::string to_json(access_record const& r) {
    std::string line = fmt::format(
        R"({{"time":"{}","client":"{}","method":"{}","target":"{}","status":{},"bytes":{},)"
        R"("duration_ms":{:.3f})",
        stamp(r.time), escaped(r.client), escaped(r.method), escaped(r.target), r.status, r.bytes,
        ms(r.duration));
    if (!r.tenant.empty()) {
        line += fmt::format(R"(,"tenant":"{}","wait_ms":{:.3f})", escaped(r.tenant), ms(r.wait));
    }
    if (!r.refused.empty()) line += fmt::format(R"(,"refused":"{}")", r.refused);
    if (!r.reason.empty()) line += fmt::format(R"(,"reason":"{}")", escaped(r.reason));
    if (!r.request_id.empty()) {
        line += fmt::format(R"(,"request_id":"{}")", escaped(r.request_id));
    }
    return line + "}";
}

}  // namespace rondo::gateway
