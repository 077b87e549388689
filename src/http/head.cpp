// head.cpp: one pass over a header block, from the first byte to the last.
//
// Invariants
//   I1  every line ends with CRLF, and neither CR nor LF is anywhere else.
//   I2  what is accepted has at most one Content-Length and at most one Transfer-Encoding, and not
//       both; the latter is "chunked" and nothing else. So there is one framing.
//   I3  a name is a token directly followed by a colon; a value has no control characters.
//   I4  no byte is looked at beyond the block.
//
// Rejected: to let Boost.Beast parse the block after a scan that only looks for trouble. Two
// parsers that can disagree are how requests are smuggled, and the second one costs as much again.
#include "rondo/http/head.hpp"

#include <algorithm>
#include <optional>

#include "characters.hpp"
#include "methods.hpp"

namespace rondo::http {

namespace {

constexpr std::size_t longest_method = 32;
constexpr std::size_t around_target = longest_method + 12;  // the method, spaces and version
constexpr std::size_t longest_length = 18;                  // digits: below 2^63

// The rest of the block, taken from the front.
class reader {
  public:
    explicit reader(std::string_view block) noexcept
        : at_(block.data()), end_(at_ + block.size()) {}

    bool empty() const noexcept { return at_ == end_; }
    char front() const noexcept { return at_ == end_ ? '\0' : *at_; }
    bool skip(std::string_view text) noexcept {
        if (!std::string_view{at_, end_}.starts_with(text)) return false;
        at_ += text.size();
        return true;
    }
    // All that follow and are of that kind.
    std::string_view take(character what) noexcept {
        char const* to = at_;
        while (to != end_ && is(*to, what)) ++to;
        return take(static_cast<std::size_t>(to - at_));
    }
    std::string_view take_value() noexcept {
        return take(values_at_front(std::string_view{at_, end_}));
    }
    std::string_view take(std::size_t n) noexcept {
        std::string_view const taken{at_, std::min(n, static_cast<std::size_t>(end_ - at_))};
        at_ += taken.size();
        return taken;
    }
    // What is wrong where a line should have ended.
    head_error misplaced(head_error otherwise) const noexcept {
        return front() == '\r' || front() == '\n' ? head_error::bare_cr_or_lf : otherwise;
    }

