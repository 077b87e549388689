#include "child.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

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
    status_.reset();
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int const out = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::execv(program_.c_str(), arguments.data());
    ::_exit(127);
}

bool child::has_ended() {
    int how = 0;
    if (pid_ <= 0) return true;
    if (::waitpid(pid_, &how, WNOHANG) != pid_) return false;
    on_end(how);
    return true;
}

void child::signal(int number) const noexcept {
    if (pid_ > 0) ::kill(pid_, number);
}

int child::end(int signal, std::chrono::milliseconds patience) {
    constexpr std::chrono::milliseconds look_again{10};
    if (pid_ <= 0) return -1;
    ::kill(pid_, signal);
    auto const until = std::chrono::steady_clock::now() + patience;
    while (signal != SIGKILL && std::chrono::steady_clock::now() < until) {
        if (has_ended()) return *status_;
        std::this_thread::sleep_for(look_again);
    }
    ::kill(pid_, SIGKILL);
    int how = 0;
    ::waitpid(pid_, &how, 0);
    on_end(how);
    return *status_;
}

void child::kill() { (void)end(SIGKILL); }

void child::on_end(int wait_status) noexcept {
    pid_ = -1;
    status_ = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

std::string child::said() const {
    std::ostringstream all;
    all << std::ifstream{log_}.rdbuf();
    return all.str();
}

std::optional<std::uint16_t> find_base_port(std::uint32_t robots, std::uint32_t screens,
                                            std::uint64_t from) {
    constexpr std::uint16_t lowest = 20000;
    constexpr std::uint16_t places = 90;
    constexpr std::uint16_t ports_of_a_shop = 130;
    for (std::uint64_t i = 0; i < places; ++i) {
        auto const base =
            static_cast<std::uint16_t>(lowest + (from + i) % places * ports_of_a_shop);
        if (are_free(base, robots, screens)) return base;
    }
    return std::nullopt;
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
