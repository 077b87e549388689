#include "rondo/exec/detail/thread_name.hpp"

#include <pthread.h>

#include <algorithm>

namespace rondo::detail {

void name_this_thread(std::string const& prefix, std::size_t index) {
    constexpr std::size_t longest = 15;
    std::string const number = "-" + std::to_string(index);
    std::string const name = prefix.substr(0, longest - std::min(longest, number.size())) + number;
    pthread_setname_np(pthread_self(), name.substr(0, longest).c_str());
}

}  // namespace rondo::detail
