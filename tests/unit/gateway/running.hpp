// running.hpp: a gateway in this process, at free ports of the loopback.
#pragma once

#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>

#include <cstdint>
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
    explicit running(std::string_view text, std::filesystem::path const& folder = ".") {
        config_result loaded = parse(text, folder);
        if (!loaded) throw std::runtime_error(to_string(loaded.error().at(0), "config"));
        auto log = std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::null_sink_mt>());
        auto made = gateway::prepare(*std::move(loaded), std::move(log));
        if (!made) throw std::runtime_error(to_string(made.error().at(0), "config"));
        gateway_ = *std::move(made);
        auto const started = gateway_->start();
        if (!started) throw std::runtime_error(started.error());
    }

    std::uint16_t port(std::size_t index = 0) const {
        return gateway_->addresses().at(index).port();
    }
    test::wire connect(std::size_t index = 0) const { return test::wire::to(port(index)); }
    std::size_t stop() { return gateway_->stop(); }

    // One request on a connection of its own, which the server closes.
    std::string ask(std::string_view target, std::string_view fields = {},
                    std::string_view method = "GET") const {
        test::wire w = connect();
        w.send(std::string{method} + " " + std::string{target} +
               " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + std::string{fields} + "\r\n");
        return w.read_to_end();
    }

  private:
    std::unique_ptr<gateway> gateway_;
};

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
