// child.hpp: processes of a shop that another process has started: they die with it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rondo::shop {

class child {
  public:
    // A program and its arguments, its name first; what it says is appended to a file.
    child(std::string program, std::vector<std::string> arguments, std::string log)
        : program_(std::move(program)), arguments_(std::move(arguments)), log_(std::move(log)) {}
    child(child const&) = delete;
    child& operator=(child const&) = delete;
    ~child() { kill(); }

    void start();
    // Has been started, and its end is not known of.
    bool is_up() const noexcept { return pid_ > 0; }
    // Learns whether it has ended by itself. True if it is not up.
    bool has_ended();
    // How it ended last: its exit status, or 128 and the signal's number. Nothing: not yet.
    std::optional<int> status() const noexcept { return status_; }

    // Such as SIGSTOP.
    void signal(int number) const noexcept;
    // Sends a signal and waits for its end; its status, or -1 if it is not up. One that goes on (as
    // it is stopped, say) is killed after that long.
    int end(int signal, std::chrono::milliseconds patience = std::chrono::seconds{10});
    void kill();

    std::string const& log() const noexcept { return log_; }
    // All that is in the log.
    std::string said() const;

  private:
    void on_end(int wait_status) noexcept;

    std::string program_;
    std::vector<std::string> arguments_;
    std::string log_;
    pid_t pid_ = -1;
    std::optional<int> status_;
};

// A base port such that those of the gateway, so many robots and so many screens are free, if there
// is one. `from` says where to look first.
std::optional<std::uint16_t> find_base_port(std::uint32_t robots, std::uint32_t screens,
                                            std::uint64_t from);

// "1:2:0" is the list of three from 1 on.
std::string list_of_members(std::uint32_t from, std::uint32_t count);

}  // namespace rondo::shop
