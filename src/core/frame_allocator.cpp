// Algorithm
//
// Per thread and size class, a LIFO list of free blocks threaded through their first word, and
// the room left in that class. Both start at zero, which makes the two rare situations look like
// the ordinary empty or full list, so the fast paths test one word each:
//
//     fresh    no room: the first free on a thread takes the slow path, which registers the guard
//              that will give the cache back at thread exit and only then opens the classes.
//     open     lists in use.
//     ended    the guard has run: lists empty, no room again. Everything goes to the system.
//
// The cache is constinit and trivially destructible: it is reached without the guard variable of a
// thread-local with a constructor or destructor, and stays valid while the thread's other
// thread-locals are destroyed. The guard alone has a destructor, and only the slow path touches it.
//
// A block is system memory of exactly its class's size, so any thread may give it back with the
// size known from the class, whoever took it.

#include "rondo/core/frame_allocator.hpp"

#include <array>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RONDO_FRAMES_NOT_RECYCLED 1
#endif
#endif
#if defined(RONDO_CHECKED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RONDO_FRAMES_NOT_RECYCLED 1
#endif

namespace rondo {

namespace {

#ifdef RONDO_FRAMES_NOT_RECYCLED
constexpr bool recycling = false;
#else
constexpr bool recycling = true;
#endif

constexpr std::size_t granule = 64;
constexpr std::size_t largest_recycled = 2048;
constexpr std::size_t class_count = largest_recycled / granule;
constexpr std::size_t bytes_kept_per_class = std::size_t{64} * 1024;

// Size 0 wraps to a class far beyond the last and is thereby served by the system, like any other
// size that has no class.
constexpr std::size_t class_of(std::size_t size) noexcept { return (size - 1) / granule; }
constexpr std::size_t block_size(std::size_t size_class) noexcept {
    return (size_class + 1) * granule;
}
constexpr std::uint32_t limit_of(std::size_t size_class) noexcept {
    return static_cast<std::uint32_t>(bytes_kept_per_class / block_size(size_class));
}

struct free_block {
    free_block* next;
};

struct free_list {
    free_block* head;
    std::uint32_t room;
};

enum class cache_state : std::uint8_t { fresh, open, ended };

struct thread_cache {
    std::array<free_list, class_count> lists;
    cache_state state;
    std::uint64_t system_allocations;
    std::uint64_t system_frees;
};

constinit thread_local thread_cache cache{};

void* take_from_system(std::size_t bytes) {
    void* block = ::operator new(bytes);
    ++cache.system_allocations;
    return block;
}

void give_to_system(void* block, std::size_t bytes) noexcept {
    ::operator delete(block, bytes);
    ++cache.system_frees;
}

struct exit_guard {
    exit_guard() = default;
    exit_guard(exit_guard const&) = delete;
    exit_guard& operator=(exit_guard const&) = delete;
    ~exit_guard() {
        cache.state = cache_state::ended;
        for (std::size_t i = 0; i < class_count; ++i) {
            free_list& list = cache.lists[i];
            list.room = 0;
            while (list.head != nullptr) {
                free_block* block = list.head;
                list.head = block->next;
                give_to_system(block, block_size(i));
            }
        }
    }
    void arm() const noexcept {}
};

thread_local exit_guard guard;

void open_cache() noexcept {
    guard.arm();  // first use on this thread: registers the destructor
    for (std::size_t i = 0; i < class_count; ++i) {
        cache.lists[i].room = limit_of(i);
    }
    cache.state = cache_state::open;
}

void push(free_list& list, void* block) noexcept {
    list.head = ::new (block) free_block{list.head};
    --list.room;
}

// No room: either the thread has yet to open its cache, or the class is full, or the thread ends.
[[gnu::noinline]] void deallocate_slowly(void* frame, std::size_t size_class) noexcept {
    if (cache.state == cache_state::fresh) {
        open_cache();
        push(cache.lists[size_class], frame);
    } else {
        give_to_system(frame, block_size(size_class));
    }
}

[[gnu::noinline]] void* allocate_slowly(std::size_t size_class) {
    return take_from_system(block_size(size_class));
}

}  // namespace

// The empty asm statements below keep the compiler from treating these functions as free of side
// effects, and so from reasoning across the call about which thread's cache it saw.

void* allocate_frame(std::size_t size) {
    asm volatile("" ::: "memory");
    std::size_t const size_class = class_of(size);
    if (!recycling || size_class >= class_count) [[unlikely]] {
        return take_from_system(size);
    }
    free_list& list = cache.lists[size_class];
    free_block* block = list.head;
    if (block == nullptr) [[unlikely]] {
        return allocate_slowly(size_class);
    }
    list.head = block->next;
    ++list.room;
    return block;
}

void deallocate_frame(void* frame, std::size_t size) noexcept {
    asm volatile("" ::: "memory");
    std::size_t const size_class = class_of(size);
    if (!recycling || size_class >= class_count) [[unlikely]] {
        give_to_system(frame, size);
        return;
    }
    free_list& list = cache.lists[size_class];
    if (list.room == 0) [[unlikely]] {
        deallocate_slowly(frame, size_class);
        return;
    }
    push(list, frame);
}

frame_allocator_stats this_thread_frame_stats() noexcept {
    asm volatile("" ::: "memory");
    frame_allocator_stats stats{recycling, cache.system_allocations, cache.system_frees, 0, 0};
    if (cache.state == cache_state::open) {
        for (std::size_t i = 0; i < class_count; ++i) {
            std::size_t const blocks = limit_of(i) - cache.lists[i].room;
            stats.cached_blocks += blocks;
            stats.cached_bytes += blocks * block_size(i);
        }
    }
    return stats;
}

}  // namespace rondo
