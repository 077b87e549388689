#include "child.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "members.hpp"

namespace rondo::shop {

namespace {

bool is_free(std::uint16_t port) {
    int const s = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(port);
    bool const bound = ::bind(s, reinterpret_cast<sockaddr const*>(&at), sizeof at) == 0;
    ::close(s);
    return bound;
}

bool are_free(std::uint16_t base, std::uint32_t robots, std::uint32_t screens) {
    auto const port = [base](member_id id) { return static_cast<std::uint16_t>(base + id); };
    bool all = is_free(base);
    for (std::uint32_t r = 0; r < robots; ++r) all = all && is_free(port(robot_id(r)));
    for (std::uint32_t s = 0; s < screens; ++s) all = all && is_free(port(screen_id(s)));
    return all;
}

}  // namespace

void child::start() {
    std::vector<char*> arguments;
    for (std::string const& a : arguments_) arguments.push_back(const_cast<char*>(a.c_str()));
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int const out = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::execv(program_.c_str(), arguments.data());
    ::_exit(127);
}

bool child::look() {
    int status = 0;
    if (pid_ <= 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) return true;
    pid_ = -1;
    done_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return done_;
}

void child::signal_and_wait(int signal) {
    if (pid_ <= 0) return;
    ::kill(pid_, signal);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
}

void child::end_with_kill() { signal_and_wait(SIGKILL); }
void child::end() { signal_and_wait(SIGTERM); }

std::uint16_t find_base_port(std::uint32_t robots, std::uint32_t screens, std::uint64_t from) {
    constexpr std::uint16_t lowest = 20000;
    constexpr std::uint16_t places = 90;
    constexpr std::uint16_t ports_of_a_shop = 130;
    std::uint16_t base = lowest;
    for (std::uint64_t i = 0; i < places; ++i) {
        base = static_cast<std::uint16_t>(lowest + (from + i) % places * ports_of_a_shop);
        if (are_free(base, robots, screens)) break;
    }
    return base;
}

std::string list_of_members(std::uint32_t from, std::uint32_t count) {
    std::string text;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (i != 0) text += ':';
        text += std::to_string((from + i) % count);
    }
    return text;
}

}  // namespace rondo::shop
