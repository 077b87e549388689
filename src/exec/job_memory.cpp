// Algorithm
//   Magazines and a depot, after J. Bonwick and J. Adams, "Magazines and Vmem" (2001). A magazine
//   is an array of pointers and not a list through the blocks: the next block was last written by
//   another core, and from an array it can be asked for before it is needed.
//
//   Per thread and class there are two magazines. A thread that allocates takes from the loaded
//   one; when that is empty it swaps it for the other one, and when both are, for a full one of
//   the depot. A thread that frees does the same for room. Two, so that a thread that alternates
//   at the edge does not go to the depot each time.
//
//   The cache of a thread is constinit and trivially destructible, as in frame_allocator.cpp; a
//   guard with a destructor is made on the slow path only.
#include "rondo/exec/detail/job_memory.hpp"

#include <array>
#include <mutex>
#include <new>
#include <utility>

#include "rondo/core/frame_allocator.hpp"
#include "rondo/core/short_lock.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RONDO_JOBS_NOT_RECYCLED 1
#endif
#endif
#if defined(RONDO_CHECKED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RONDO_JOBS_NOT_RECYCLED 1
#endif

namespace rondo::detail {

#ifdef RONDO_JOBS_NOT_RECYCLED

void* allocate_job(std::size_t size) { return allocate_frame(size); }
void deallocate_job(void* job, std::size_t size) noexcept { deallocate_frame(job, size); }

#else

namespace {

constexpr std::size_t granule = 64;
constexpr std::size_t class_count = 2;
constexpr std::size_t bytes_kept_per_class = std::size_t{4} << 20;
constexpr std::size_t magazine_size = 64;
constexpr std::size_t turns_ahead = 4;

// As in frame_allocator.cpp, size 0 has no class.
constexpr std::size_t class_of(std::size_t size) noexcept { return (size - 1) / granule; }
constexpr std::size_t block_size(std::size_t size_class) noexcept {
    return (size_class + 1) * granule;
}
constexpr std::size_t most_magazines(std::size_t size_class) noexcept {
    return bytes_kept_per_class / (block_size(size_class) * magazine_size);
}

struct magazine {
    magazine* next = nullptr;  // in the depot
    std::size_t count = 0;
    std::array<void*, magazine_size> blocks{};
};

// Shared by all threads; full magazines of one class, and empty ones of all.
class depot {
  public:
    // Swaps an empty magazine for a full one, if there is one.
    magazine* full_for(magazine* empty, std::size_t size_class) noexcept {
        std::lock_guard const guard{lock_};
        shelf& s = shelves_[size_class];
        if (s.full == nullptr) return nullptr;
        magazine* const m = std::exchange(s.full, s.full->next);
        --s.count;
        empty->next = std::exchange(empty_, empty);
        return m;
    }
    // Swaps a full magazine for an empty one; null when there is enough of the class, or no empty
    // one and no memory for it.
    magazine* empty_for(magazine* full, std::size_t size_class) noexcept {
        std::lock_guard const guard{lock_};
        shelf& s = shelves_[size_class];
        if (s.count == most_magazines(size_class)) return nullptr;
        magazine* m = empty_;
        if (m != nullptr) {
            empty_ = m->next;
        } else {
            m = new (std::nothrow) magazine;
            if (m == nullptr) return nullptr;
        }
        full->next = std::exchange(s.full, full);
        ++s.count;
        return m;
    }
    void keep_empty(magazine* m) noexcept {
        std::lock_guard const guard{lock_};
        m->next = std::exchange(empty_, m);
    }

  private:
    struct shelf {
        magazine* full = nullptr;
        std::size_t count = 0;
    };

    futex_lock lock_;
    std::array<shelf, class_count> shelves_{};
    magazine* empty_ = nullptr;
};

// Never destroyed: threads that end late still come here.
constinit depot shared_depot;

struct thread_cache {
    struct pair {
        magazine* loaded;
        magazine* other;
    };
    std::array<pair, class_count> classes;
    bool ended;
};

constinit thread_local thread_cache cache{};

struct exit_guard {
    exit_guard() = default;
    exit_guard(exit_guard const&) = delete;
    exit_guard& operator=(exit_guard const&) = delete;
    ~exit_guard() {
        cache.ended = true;
        for (std::size_t i = 0; i < class_count; ++i) {
            give_back(std::exchange(cache.classes[i].loaded, nullptr), i);
            give_back(std::exchange(cache.classes[i].other, nullptr), i);
        }
    }
    // Full ones stay together; the rest is not worth it.
    static void give_back(magazine* m, std::size_t size_class) noexcept {
        if (m == nullptr) return;
        if (m->count == magazine_size) {
            if (magazine* const empty = shared_depot.empty_for(m, size_class)) m = empty;
        }
        while (m->count != 0) ::operator delete(m->blocks[--m->count], block_size(size_class));
        shared_depot.keep_empty(m);
    }
    void arm() const noexcept {}
};

thread_local exit_guard guard;

// Makes the loaded magazine one that is not empty; false when there is none.
bool load_full(std::size_t size_class) noexcept {
    auto& [loaded, other] = cache.classes[size_class];
    if (loaded == nullptr) return false;
    std::swap(loaded, other);
    if (loaded->count != 0) return true;
    magazine* const full = shared_depot.full_for(loaded, size_class);
    if (full == nullptr) return false;
    loaded = full;
    return true;
}

// The first use of a class in a thread.
bool open(std::size_t size_class) noexcept {
    auto& [loaded, other] = cache.classes[size_class];
    if (cache.ended) return false;
    guard.arm();
    loaded = new (std::nothrow) magazine;
    other = new (std::nothrow) magazine;
    if (loaded != nullptr && other != nullptr) return true;
    delete std::exchange(loaded, nullptr);
    delete std::exchange(other, nullptr);
    return false;
}

// Makes the loaded magazine one that is not full; false when there is none.
bool load_room(std::size_t size_class) noexcept {
    auto& [loaded, other] = cache.classes[size_class];
    if (loaded == nullptr) return open(size_class);
    std::swap(loaded, other);
    if (loaded->count != magazine_size) return true;
    magazine* const empty = shared_depot.empty_for(loaded, size_class);
    if (empty == nullptr) return false;
    loaded = empty;
    return true;
}

}  // namespace

void* allocate_job(std::size_t size) {
    asm volatile("" ::: "memory");  // see frame_allocator.cpp
    std::size_t const size_class = class_of(size);
    if (size_class >= class_count) return allocate_frame(size);
    magazine* m = cache.classes[size_class].loaded;
    if (m == nullptr || m->count == 0) [[unlikely]] {
        if (m == nullptr ? !open(size_class) || !load_full(size_class) : !load_full(size_class)) {
            return ::operator new(block_size(size_class));
        }
        m = cache.classes[size_class].loaded;
    }
    std::size_t const at = --m->count;
    if (at >= turns_ahead) __builtin_prefetch(m->blocks[at - turns_ahead], 1);
    return m->blocks[at];
}

void deallocate_job(void* job, std::size_t size) noexcept {
    asm volatile("" ::: "memory");
    std::size_t const size_class = class_of(size);
    if (size_class >= class_count) {
        deallocate_frame(job, size);
        return;
    }
    magazine* m = cache.classes[size_class].loaded;
    if (m == nullptr || m->count == magazine_size) [[unlikely]] {
        if (!load_room(size_class)) {
            ::operator delete(job, block_size(size_class));
            return;
        }
        m = cache.classes[size_class].loaded;
    }
    m->blocks[m->count++] = job;
}

#endif

}  // namespace rondo::detail
