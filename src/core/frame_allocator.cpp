// Algorithm
//   Magazines and a depot, after J. Bonwick and J. Adams, "Magazines and Vmem" (2001). A magazine
//   is an array of pointers and not a list through the blocks: the next block may have been
//   written last by another core, and from an array it can be asked for before it is needed.
//
//   Per thread and size class there are two magazines. A thread that allocates takes from the
//   loaded one; when that is empty it swaps it for the other one, and when both are, for a full
//   one of the depot. A thread that frees does the same for room. Two, so that a thread that
//   alternates at the edge does not go to the depot each time.
//
//   Of the loaded magazine the thread keeps three pointers, of which the fast paths compare two.
//   All of them null, which is how a thread begins and ends, looks like a magazine that is empty
//   and full at once: so the rare situations need no test of their own.
//
//     fresh    the first call of a thread takes the slow path, which registers the guard that
//              gives the cache back at thread exit, and only then loads a magazine.
//     open     magazines in use.
//     ended    the guard has run: no magazines any more. Everything goes to the system.
//
//   The cache is constinit and trivially destructible: it is reached without the guard variable of
//   a thread-local with a constructor or destructor, and stays valid while the thread's other
//   thread-locals are destroyed. The guard alone has a destructor, and only the slow path touches
//   it.
//
// Invariants
//   I1  base <= top <= limit; [base, top) are free blocks of the class.
//   I2  a magazine in the depot's shelves is full, and one in `empty_` is empty.
//   I3  a block is system memory of exactly its class's size, so that any thread may give it back
//       with the size known from the class, whoever took it.
#include "rondo/core/frame_allocator.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <utility>

#include "rondo/core/short_lock.hpp"

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

// What a thread had from the system; also where nothing is recycled.
struct system_counts {
    std::uint64_t allocations;
    std::uint64_t frees;
};

constinit thread_local system_counts counts{};

void* take_from_system(std::size_t bytes) {
    void* const block = ::operator new(bytes);
    ++counts.allocations;
    return block;
}

void give_to_system(void* block, std::size_t bytes) noexcept {
    ::operator delete(block, bytes);
    ++counts.frees;
}

}  // namespace

#ifdef RONDO_FRAMES_NOT_RECYCLED

void* allocate_frame(std::size_t size) {
    asm volatile("" ::: "memory");  // see below
    return take_from_system(size);
}

void deallocate_frame(void* frame, std::size_t size) noexcept {
    asm volatile("" ::: "memory");
    give_to_system(frame, size);
}

void trim_frames() noexcept {}

frame_allocator_stats this_thread_frame_stats() noexcept {
    asm volatile("" ::: "memory");
    return {false, counts.allocations, counts.frees, 0, 0, 0};
}

#else

namespace {

constexpr std::size_t granule = 64;
constexpr std::size_t largest_recycled = 2048;
constexpr std::size_t class_count = largest_recycled / granule;
constexpr std::size_t largest_magazine = 64;
constexpr std::size_t bytes_per_magazine = std::size_t{32} * 1024;
constexpr std::size_t bytes_in_the_depot = std::size_t{16} << 20;
constexpr std::size_t turns_ahead = 4;

// Size 0 wraps to a class far beyond the last and is thereby served by the system, like any other
// size that has no class.
constexpr std::size_t class_of(std::size_t size) noexcept { return (size - 1) / granule; }
constexpr std::size_t block_size(std::size_t size_class) noexcept {
    return (size_class + 1) * granule;
}
constexpr std::size_t capacity_of(std::size_t size_class) noexcept {
    return std::min(bytes_per_magazine / block_size(size_class), largest_magazine);
}

struct magazine {
    magazine* next = nullptr;  // in the depot
    std::size_t count = 0;     // while it is not loaded
    // The first few stay null: whoever takes a block looks some places further down for the one
    // to ask for, and need not know where the bottom is.
    std::array<void*, turns_ahead + largest_magazine> slots{};

    void** bottom() noexcept { return slots.data() + turns_ahead; }

