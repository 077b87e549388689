// access_log.hpp: a line for each request.
//
// text   2026-01-02T03:04:05.678Z 192.0.2.1 "GET /a" 200 123B 5.1ms tenant="acme" wait=2.0ms id=...
// json   {"time":...,"client":...,"method":...,"target":...,"status":...,"bytes":...,
//         "duration_ms":...,"tenant":...,"wait_ms":...,"request_id":...,"refused":...}
//
// Bytes are those of the answer's body. Tenant and wait are there if the request had to take turns,
// `refused` if it was turned away, with the reason. A request that could not be understood has a
// line too, without method, target and id. What a client wrote is escaped: a line is a line,
// whatever it sent; and also after one that a full disk took in part.
#pragma once

#include <spdlog/logger.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "rondo/http/admission.hpp"
#include "rondo/http/exchange.hpp"
#include "rondo/http/server.hpp"

namespace rondo::gateway {

// Writes to stdout, each line in one piece. One that cannot be written is lost, and `problems` is
// told of the first and of how many there were: whoever looks for them has to know. One for all
// loggers that write there.
std::shared_ptr<spdlog::sinks::sink> lines_on_stdout(std::shared_ptr<spdlog::logger> problems);

struct access_record {
    std::chrono::system_clock::time_point time;
    std::string_view client;
    std::string_view method;  // empty: that could not be understood
    std::string_view target;
    int status = 0;  // 0: there was no answer
    std::uint64_t bytes = 0;
    std::chrono::nanoseconds duration{};
    std::string_view request_id;
    std::string_view tenant = {};  // empty: it did not take turns
    std::chrono::nanoseconds wait{};
    std::string_view refused = {};
    std::string_view reason = {};  // of one that could not be understood
};

std::string to_text(access_record const& r);
std::string to_json(access_record const& r);

// The line of one request, written when it goes: kept until the request has ended, however it did.
class access_line {
  public:
    access_line(std::shared_ptr<spdlog::logger> to, bool json, http::exchange& x) noexcept
        : to_(std::move(to)), json_(json), x_(x) {}
    access_line(access_line const&) = delete;
    access_line& operator=(access_line const&) = delete;
    ~access_line();

    http::admission::visit note;

  private:
    void write() const;

    std::shared_ptr<spdlog::logger> to_;
    bool json_;
    http::exchange& x_;
    std::chrono::system_clock::time_point time_ = std::chrono::system_clock::now();
    time_point came_ = clock::now();
};

// The line of a request that could not be understood.
void write_refusal(spdlog::logger& to, bool json, http::refused_request const& r) noexcept;

}  // namespace rondo::gateway
