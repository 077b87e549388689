// The two tables of functions that SQLite wants: of a file (open_file) and of a file system
// (registration). Each forwards to the disk of the node and translates its errors.
//
// Locks are between connections of one node, so they are kept here, by name, in SQLite's five
// levels; a lock that is not free is SQLITE_BUSY at once. A connection that is closed after a crash
// gives back its locks like any other.
#include "rondo/sim_sqlite/vfs.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "rondo/core/assert.hpp"

namespace rondo::sim {

namespace {

struct locks {
    int shared = 0;
    void const* writer = nullptr;  // who holds RESERVED, PENDING or EXCLUSIVE
    int level = SQLITE_LOCK_NONE;  // the writer's
};

// Milliseconds of the Julian day, as SQLite counts: of 1970-01-01, and from there to 2026-01-01.
constexpr sqlite3_int64 unix_epoch_ms = 210'866'760'000'000;
constexpr sqlite3_int64 world_epoch_ms = unix_epoch_ms + 1'767'225'600'000;

}  // namespace

class sqlite_vfs::registration {
  public:
    explicit registration(node& on);
    ~registration();
    registration(registration const&) = delete;
    registration& operator=(registration const&) = delete;

    char const* name() const noexcept { return name_.c_str(); }

  private:
    struct open_file;

    static registration& of(sqlite3_vfs* vfs) { return *static_cast<registration*>(vfs->pAppData); }
    static sqlite3_io_methods const* file_methods() noexcept;
    int open(char const* name, sqlite3_file* file, int flags, int* flags_out);
    int remove(char const* name, bool sync_directory);

    node& node_;
    random_source random_;
    std::string name_;
    std::map<std::string, locks> locks_;
    std::uint64_t temporaries_ = 0;
    sqlite3_vfs vfs_{};
};

// --- files ---

struct sqlite_vfs::registration::open_file {
    // SQLite allocates szOsFile bytes, aligned to 8, and needs the table at their beginning.
    struct frame {
        sqlite3_file head;
        alignas(8) std::byte body[256];
    };

    open_file(registration& r, disk::file f, std::string n, bool temp)
        : owner(r), file(std::move(f)), name(std::move(n)), temporary(temp) {}

    static open_file& of(sqlite3_file* f) {
        return *std::launder(reinterpret_cast<open_file*>(reinterpret_cast<frame*>(f)->body));
    }

    int read(void* to, int length, sqlite3_int64 offset) const {
        std::span const target{static_cast<std::byte*>(to), static_cast<std::size_t>(length)};
        auto const got = file.read(static_cast<std::uint64_t>(offset), target);
        if (!got) return SQLITE_IOERR_READ;
        if (*got == target.size()) return SQLITE_OK;
        std::ranges::fill(target.subspan(*got), std::byte{0});
        return SQLITE_IOERR_SHORT_READ;
    }
    int write(void const* from, int length, sqlite3_int64 offset) const {
        std::span const bytes{static_cast<std::byte const*>(from),
                              static_cast<std::size_t>(length)};
        return file.write(static_cast<std::uint64_t>(offset), bytes) ? SQLITE_OK
                                                                     : SQLITE_IOERR_WRITE;
    }

    int lock(int wanted) {
        locks& l = owner.locks_[name];
        if (held >= wanted) return SQLITE_OK;
        bool const mine = l.writer == this;
        if (wanted == SQLITE_LOCK_SHARED) {
            if (l.level >= SQLITE_LOCK_PENDING) return SQLITE_BUSY;
            ++l.shared;
        } else {
            if (l.writer != nullptr && !mine) return SQLITE_BUSY;
            l.writer = this;
            if (wanted == SQLITE_LOCK_EXCLUSIVE && l.shared > 1) {
                l.level = held = SQLITE_LOCK_PENDING;
                return SQLITE_BUSY;
            }
            l.level = wanted;
        }
        held = wanted;
        return SQLITE_OK;
    }
    int unlock(int down_to) {
        if (held <= down_to) return SQLITE_OK;
        locks& l = owner.locks_[name];
        if (l.writer == this) {
            l.writer = nullptr;
            l.level = SQLITE_LOCK_NONE;
        }
        if (down_to == SQLITE_LOCK_NONE) --l.shared;
        held = down_to;
        return SQLITE_OK;
    }
    bool somebody_writes() const {
        auto const at = owner.locks_.find(name);
        return at != owner.locks_.end() && at->second.level >= SQLITE_LOCK_RESERVED;
    }

