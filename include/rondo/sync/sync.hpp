// sync.hpp: all of sync in one include: locks, channels, signals, turns.
#pragma once

#include "rondo/sync/barrier.hpp"
#include "rondo/sync/guard.hpp"
#include "rondo/sync/mpsc.hpp"
#include "rondo/sync/mpsc_bounded.hpp"
#include "rondo/sync/mpsc_permit.hpp"
#include "rondo/sync/mpsc_receiver.hpp"
#include "rondo/sync/mpsc_unbounded.hpp"
#include "rondo/sync/mutex.hpp"
#include "rondo/sync/notify.hpp"
#include "rondo/sync/once_cell.hpp"
#include "rondo/sync/oneshot.hpp"
#include "rondo/sync/ring.hpp"
#include "rondo/sync/rwlock.hpp"
#include "rondo/sync/semaphore.hpp"
#include "rondo/sync/set_once.hpp"
#include "rondo/sync/watch.hpp"
