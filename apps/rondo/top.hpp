// top.hpp: the status as a page of text, for `rondo top`.
#pragma once

#include <string>

#include "status.hpp"

namespace rondo::gateway {

// At most `columns` wide, in lines that end with a newline. Bytes that would move the cursor of a
// terminal are shown as '?'. `colours`: with escapes of ANSI.
std::string page_of(status const& s, std::size_t columns, bool colours);

}  // namespace rondo::gateway
