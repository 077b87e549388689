// program.hpp: the program as it is run, in a process of its own, and curl in front of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "program_paths.hpp"
#include "support/child_process.hpp"
#include "support/free_port.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {

using test::free_port;

struct ended {
    int status;
    std::string said;
};
inline ended run_to_end(std::vector<std::string> const& command) {
    test::child_process p{command};
    int const status = p.wait();
    return {status, p.said()};
}
inline ended rondo(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RONDO_PROGRAM);
    return run_to_end(arguments);
}
inline ended curl(std::vector<std::string> arguments) {
    std::vector<std::string> all{"curl", "--silent", "--show-error", "--max-time", "20"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_to_end(all);
}

// A gateway in a process of its own, at a free port.
class program {
  public:
    program(test::scratch_directory const& in, std::string_view text)
        : process_({RONDO_PROGRAM, "run", "-c", in.write("rondo.toml", text).string()}) {
        std::string const listens = "listens at 127.0.0.1:";
        std::string said = process_.read_until(listens);
        std::size_t const at = said.find(listens);
        if (at == std::string::npos) throw std::runtime_error("it does not start: " + said);
        said = process_.read_until("\n");
        while (said.find('\n', at) == std::string::npos) said = process_.read_until("\n");
        port_ = static_cast<std::uint16_t>(std::stoi(said.substr(at + listens.size())));
    }

    std::uint16_t port() const noexcept { return port_; }
    std::string url(std::string_view path) const {
        return "http://127.0.0.1:" + std::to_string(port_) + std::string{path};
    }
    // Where operators look, if [admin] has one: 127.0.0.1:1234
    std::string admin() {
        std::string const look = "operators look at http://";
        (void)process_.read_until(look);
        std::string const said = process_.read_until("/\n");
        std::size_t const from = said.find(look) + look.size();
        return said.substr(from, said.find('/', from) - from);
    }
    test::child_process& process() noexcept { return process_; }

  private:
    test::child_process process_;
    std::uint16_t port_ = 0;
};

// real time: other programs do not say when.
inline bool eventually(auto const& is_so) {
    for (int i = 0; i < 400 && !is_so(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds{25});
    }
    return is_so();
}

inline std::string forwarding_to(std::string const& address, std::string_view before = {}) {
    return std::string{before} +
           "[[server]]\nlisten = '127.0.0.1:0'\nmax_connections = 15000\nforward = '" + address +
           "'\n";
}

}  // namespace rondo::gateway
