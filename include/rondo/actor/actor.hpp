// actor.hpp: all of the module `actor`.
#pragma once

#include "rondo/actor/address.hpp"
#include "rondo/actor/message.hpp"
#include "rondo/actor/restarts.hpp"
#include "rondo/actor/spawn.hpp"
#include "rondo/actor/supervisor.hpp"
