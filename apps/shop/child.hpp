// child.hpp: processes of a shop that another process has started: they die with it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rondo::shop {

class child {
  public:
    // A program and its arguments; what it says is appended to a file.
    child(std::string program, std::vector<std::string> arguments, std::string log)
        : program_(std::move(program)), arguments_(std::move(arguments)), log_(std::move(log)) {}
    child(child const&) = delete;
    child& operator=(child const&) = delete;
    ~child() { end_with_kill(); }

    void start();
    bool is_up() const noexcept { return pid_ > 0; }
    // It ended by itself, with status 0.
    bool is_done() const noexcept { return done_; }
    // Learns whether it has ended; false if it did, and not well.
    bool look();
    void end_with_kill();
    // Asks it to end, and waits until it has.
    void end();

    std::string const& log() const noexcept { return log_; }

  private:
    void signal_and_wait(int signal);

    std::string program_;
    std::vector<std::string> arguments_;
    std::string log_;
    pid_t pid_ = -1;
    bool done_ = false;
};

// A base port such that those of the gateway, so many robots and so many screens are free. `from`
// says where to look first.
std::uint16_t find_base_port(std::uint32_t robots, std::uint32_t screens, std::uint64_t from);

// "1:2:0" is the list of three from 1 on.
std::string list_of_members(std::uint32_t from, std::uint32_t count);

}  // namespace rondo::shop
