// child_process.hpp: another program, started by a test and ended with it.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::test {

class child_process {
  public:
    // What it writes to stdout and stderr is read by read_until() and wait().
    explicit child_process(std::vector<std::string> const& command) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
        std::vector<char*> arguments;
        arguments.reserve(command.size() + 1);
        for (std::string const& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
        arguments.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also if the test is killed
            ::dup2(ends[1], 1);
            ::dup2(ends[1], 2);
            ::execvp(arguments[0], arguments.data());
            ::_exit(127);
        }
        ::close(ends[1]);
        out_ = ends[0];
    }
    child_process(child_process const&) = delete;
    child_process& operator=(child_process const&) = delete;
    ~child_process() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
        ::close(out_);
    }

    pid_t pid() const noexcept { return pid_; }
    void signal(int number) const noexcept { ::kill(pid_, number); }

    // Everything it has said, once it has said this; or all of it, if it ends first.
    std::string const& read_until(std::string_view text) {
        while (said_.find(text) == std::string::npos && more()) {
        }
        return said_;
    }
    // Its exit status; 128 and more for a signal.
    int wait() {
        while (more()) {
        }
        int status = 0;
        ::waitpid(std::exchange(pid_, -1), &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    std::string const& said() const noexcept { return said_; }

  private:
    bool more() {
        char block[4096];
        ssize_t const n = ::read(out_, block, sizeof block);
        if (n <= 0) return false;
        said_.append(block, static_cast<std::size_t>(n));
        return true;
    }

    pid_t pid_ = -1;
    int out_ = -1;
    std::string said_;
};

// A directory that goes with its owner.
class scratch_directory {
  public:
    scratch_directory() {
        std::string name = (std::filesystem::temp_directory_path() / "rondo-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
        path_ = name;
    }
    scratch_directory(scratch_directory const&) = delete;
    scratch_directory& operator=(scratch_directory const&) = delete;
    ~scratch_directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    std::filesystem::path const& path() const noexcept { return path_; }
    std::filesystem::path write(std::string const& name, std::string_view text) const {
        std::filesystem::path const file = path_ / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream{file, std::ios::binary} << text;
        return file;
    }

  private:
    std::filesystem::path path_;
};

}  // namespace rondo::test
