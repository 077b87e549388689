// check.hpp: everything of the model checker. See docs/check.md.

#pragma once

#include "rondo/check/atomic.hpp"
#include "rondo/check/cell.hpp"
#include "rondo/check/explore.hpp"
#include "rondo/check/futex.hpp"
#include "rondo/check/mutex.hpp"
#include "rondo/check/policy.hpp"
#include "rondo/check/thread.hpp"
