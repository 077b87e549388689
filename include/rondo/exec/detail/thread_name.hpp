// thread_name.hpp: what a debugger, top and a crash report call a worker.
#pragma once

#include <cstddef>
#include <string>

namespace rondo::detail {

// "prefix-index". The kernel keeps 15 characters: the number is worth more than the end of the
// prefix.
void name_this_thread(std::string const& prefix, std::size_t index);

}  // namespace rondo::detail