    registration& owner;
    disk::file file;
    std::string name;
    bool temporary;
    int held = SQLITE_LOCK_NONE;
};

sqlite3_io_methods const* sqlite_vfs::registration::file_methods() noexcept {
    static sqlite3_io_methods const table = [] {
        sqlite3_io_methods m{};
        m.iVersion = 1;
        m.xClose = [](sqlite3_file* f) {
            open_file& self = open_file::of(f);
            (void)self.unlock(SQLITE_LOCK_NONE);
            if (self.temporary) self.owner.remove(self.name.c_str(), false);
            std::destroy_at(&self);
            return SQLITE_OK;
        };
        m.xRead = [](sqlite3_file* f, void* to, int n, sqlite3_int64 at) {
            return open_file::of(f).read(to, n, at);
        };
        m.xWrite = [](sqlite3_file* f, void const* from, int n, sqlite3_int64 at) {
            return open_file::of(f).write(from, n, at);
        };
        m.xTruncate = [](sqlite3_file* f, sqlite3_int64 length) {
            auto const done = open_file::of(f).file.truncate(static_cast<std::uint64_t>(length));
            return done ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
        };
        m.xSync = [](sqlite3_file* f, int) {
            return open_file::of(f).file.sync() ? SQLITE_OK : SQLITE_IOERR_FSYNC;
        };
        m.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) {
            auto const known = open_file::of(f).file.size();
            if (!known) return SQLITE_IOERR_FSTAT;
            *size = static_cast<sqlite3_int64>(*known);
            return SQLITE_OK;
        };
        m.xLock = [](sqlite3_file* f, int level) { return open_file::of(f).lock(level); };
        m.xUnlock = [](sqlite3_file* f, int level) { return open_file::of(f).unlock(level); };
        m.xCheckReservedLock = [](sqlite3_file* f, int* held) {
            *held = open_file::of(f).somebody_writes() ? 1 : 0;
            return SQLITE_OK;
        };
        m.xFileControl = [](sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; };
        m.xSectorSize = [](sqlite3_file* f) {
            return static_cast<int>(open_file::of(f).owner.node_.disk().sector());
        };
        m.xDeviceCharacteristics = [](sqlite3_file*) { return 0; };
        return m;
    }();
    return &table;
}

// --- file system ---

int sqlite_vfs::registration::open(char const* name, sqlite3_file* file, int flags,
                                   int* flags_out) {
    static_assert(sizeof(open_file) <= sizeof(open_file::frame::body));
    static_assert(alignof(open_file) <= 8 && alignof(open_file::frame) <= 8);
    file->pMethods = nullptr;
    bool const temporary = name == nullptr || (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
    std::string const path = name != nullptr ? name : "temporary-" + std::to_string(++temporaries_);
    bool const makes = name == nullptr || (flags & SQLITE_OPEN_CREATE) != 0;
    auto opened = node_.disk().open(path, makes ? disk::make::yes : disk::make::no);
    if (!opened) return SQLITE_CANTOPEN;
    ::new (reinterpret_cast<open_file::frame*>(file)->body)
        open_file{*this, *std::move(opened), path, temporary};
    file->pMethods = file_methods();
    if (flags_out != nullptr) *flags_out = flags;
    return SQLITE_OK;
}

int sqlite_vfs::registration::remove(char const* name, bool sync_directory) {
    auto const removed = node_.disk().remove(name);
    if (!removed) {
        return removed.error() == disk_error::no_such_file ? SQLITE_IOERR_DELETE_NOENT
                                                           : SQLITE_IOERR_DELETE;
    }
    if (sync_directory && !node_.disk().sync_directory()) return SQLITE_IOERR_DIR_FSYNC;
    return SQLITE_OK;
}

sqlite_vfs::registration::registration(node& on)
    : node_(on),
      random_(on.world().random().split()),
      name_("rondo-sim-" + std::to_string(on.address())) {
    vfs_.iVersion = 2;
    vfs_.szOsFile = sizeof(open_file::frame);
    vfs_.mxPathname = 512;
    vfs_.zName = name_.c_str();
    vfs_.pAppData = this;
    vfs_.xOpen = [](sqlite3_vfs* v, char const* name, sqlite3_file* f, int flags, int* out) {
        return of(v).open(name, f, flags, out);
    };
    vfs_.xDelete = [](sqlite3_vfs* v, char const* name, int sync) {
        return of(v).remove(name, sync != 0);
    };
    vfs_.xAccess = [](sqlite3_vfs* v, char const* name, int, int* there) {
        if (!of(v).node_.disk().is_on()) return SQLITE_IOERR_ACCESS;
        *there = of(v).node_.disk().exists(name) ? 1 : 0;
        return SQLITE_OK;
    };
    vfs_.xFullPathname = [](sqlite3_vfs*, char const* name, int room, char* to) {
        if (std::strlen(name) >= static_cast<std::size_t>(room)) return SQLITE_CANTOPEN;
        std::memcpy(to, name, std::strlen(name) + 1);
        return SQLITE_OK;
    };
    vfs_.xRandomness = [](sqlite3_vfs* v, int length, char* to) {
        for (int i = 0; i < length; ++i) to[i] = static_cast<char>(of(v).random_.below(256));
        return length;
    };
    vfs_.xSleep = [](sqlite3_vfs*, int microseconds) { return microseconds; };
    vfs_.xCurrentTimeInt64 = [](sqlite3_vfs* v, sqlite3_int64* ms) {
        auto const since = of(v).node_.now().time_since_epoch();
        *ms = world_epoch_ms + std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
        return SQLITE_OK;
    };
    vfs_.xCurrentTime = [](sqlite3_vfs* v, double* days) {
        sqlite3_int64 ms = 0;
        v->xCurrentTimeInt64(v, &ms);
        *days = static_cast<double>(ms) / 86'400'000.0;
        return SQLITE_OK;
    };
    vfs_.xGetLastError = [](sqlite3_vfs*, int, char*) { return 0; };
    RONDO_ASSERT(sqlite3_vfs_find(name()) == nullptr, "a node has one sqlite_vfs");
    int const registered = sqlite3_vfs_register(&vfs_, 1);
    RONDO_ASSERT(registered == SQLITE_OK, "SQLite takes a new VFS");
    sqlite3_randomness(0, nullptr);  // seeds itself again when it is used next, from this one
}

sqlite_vfs::registration::~registration() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_randomness(0, nullptr);
}

sqlite_vfs::sqlite_vfs(node& on) : registration_(std::make_unique<registration>(on)) {}
sqlite_vfs::~sqlite_vfs() = default;
char const* sqlite_vfs::name() const noexcept { return registration_->name(); }

}  // namespace rondo::sim
