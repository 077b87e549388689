// sanitizers.hpp: which sanitizer this is compiled with, and how to tell it about our memory.

#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RONDO_CHECK_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define RONDO_CHECK_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(RONDO_CHECK_ASAN)
#define RONDO_CHECK_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__) && !defined(RONDO_CHECK_TSAN)
#define RONDO_CHECK_TSAN 1
#endif

#ifdef RONDO_CHECK_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define RONDO_CHECK_NO_ASAN __attribute__((no_sanitize("address")))
#else
#define RONDO_CHECK_NO_ASAN
#endif
#ifdef RONDO_CHECK_TSAN
#include <sanitizer/tsan_interface.h>
#define RONDO_CHECK_NO_TSAN __attribute__((no_sanitize("thread")))
#else
#define RONDO_CHECK_NO_TSAN
#endif

namespace rondo::check::detail {

inline void poison([[maybe_unused]] void const* at, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef RONDO_CHECK_ASAN
    __asan_poison_memory_region(at, bytes);
#endif
}

inline void unpoison([[maybe_unused]] void const* at, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef RONDO_CHECK_ASAN
    __asan_unpoison_memory_region(at, bytes);
#endif
}

}  // namespace rondo::check::detail
