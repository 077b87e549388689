// running.hpp: a gateway in this process, at free ports of the loopback.
#pragma once

#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>

#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rondo/config.hpp"
#include "rondo/gateway.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {

class running {
  public:
    explicit running(std::string_view text, std::filesystem::path const& folder = ".",
                     name_service names = {}) {
        config_result loaded = parse(text, folder);
        if (!loaded) throw std::runtime_error(to_string(loaded.error().at(0), "config"));
        auto log = std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::null_sink_mt>());
        auto made = gateway::prepare(*std::move(loaded), std::move(log), std::move(names));
        if (!made) throw std::runtime_error(to_string(made.error().at(0), "config"));
        gateway_ = *std::move(made);
        auto const started = gateway_->start();
        if (!started) throw std::runtime_error(started.error());
    }

    std::uint16_t port(std::size_t index = 0) const {
        return gateway_->addresses().at(index).port();
    }
    test::wire connect(std::size_t index = 0) const { return test::wire::to(port(index)); }
    std::uint16_t admin_port() const { return gateway_->admin_addresses().at(0).port(); }
    std::size_t stop() { return gateway_->stop(); }
    gateway& get() noexcept { return *gateway_; }
    // The number of the configuration, or the first thing that is wrong.
    std::expected<std::uint64_t, std::string> reload(std::string_view text,
                                                     std::filesystem::path const& folder = ".") {
        config_result loaded = parse(text, folder);
        if (!loaded) return std::unexpected{to_string(loaded.error().at(0), "config")};
        auto const changed = gateway_->reload(*std::move(loaded));
        if (!changed) return std::unexpected{to_string(changed.error().at(0), "config")};
        return *changed;
    }

    // One request on a connection of its own, which the server closes.
    std::string ask(std::string_view target, std::string_view fields = {},
                    std::string_view method = "GET") const {
        return ask_at(port(), target, std::string{"Host: h\r\n"}.append(fields), method);
    }
    std::string ask_admin(std::string_view target, std::string_view fields = {},
                          std::string_view method = "GET") const {
        std::string const host = "Host: 127.0.0.1:9180\r\n";
        return ask_at(admin_port(), target, host + std::string{fields}, method);
    }
    static std::string ask_at(std::uint16_t port, std::string_view target, std::string_view fields,
                              std::string_view method = "GET") {
        test::wire w = test::wire::to(port);
        std::string request{method};
        request.append(" ").append(target).append(" HTTP/1.1\r\nConnection: close\r\n");
        w.send(request.append(fields).append("\r\n"));
        return w.read_to_end();
    }

  private:
    std::unique_ptr<gateway> gateway_;
};

// Until /metrics has such a line.
inline void await_line(running const& r, std::string_view line) {
    std::string const wanted = "\n" + std::string{line} + "\n";
    while (r.ask_admin("/metrics").find(wanted) == std::string::npos) {
    }
}

// Of an answer as text.
inline std::string status_of(std::string_view answer) {
    return std::string{answer.substr(0, 12) == answer ? answer : answer.substr(9, 3)};
}
inline std::string body_of(std::string_view answer) {
    std::size_t const end = answer.find("\r\n\r\n");
    return end == std::string_view::npos ? "no head" : std::string{answer.substr(end + 4)};
}
// The value of a field, "" if there is none; names are compared as they are written.
inline std::string field_of(std::string_view answer, std::string_view name) {
    std::string const wanted = "\r\n" + std::string{name} + ": ";
    std::size_t const at = answer.find(wanted);
    if (at == std::string_view::npos || at > answer.find("\r\n\r\n")) return "";
    std::size_t const from = at + wanted.size();
    return std::string{answer.substr(from, answer.find("\r\n", from) - from)};
}

}  // namespace rondo::gateway
