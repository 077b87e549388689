#include "address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "rondo/http/message.hpp"

namespace rondo::gateway {

namespace {

std::unexpected<address_error> wrong(std::string_view text, std::string_view what,
                                     std::string advice) {
    std::string problem = "'" + std::string{text} + "' is not an address: ";
    problem += what;
    return std::unexpected{address_error{std::move(problem), std::move(advice)}};
}

bool is_ip(int family, std::string const& host) {
    std::array<unsigned char, sizeof(in6_addr)> ignored{};
    return inet_pton(family, host.c_str(), ignored.data()) == 1;
}

bool all_digits_and_dots(std::string_view host) {
    return host.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Letters, digits, '-' and '_' in labels of 1 to 63 characters that do not begin or end with '-'.
bool is_name(std::string_view host) {
    if (host.ends_with('.')) host.remove_suffix(1);
    if (host.empty() || host.size() > 253) return false;
    while (true) {
        std::size_t const dot = host.find('.');
        std::string_view const label = host.substr(0, dot);
        if (label.empty() || label.size() > 63) return false;
        if (label.starts_with('-') || label.ends_with('-')) return false;
        auto const fits = [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
        };
        if (!std::ranges::all_of(label, fits)) return false;
        if (dot == std::string_view::npos) return true;
        host.remove_prefix(dot + 1);
    }
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
    std::uint16_t port = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    bool const whole = error == std::errc{} && end == text.data() + text.size();
    return whole ? std::optional{port} : std::nullopt;
}

}  // namespace

std::string to_string(address const& a) {
    bool const bracketed = a.host.find(':') != std::string::npos;
    return (bracketed ? "[" + a.host + "]" : a.host) + ":" + std::to_string(a.port);
}

bool is_of_this_machine(address const& a) {
    if (http::same_token(a.host, "localhost")) return true;  // as browsers and people write it
    in6_addr six{};
    if (inet_pton(AF_INET6, a.host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
    in_addr four{};
    return inet_pton(AF_INET, a.host.c_str(), &four) == 1 &&
           (ntohl(four.s_addr) >> 24U) == IN_LOOPBACKNET;
}

std::expected<address, address_error> parse_address(std::string_view text) {
    std::size_t const scheme = text.find("://");
    if (scheme != std::string_view::npos) {
        return wrong(text, "it has a scheme",
                     "write '" + std::string{text.substr(scheme + 3)} + "'");
    }

    std::size_t const colon = text.rfind(':');
    bool const bracketed = text.starts_with('[');
    if (bracketed && text.find("]:") == std::string_view::npos) {
        return wrong(text, "it has no port", "write '[::1]:8080'");
    }
    if (colon == std::string_view::npos) {
        bool const only_port = !text.empty() && parse_port(text).has_value();
        std::string const host = only_port ? "127.0.0.1" : std::string{text};
        std::string const port = only_port ? std::string{text} : "8080";
        return wrong(text, only_port ? "it has no host" : "it has no port",
                     "write '" + (host.empty() ? "127.0.0.1" : host) + ":" + port + "'");
    }
    std::string const host{bracketed ? text.substr(1, text.rfind("]:") - 1)
                                     : text.substr(0, colon)};
    std::string_view const port_text = text.substr(colon + 1);
    if (!bracketed && host.find(':') != std::string::npos) {
        bool const has_port = is_ip(AF_INET6, host);
        return wrong(text, "an IPv6 address goes into brackets",
                     has_port ? "write '[" + host + "]:" + std::string{port_text} + "'"
                              : "write '[" + std::string{text} + "]:8080'");
    }

    auto const port = parse_port(port_text);
    if (!port) return wrong(text, "the port is a number up to 65535", "");
    if (host.empty()) {
        return wrong(text, "it has no host", "write '0.0.0.0:" + std::string{port_text} + "'");
    }
    if (bracketed                   ? !is_ip(AF_INET6, host)
        : all_digits_and_dots(host) ? !is_ip(AF_INET, host)
                                    : !is_name(host)) {
        return wrong(text, bracketed ? "this is no IPv6 address" : "this is no host", "");
    }
    return address{.host = host, .port = *port};
}

}  // namespace rondo::gateway