    void give_all_to_system(std::size_t size_class) noexcept {
        while (count != 0) give_to_system(bottom()[--count], block_size(size_class));
    }
};

// Shared by all threads.
class depot {
  public:
    // A full one, in exchange for an empty one or for nothing; null when there is none.
    magazine* full_for(magazine* empty, std::size_t size_class) noexcept {
        // relaxed: a hint, which spares a thread that only allocates the lock
        if (full_[size_class].load(std::memory_order_relaxed) == nullptr) return nullptr;
        std::lock_guard const guard{lock_};
        magazine* const m = full_[size_class].load(std::memory_order_relaxed);
        if (m == nullptr) return nullptr;
        full_[size_class].store(m->next, std::memory_order_relaxed);  // relaxed: under the lock
        bytes_ -= bytes_in(size_class);
        if (empty != nullptr) add_empty(empty);
        return m;
    }
    // False when it has enough.
    bool keep_full(magazine* m, std::size_t size_class) noexcept {
        std::lock_guard const guard{lock_};
        if (bytes_ + bytes_in(size_class) > bytes_in_the_depot) return false;
        m->next = full_[size_class].load(std::memory_order_relaxed);
        full_[size_class].store(m, std::memory_order_relaxed);  // relaxed: under the lock
        bytes_ += bytes_in(size_class);
        return true;
    }
    // Null when there is none.
    magazine* take_empty() noexcept {
        std::lock_guard const guard{lock_};
        return empty_ != nullptr ? std::exchange(empty_, empty_->next) : nullptr;
    }
    void keep_empty(magazine* m) noexcept {
        std::lock_guard const guard{lock_};
        add_empty(m);
    }
    std::size_t bytes() noexcept {
        std::lock_guard const guard{lock_};
        return bytes_;
    }

  private:
    static constexpr std::size_t bytes_in(std::size_t size_class) noexcept {
        return capacity_of(size_class) * block_size(size_class);
    }
    void add_empty(magazine* m) noexcept { m->next = std::exchange(empty_, m); }

    futex_lock lock_;
    std::array<atomic<magazine*>, class_count> full_{};
    magazine* empty_ = nullptr;
    std::size_t bytes_ = 0;
};

// Never destroyed: threads that end late still come here.
constinit depot shared_depot;

// A thread's magazines of one class. As large as a granule: the offset of a class's rack is then
// the size, rounded down.
struct alignas(granule) rack {
    void** top;  // of the loaded one
    void** base;
    void** limit;
    magazine* loaded;
    magazine* other;

    bool empty() const noexcept { return top == base; }
    bool full() const noexcept { return top == limit; }
    std::size_t blocks() const noexcept {
        return static_cast<std::size_t>(top - base) + (other != nullptr ? other->count : 0);
    }