  private:
    char const* at_;
    char const* end_;
};

std::optional<std::uint64_t> length_of(std::string_view text) noexcept {
    if (text.empty() || text.size() > longest_length) return std::nullopt;
    if (text.size() > 1 && text.front() == '0') return std::nullopt;
    std::uint64_t n = 0;
    for (char const c : text) {
        if (!is_digit(c)) return std::nullopt;
        n = n * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return n;
}

// A name or an address, and perhaps a port.
bool is_authority(std::string_view text) noexcept {
    std::size_t name = 0;
    if (text.starts_with('[')) {
        name = text.find(']');
        if (name == std::string_view::npos || name < 3) return false;
        for (char const c : text.substr(1, name - 1)) {
            if (hex_value(c) == 16 && c != ':' && c != '.') return false;
        }
        ++name;
    } else {
        name = std::min(text.find(':'), text.size());
        for (char const c : text.substr(0, name)) {
            if (!is(c, in_host) || c == '[' || c == ']') return false;
        }
    }
    if (name == 0) return false;
    std::string_view port = text.substr(name);
    if (port.empty()) return true;
    port.remove_prefix(1);
    return text[name] == ':' && port.size() <= 5 && std::ranges::all_of(port, is_digit);
}

// What only some readers take for a separator of segments: bits of a set.
constexpr unsigned escaped_slash = 1;
constexpr unsigned backslash = 2;
constexpr unsigned escaped_backslash = 4;

// A byte of a path, decoded.
struct letter {
    char byte;
    bool escaped;

    bool separates() const noexcept { return byte == '/' && !escaped; }
    // For those who take it for one; 0: nobody does, or everybody.
    unsigned may_separate() const noexcept {
        if (byte == '\\') return escaped ? escaped_backslash : backslash;
        return byte == '/' && escaped ? escaped_slash : 0;
    }
};

// The first one of what is left of a path; nothing if that is an escape of NUL, or none.
std::optional<letter> take_letter(std::string_view& rest) noexcept {
    letter l{rest.front(), rest.front() == '%'};
    if (l.escaped) {
        if (rest.size() < 3) return std::nullopt;
        unsigned const high = hex_value(rest[1]);
        unsigned const low = hex_value(rest[2]);
        if (high == 16 || low == 16 || high + low == 0) return std::nullopt;
        l.byte = static_cast<char>(high * 16 + low);
    }
    rest.remove_prefix(l.escaped ? 3 : 1);
    return l;
}

// A way from the root, segment by segment, of a reader for whom these separate too.
class walk {
  public:
    explicit walk(unsigned separators) noexcept : separators_(separators) {}

    // False: it has left the root.
    bool step(letter l) noexcept {
        if (l.separates() || (l.may_separate() & separators_) != 0) return end_segment();
        only_dots_ = only_dots_ && l.byte == '.';
        ++size_;
        return true;
    }
    // A reader who follows neither dots that are escaped nor empty segments only gets deeper.
    bool end_segment() noexcept {
        if (!only_dots_ || size_ > 2) {
            ++depth_;
        } else if (size_ == 2) {
            --depth_;
        }
        size_ = 0;
        only_dots_ = true;
        return depth_ >= 0;
    }

  private:
    unsigned separators_;
    std::size_t size_ = 0;  // of the segment
    bool only_dots_ = true;
    long depth_ = 0;
};

bool stays_below_root(std::string_view path, unsigned separators) noexcept {
    walk w{separators};
    while (!path.empty()) {
        if (!w.step(*take_letter(path))) return false;
    }
    return w.end_segment();
}

// The path without its query: its escapes are well-formed, and it stays below the root, whatever a
// reader takes for separators. Each set of them is a way of its own: to see a separator more can
// lead deeper ("a%2Fb") or up ("a%2F..").
std::optional<head_error> check_path(std::string_view path) noexcept {
    // Most have no two dots in a row and no escape: nothing to decode then.
    if (path.find('%') == std::string_view::npos && path.find("..") == std::string_view::npos) {
        return std::nullopt;
    }
    unsigned has = 0;
    bool leads_up = false;
    char before = '\0';
    for (std::string_view rest = path; !rest.empty();) {
        auto const l = take_letter(rest);
        if (!l) return head_error::bad_target;
        has |= l->may_separate();
        leads_up = leads_up || (l->byte == '.' && before == '.');
        before = l->byte;
    }
    if (!leads_up) return std::nullopt;
    for (unsigned separators = has;; separators = (separators - 1) & has) {
        if (!stays_below_root(path, separators)) return head_error::above_root;
        if (separators == 0) return std::nullopt;
    }
}

// What the fields say about the message itself.
struct meaning {
    std::string_view host;
    std::string_view upgrade;
    std::uint64_t length = 0;
    bool has_host = false;
    bool has_length = false;
    bool chunked = false;
    bool says_close = false;
    bool says_keep_alive = false;
    bool says_upgrade = false;
    bool expects_continue = false;
};

using outcome = std::optional<head_error>;  // nothing: all is well

outcome note_length(meaning& m, std::string_view value) noexcept {
    if (m.has_length) return head_error::repeated_length;
    auto const n = length_of(value);
    if (!n) return head_error::bad_length;
    m.has_length = true;
    m.length = *n;
    return std::nullopt;
}

// "chunked" is understood. A list of other codings that ends with it would be, by others: 501.
outcome note_coding(meaning& m, std::string_view value) noexcept {
    if (m.chunked) return head_error::repeated_coding;
    if (same_token(value, "chunked")) {
        m.chunked = true;
        return std::nullopt;
    }
    bool last_is_chunked = false;
    if (value.ends_with(',')) return head_error::bad_coding;
    while (!value.empty()) {
        std::size_t const comma = std::min(value.find(','), value.size());
        std::string_view const coding = without_space(value.substr(0, comma));
        if (last_is_chunked || !all_are(coding, in_token)) return head_error::bad_coding;
        last_is_chunked = same_token(coding, "chunked");
        value.remove_prefix(std::min(comma + 1, value.size()));
    }
    return last_is_chunked ? head_error::coding_not_implemented : head_error::bad_coding;
}

outcome note(meaning& m, field const& f) noexcept {
    switch (f.name.size()) {
        case 4:
            if (!same_token(f.name, "host")) break;
            if (m.has_host) return head_error::repeated_host;
            m.has_host = true;
            m.host = f.value;
            break;
        case 6:
            if (!same_token(f.name, "expect")) break;
            if (!same_token(f.value, "100-continue")) return head_error::bad_expectation;
            m.expects_continue = true;
            break;
        case 7:
            if (same_token(f.name, "upgrade")) m.upgrade = f.value;
            break;
        case 10:
            if (!same_token(f.name, "connection")) break;
            for_each_token(f.value, [&m](std::string_view word) {
                m.says_close |= same_token(word, "close");
                m.says_keep_alive |= same_token(word, "keep-alive");
                m.says_upgrade |= same_token(word, "upgrade");
            });
            break;
        case 14:
            if (same_token(f.name, "content-length")) return note_length(m, f.value);
            // Readers that make variables of fields take it for the same.
            if (same_token(f.name, "content_length")) return head_error::bad_field_name;
            break;
        case 17:
            if (same_token(f.name, "transfer-encoding")) return note_coding(m, f.value);
            if (same_token(f.name, "transfer_encoding")) return head_error::bad_field_name;
            break;
        default:
            break;
    }
    return std::nullopt;
}

// The next line, which is a field.
std::expected<field, head_error> take_field(reader& r) noexcept {
    if (is_space(r.front())) return std::unexpected{head_error::folded_line};
    std::string_view const name = r.take(in_token);
    if (name.empty()) return std::unexpected{r.misplaced(head_error::bad_field_name)};
    if (is_space(r.front())) return std::unexpected{head_error::space_before_colon};
    if (!r.skip(":")) return std::unexpected{r.misplaced(head_error::bad_field_name)};
    std::string_view const value = without_space(r.take_value());
    if (!r.skip("\r\n")) return std::unexpected{r.misplaced(head_error::bad_field_value)};  // I1
    return field{name, value};
}

// All fields, up to and with the empty line, which is the end of the block.
template <class Note>
std::expected<http::fields, head_error> take_fields(reader& r, std::span<field> table,
                                                    Note each) noexcept {
    std::size_t n = 0;
    while (!r.skip("\r\n")) {
        if (n == table.size()) return std::unexpected{head_error::too_many_fields};
        auto const f = take_field(r);
        if (!f) return std::unexpected{f.error()};
        if (outcome const wrong = each(*f)) return std::unexpected{*wrong};
        table[n++] = *f;
    }
    if (!r.empty()) return std::unexpected{head_error::bad_field_name};
    return http::fields{table.first(n)};
}

outcome check_framing(meaning const& m, unsigned minor) noexcept {
    if (m.chunked && m.has_length) return head_error::length_and_coding;  // I2
    if (m.chunked && minor == 0) return head_error::coding_in_1_0;
    return std::nullopt;
}

bool keeps_alive(meaning const& m, unsigned minor) noexcept {
    return minor == 0 ? m.says_keep_alive && !m.says_close : !m.says_close;
}

outcome take_version(reader& r, std::uint8_t& minor) noexcept {
    std::string_view const version = r.take(std::string_view{"HTTP/1.1"}.size());
    if (version.size() != 8 || !version.starts_with("HTTP/") || !is_digit(version[5]) ||
        version[6] != '.' || !is_digit(version[7])) {
        return head_error::bad_version;
    }
    if (version[5] != '1' || version[7] > '1') return head_error::version_not_supported;
    minor = static_cast<std::uint8_t>(version[7] - '0');
    return std::nullopt;
}

// Which part of the target is the path, and which the host.
outcome split_target(request_head& h) noexcept {
    h.path = h.target;
    if (h.target == "*") {
        return h.method == method::options ? std::nullopt : outcome{head_error::bad_target};
    }
    if (!h.target.starts_with('/')) {
        std::size_t const scheme = h.target.find("://");
        if (scheme == std::string_view::npos) return head_error::bad_target;
        if (!same_token(h.target.substr(0, scheme), "http") &&
            !same_token(h.target.substr(0, scheme), "https")) {
            return head_error::bad_target;
        }
        std::string_view const rest = h.target.substr(scheme + 3);
        std::size_t const slash = rest.find('/');
        h.host = rest.substr(0, slash);
        h.path = slash == std::string_view::npos ? "/" : rest.substr(slash);
        if (!is_authority(h.host)) return head_error::bad_target;
    }
    return check_path(h.path.substr(0, h.path.find('?')));
}

outcome take_request_line(reader& r, request_head& h, limits const& most) noexcept {
    h.verb = r.take(in_method);
    if (h.verb.empty() || h.verb.size() > longest_method) return head_error::bad_method;
    if (!r.skip(" ")) return r.misplaced(head_error::bad_method);
    if (h.verb == "CONNECT") return head_error::method_not_implemented;
    h.method = method_of(h.verb);
    h.target = r.take(in_target);
    if (h.target.empty()) return r.misplaced(head_error::bad_target);
    if (h.target.size() > most.target) return head_error::target_too_long;
    if (!r.skip(" ")) {
        // HTTP/0.9 has no version.
        return r.misplaced(r.front() == '\r' ? head_error::bad_version : head_error::bad_target);
    }
    if (outcome const wrong = take_version(r, h.minor)) return wrong;
    if (!r.skip("\r\n")) return r.misplaced(head_error::bad_version);
    return split_target(h);
}

outcome check_host(request_head& h, meaning const& m) noexcept {
    if (!m.has_host) return h.minor == 0 ? std::nullopt : outcome{head_error::no_host};
    if (!is_authority(m.host)) return head_error::bad_host;
    // A target with a host of its own: both say the same, or it is not known who is meant.
    if (!h.host.empty() && !same_token(h.host, m.host)) return head_error::bad_host;
    h.host = m.host;
    return std::nullopt;
}

}  // namespace

head_search::found head_search::refuse(head_error e) noexcept {
    error_ = e;
    return found::error;
}

head_search::found head_search::look(std::string_view buffer, limits const& most) noexcept {
    if (seen_ == 0) {
        if (buffer.starts_with("\r\n")) skip_ = line_ = seen_ = 2;
        if (buffer.empty() || buffer == "\r") return found::nothing_yet;
    }
    if (seen_ == skip_ && buffer.size() > skip_ && !is(buffer[skip_], in_method)) {
        char const c = buffer[skip_];
        return refuse(c == '\r' || c == '\n' ? head_error::bare_cr_or_lf : head_error::bad_method);
    }
    for (;;) {
        std::size_t const lf = buffer.find('\n', std::max(seen_, line_));
        std::size_t const end = lf == std::string_view::npos ? buffer.size() : lf + 1;
        if (!first_line_ended_ && end - skip_ > most.target + around_target) {
            return refuse(head_error::target_too_long);
        }
        if (end - skip_ > most.head) return refuse(head_error::head_too_large);
        if (lf == std::string_view::npos) {
            seen_ = buffer.size();
            return found::nothing_yet;
        }
        if (lf == line_ || buffer[lf - 1] != '\r') return refuse(head_error::bare_cr_or_lf);
        if (lf == line_ + 1) {
            length_ = lf + 1 - skip_;
            return found::complete;
        }
        first_line_ended_ = true;
        line_ = lf + 1;
    }
}

std::expected<request_head, head_error> scan_request(std::string_view block, limits const& most,
                                                     std::span<field> table) noexcept {
    if (block.size() > most.head) return std::unexpected{head_error::head_too_large};
    reader r{block};
    request_head h;
    if (outcome const wrong = take_request_line(r, h, most)) return std::unexpected{*wrong};
    meaning m;
    auto const all = take_fields(r, table.first(std::min(table.size(), most.fields)),
                                 [&m](field const& f) { return note(m, f); });
    if (!all) return std::unexpected{all.error()};
    if (outcome const wrong = check_host(h, m)) return std::unexpected{*wrong};
    if (outcome const wrong = check_framing(m, h.minor)) return std::unexpected{*wrong};
    h.fields = *all;
    h.framing = m.chunked ? framing::chunked : m.length != 0 ? framing::length : framing::none;
    h.length = m.length;
    h.keep_alive = keeps_alive(m, h.minor);
    h.expects_continue = m.expects_continue && h.minor == 1 && h.framing != framing::none;
    if (m.says_upgrade && h.minor == 1 && h.framing == framing::none) h.upgrade = m.upgrade;
    return h;
}

std::expected<response_head, head_error> scan_response(std::string_view block, limits const& most,
                                                       std::span<field> table,
                                                       bool to_head) noexcept {
    if (block.size() > most.head) return std::unexpected{head_error::head_too_large};
    reader r{block};
    response_head h;
    if (outcome const wrong = take_version(r, h.minor)) return std::unexpected{*wrong};
    if (!r.skip(" ")) return std::unexpected{r.misplaced(head_error::bad_start_line)};
    std::string_view const status = r.take(3);
    if (status.size() != 3 || !std::ranges::all_of(status, is_digit) || status[0] == '0') {
        return std::unexpected{head_error::bad_status};
    }
    h.status = (status[0] - '0') * 100 + (status[1] - '0') * 10 + (status[2] - '0');
    if (r.skip(" ")) h.reason = r.take_value();
    if (!r.skip("\r\n")) return std::unexpected{r.misplaced(head_error::bad_start_line)};
    meaning m;
    auto const all =
        take_fields(r, table.first(std::min(table.size(), most.fields)), [&m](field const& f) {
            // These two mean nothing in a response.
            if (f.name.size() == 4 || f.name.size() == 6) return outcome{};
            return note(m, f);
        });
    if (!all) return std::unexpected{all.error()};
    if (outcome const wrong = check_framing(m, h.minor)) return std::unexpected{*wrong};
    h.fields = *all;
    h.length = m.length;
    h.keep_alive = keeps_alive(m, h.minor);
    if (m.says_upgrade) h.upgrade = m.upgrade;
    bool const informs = h.status < 200;
    if (informs || h.status == 204) {
        // Neither may say that it has a body; a reader might believe it.
        if (m.chunked || m.length != 0) return std::unexpected{head_error::bad_length};
    } else if (to_head || h.status == 304) {
        h.framing = framing::none;
    } else if (m.chunked) {
        h.framing = framing::chunked;
    } else if (m.has_length) {
        h.framing = m.length != 0 ? framing::length : framing::none;
    } else {
        h.framing = framing::until_close;
        h.keep_alive = false;
    }
    return h;
}

std::expected<http::fields, head_error> scan_trailer(std::string_view block,
                                                     std::span<field> table) noexcept {
    reader r{block};
    return take_fields(r, table, [](field const& f) -> outcome {
        for (std::string_view const name :
             {"content-length", "transfer-encoding", "host", "connection", "trailer", "te",
              "upgrade", "expect", "authorization", "cookie", "set-cookie", "content-type",
              "content-encoding", "content-range", "content_length", "transfer_encoding"}) {
            if (same_token(f.name, name)) return head_error::bad_field_name;
        }
        return std::nullopt;
    });
}

int status_of(head_error e) noexcept {
    switch (e) {
        case head_error::target_too_long:
            return 414;
        case head_error::too_many_fields:
        case head_error::head_too_large:
            return 431;
        case head_error::method_not_implemented:
        case head_error::coding_not_implemented:
            return 501;
        case head_error::version_not_supported:
            return 505;
        case head_error::bad_expectation:
            return 417;
        default:
            return 400;
    }
}

char const* reason_of(head_error e) noexcept {
    switch (e) {
        case head_error::bad_start_line:
            return "the first line is malformed";
        case head_error::bad_method:
            return "the method is malformed";
        case head_error::method_not_implemented:
            return "CONNECT is not offered here";
        case head_error::bad_target:
            return "the target is malformed";
        case head_error::above_root:
            return "the path leads out of the root";
        case head_error::target_too_long:
            return "the target is too long";
        case head_error::bad_version:
            return "the version is malformed";
        case head_error::version_not_supported:
            return "this is not HTTP/1.0 or HTTP/1.1";
        case head_error::bare_cr_or_lf:
            return "a line does not end with CRLF";
        case head_error::folded_line:
            return "a field is folded over lines";
        case head_error::bad_field_name:
            return "the name of a field is malformed";
        case head_error::space_before_colon:
            return "there is a space before a colon";
        case head_error::bad_field_value:
            return "a field has a control character";
        case head_error::too_many_fields:
            return "there are too many fields";
        case head_error::head_too_large:
            return "the header is too large";
        case head_error::no_host:
            return "there is no Host";
        case head_error::repeated_host:
            return "there is more than one Host";
        case head_error::bad_host:
            return "the Host is malformed, or not that of the target";
        case head_error::repeated_length:
            return "there is more than one Content-Length";
        case head_error::bad_length:
            return "the Content-Length is malformed";
        case head_error::length_and_coding:
            return "there are both Content-Length and Transfer-Encoding";
        case head_error::repeated_coding:
            return "there is more than one Transfer-Encoding";
        case head_error::bad_coding:
            return "the Transfer-Encoding is malformed";
        case head_error::coding_not_implemented:
            return "this Transfer-Encoding is not offered here";
        case head_error::coding_in_1_0:
            return "HTTP/1.0 has no Transfer-Encoding";
        case head_error::bad_expectation:
            return "this expectation cannot be met";
        case head_error::bad_status:
            return "the status is malformed";
    }
    return "";
}

}  // namespace rondo::http
