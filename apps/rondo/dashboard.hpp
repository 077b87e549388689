// dashboard.hpp: the page of the admin address and what it loads, compiled in from dashboard/.
#pragma once

#include <string_view>

namespace rondo::gateway::dashboard {

extern std::string_view const page;
extern std::string_view const style;
extern std::string_view const script;

}  // namespace rondo::gateway::dashboard