    void load(magazine& m, std::size_t size_class) noexcept {
        loaded = &m;
        base = m.bottom();
        top = base + m.count;
        limit = base + capacity_of(size_class);
    }
    magazine* unload() noexcept {
        if (loaded != nullptr) loaded->count = static_cast<std::size_t>(top - base);
        top = base = limit = nullptr;
        return std::exchange(loaded, nullptr);
    }
    void swap(std::size_t size_class) noexcept {
        magazine* const next = std::exchange(other, unload());
        if (next != nullptr) load(*next, size_class);
    }
};

enum class cache_state : std::uint8_t { fresh, open, ended };

struct thread_cache {
    std::array<rack, class_count> racks;
    cache_state state;
};

constinit thread_local thread_cache cache{};

// What an ending thread does with a magazine. Full ones stay together; the rest is not worth it.
void give_back(magazine* m, std::size_t size_class) noexcept {
    if (m == nullptr) return;
    bool const full = m->count == capacity_of(size_class);
    if (full && shared_depot.keep_full(m, size_class)) return;
    m->give_all_to_system(size_class);
    shared_depot.keep_empty(m);
}

struct exit_guard {
    exit_guard() = default;
    exit_guard(exit_guard const&) = delete;
    exit_guard& operator=(exit_guard const&) = delete;
    ~exit_guard() {
        cache.state = cache_state::ended;
        for (std::size_t i = 0; i < class_count; ++i) {
            give_back(cache.racks[i].unload(), i);
            give_back(std::exchange(cache.racks[i].other, nullptr), i);
        }
    }
    void arm() const noexcept {}
};

thread_local exit_guard guard;

// Whether this thread may have magazines.
bool open_cache() noexcept {
    if (cache.state == cache_state::fresh) {
        guard.arm();  // first use on this thread: registers the destructor
        cache.state = cache_state::open;
    }
    return cache.state == cache_state::open;
}

[[gnu::noinline]] void* allocate_slowly(std::size_t size_class) {
    rack& r = cache.racks[size_class];
    if (!open_cache()) return take_from_system(block_size(size_class));
    r.swap(size_class);
    if (r.empty()) {
        magazine* const empty = r.unload();
        magazine* const full = shared_depot.full_for(empty, size_class);
        magazine* const next = full != nullptr ? full : empty;
        if (next != nullptr) r.load(*next, size_class);
        if (full == nullptr) return take_from_system(block_size(size_class));
    }
    return *--r.top;
}

// A magazine with room in it; null when there is no memory for one.
magazine* with_room(magazine* full, std::size_t size_class) noexcept {
    if (full != nullptr && !shared_depot.keep_full(full, size_class)) {
        full->give_all_to_system(size_class);
        return full;
    }
    magazine* const empty = shared_depot.take_empty();
    return empty != nullptr ? empty : new (std::nothrow) magazine;
}

[[gnu::noinline]] void deallocate_slowly(void* frame, std::size_t size_class) noexcept {
    rack& r = cache.racks[size_class];
    if (open_cache()) {
        r.swap(size_class);
        if (r.full()) {
            magazine* const m = with_room(r.unload(), size_class);
            if (m != nullptr) r.load(*m, size_class);
        }
    }
    if (r.full()) {
        give_to_system(frame, block_size(size_class));
    } else {
        *r.top++ = frame;
    }
}

}  // namespace

// The empty asm statements below keep the compiler from treating these functions as free of side
// effects, and so from reasoning across the call about which thread's cache it saw.

void* allocate_frame(std::size_t size) {
    asm volatile("" ::: "memory");
    std::size_t const size_class = class_of(size);
    if (size_class >= class_count) [[unlikely]] {
        return take_from_system(size);
    }
    rack& r = cache.racks[size_class];
    if (r.empty()) [[unlikely]] {
        return allocate_slowly(size_class);
    }
    void** const top = --r.top;
    __builtin_prefetch(*(top - turns_ahead), 1);
    return *top;
}

void deallocate_frame(void* frame, std::size_t size) noexcept {
    asm volatile("" ::: "memory");
    std::size_t const size_class = class_of(size);
    if (size_class >= class_count) [[unlikely]] {
        give_to_system(frame, size);
        return;
    }
    rack& r = cache.racks[size_class];
    if (r.full()) [[unlikely]] {
        deallocate_slowly(frame, size_class);
        return;
    }
    *r.top++ = frame;
}

void trim_frames() noexcept {
    for (std::size_t i = 0; i < class_count; ++i) {
        while (magazine* const m = shared_depot.full_for(nullptr, i)) {
            m->give_all_to_system(i);
            delete m;
        }
    }
    while (magazine* const m = shared_depot.take_empty()) delete m;
}

frame_allocator_stats this_thread_frame_stats() noexcept {
    asm volatile("" ::: "memory");
    frame_allocator_stats stats{true, counts.allocations, counts.frees, 0, 0, shared_depot.bytes()};
    for (std::size_t i = 0; i < class_count; ++i) {
        std::size_t const blocks = cache.racks[i].blocks();
        stats.cached_blocks += blocks;
        stats.cached_bytes += blocks * block_size(i);
    }
    return stats;
}

#endif

}  // namespace rondo
