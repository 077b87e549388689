// few_descriptors.hpp: a process that can hardly open a file.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

namespace rondo::gateway {

// While it exists, the process can open no more than so many files.
class few_descriptors {
  public:
    explicit few_descriptors(std::size_t left) {
        int const first = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        taken_.push_back(first);
        ::getrlimit(RLIMIT_NOFILE, &before_);
        rlimit fewer = before_;
        fewer.rlim_cur = static_cast<rlim_t>(first) + 1 + left;
        ::setrlimit(RLIMIT_NOFILE, &fewer);
        for (int fd = 0; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) {
            taken_.push_back(fd);
        }
        for (std::size_t i = 0; i < left && !taken_.empty(); ++i) {
            ::close(taken_.back());
            taken_.pop_back();
        }
    }
    few_descriptors(few_descriptors const&) = delete;
    few_descriptors& operator=(few_descriptors const&) = delete;
    ~few_descriptors() {
        for (int const fd : taken_) ::close(fd);
        ::setrlimit(RLIMIT_NOFILE, &before_);
    }

  private:
    rlimit before_{};
    std::vector<int> taken_;
};

}  // namespace rondo::gateway
