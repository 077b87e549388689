#include "rondo/http/files.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/http/detail/file_answer.hpp"
#include "rondo/http/detail/file_path.hpp"
#include "rondo/http/detail/http_date.hpp"
#include "rondo/http/detail/mime.hpp"

namespace rondo::http {

namespace {

using detail::descriptor;
using detail::file_answer;
using detail::file_facts;

// Up to here a file is read, and goes out together with the head; above it sendfile() pays.
constexpr std::uint64_t read_below = std::uint64_t{16} * 1024;

// O_NONBLOCK: opening a pipe does not wait for its other end.
descriptor open_below(int root, char const* name) noexcept {
    open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    // EAGAIN: something was renamed meanwhile, and the kernel cannot say where it leads. Or who has
    // a lease on the file is given time to end it: then it is the same each time.
    constexpr int tries = 16;
    int fd = -1;
    for (int i = 0; i < tries; ++i) {
        fd = static_cast<int>(::syscall(SYS_openat2, root, name, &how, sizeof how));
        if (fd >= 0 || (errno != EINTR && errno != EAGAIN)) break;
    }
    return descriptor{fd};
}

int status_of_errno(int error) noexcept {
    switch (error) {
        case EACCES:
        case EPERM:
            return 403;
        case EAGAIN:
        case EMFILE:
        case ENFILE:
        case ENOMEM:
            return 503;
        case EIO:
            return 500;
        default:  // ENOENT, ENOTDIR; EXDEV: it leads out; ELOOP, ENAMETOOLONG
            return 404;
    }
}

file_facts facts_of(struct stat const& s) noexcept {
    return {.size = static_cast<std::uint64_t>(s.st_size),
            .modified_s = s.st_mtim.tv_sec,
            .modified_ns = static_cast<std::uint32_t>(s.st_mtim.tv_nsec),
            .compressed = false};
}

bool older(file_facts const& a, file_facts const& b) noexcept {
    return std::pair{a.modified_s, a.modified_ns} < std::pair{b.modified_s, b.modified_ns};
}

// As much of it as there is.
std::string read_part(int fd, std::uint64_t offset, std::uint64_t length) {
    std::string bytes(length, '\0');
    std::size_t had = 0;
    while (had < bytes.size()) {
        ssize_t const n =
            ::pread(fd, bytes.data() + had, bytes.size() - had, static_cast<off_t>(offset + had));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        had += static_cast<std::size_t>(n);
    }
    bytes.resize(had);
    return bytes;
}

// A plain answer of one line.
task<void> send_status(exchange* x, int status, std::string_view text = {}) {
    x->answer().status(status);
    x->answer().add("content-type", "text/plain; charset=utf-8");
    std::string const body{text.empty() ? reason_phrase(status) : text};
    std::string const line = body + "\n";
    (void)co_await x->send(line);
}

void describe(exchange& x, file_answer const& a, file_facts const& f, std::string_view name) {
    response_text& head = x.answer();
    head.status(a.status);
    head.add("etag", detail::entity_tag{f}.text());
    // Not after the date of the answer (RFC 9110, 8.8.2.1).
    auto const modified = std::min<std::time_t>(f.modified_s, std::time(nullptr));
    head.add("last-modified", detail::http_date{modified}.text());
    head.add("vary", "Accept-Encoding");
    if (a.status == 304 || a.status == 412) return;  // nothing of the file is there
    head.add("accept-ranges", "bytes");
    if (a.status == 416) {
        head.add("content-range", "bytes */" + std::to_string(f.size));
        return;
    }
    head.add("content-type", detail::media_type_of(name));
    if (f.compressed) head.add("content-encoding", "gzip");
    if (a.status == 206) {
        head.add("content-range", "bytes " + std::to_string(a.offset) + "-" +
                                      std::to_string(a.offset + a.length - 1) + "/" +
                                      std::to_string(f.size));
    }
}

task<void> send_part(exchange* x, int fd, std::uint64_t offset, std::uint64_t length) {
    if (length > read_below) {
        (void)co_await x->send_file(fd, offset, length);
        co_return;
    }
    std::string const bytes = read_part(fd, offset, length);
    x->answer().length(length);  // if the file has shrunk, the connection ends
    (void)co_await x->send(bytes);
}

}  // namespace

// An open file, or the path to send the client to.
struct files::found {
    descriptor file;
    file_facts facts;
    std::string name;
    std::string redirect;
};

std::expected<files, std::error_code> files::open(std::filesystem::path const& root,
                                                  files_options o) {
    RONDO_ASSERT(o.prefix.empty() || o.prefix.starts_with('/'), "a prefix begins with a slash");
    descriptor d{::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (!d) return std::unexpected{std::error_code{errno, std::generic_category()}};
    if (o.prefix.ends_with('/')) o.prefix.pop_back();
    return files{std::move(d), std::move(o)};
}

std::expected<files::found, int> files::open_file(std::string const& name, bool take_gzip) const {
    found f;
    f.file = open_below(root_.get(), name.empty() ? "." : name.c_str());
    if (!f.file) return std::unexpected{status_of_errno(errno)};
    struct stat s{};
    if (::fstat(f.file.get(), &s) != 0) return std::unexpected{500};
    if (S_ISDIR(s.st_mode)) {
        f.name = name;
        f.redirect = "/";
        return f;
    }
    if (!S_ISREG(s.st_mode)) return std::unexpected{404};
    f.name = name;
    f.facts = facts_of(s);
    if (!take_gzip) return f;

    descriptor compressed = open_below(root_.get(), (name + ".gz").c_str());
    if (!compressed || ::fstat(compressed.get(), &s) != 0 || !S_ISREG(s.st_mode)) return f;
    file_facts const facts = facts_of(s);
    if (older(facts, f.facts)) return f;
    f.file = std::move(compressed);
    f.facts = facts;
    f.facts.compressed = true;
    return f;
}

std::error_code files::cannot_read(std::string const& name) const {
    descriptor const file = open_below(root_.get(), name.c_str());
    struct stat s{};
    if (!file || ::fstat(file.get(), &s) != 0) return {errno, std::generic_category()};
    if (S_ISREG(s.st_mode)) return {};
    return std::make_error_code(std::errc::no_such_file_or_directory);
}

// The name below the prefix. It is that of a path which has been read, so that how the prefix is
// spelled does not matter, and ".." cannot lead out of it any more.
std::optional<std::string> files::below_prefix(std::string_view name) const {
    if (options_.prefix.empty()) return std::string{name};
    std::string_view const prefix = std::string_view{options_.prefix}.substr(1);
    if (name == prefix) return std::string{};
    if (!name.starts_with(prefix) || name[prefix.size()] != '/') return std::nullopt;
    return std::string{name.substr(prefix.size() + 1)};
}

// The file, or the status that says why there is none.
std::expected<files::found, int> files::look_up(request_head const& asked) const {
    auto path = detail::file_path_of(asked.path);
    if (!path) return std::unexpected{400};
    auto name = below_prefix(path->name);
    if (!name) return std::unexpected{404};
    if (path->directory) {
        if (!name->empty()) *name += '/';
        *name += options_.index;
    }
    auto f = open_file(*name, detail::accepts_gzip(asked.fields));
    if (!f || f->redirect.empty()) return f;
    if (path->directory) return std::unexpected{404};  // the index is a directory
    path->directory = true;
    f->redirect = detail::target_of(*path);
    std::size_t const query = asked.path.find('?');
    if (query != std::string_view::npos) f->redirect += asked.path.substr(query);
    return f;
}

task<void> files::send_not_found(exchange* x) const {
    if (options_.not_found) {
        auto page = open_file(*options_.not_found, false);
        if (page && page->redirect.empty()) {
            x->answer().status(404);
            x->answer().add("content-type", detail::media_type_of(*options_.not_found));
            co_await send_part(x, page->file.get(), 0, page->facts.size);
            co_return;
        }
    }
    co_await send_status(x, 404);
}

task<void> files::answer(exchange* x) const {
    request_head const& asked = x->head();
    if (asked.method != method::get && asked.method != method::head) {
        x->answer().add("allow", "GET, HEAD");
        co_await send_status(x, 405);
        co_return;
    }
    auto f = look_up(asked);
    if (!f) {
        if (f.error() == 404) {
            co_await send_not_found(x);
        } else {
            co_await send_status(x, f.error());
        }
        co_return;
    }
    if (!f->redirect.empty()) {
        x->answer().add("location", f->redirect);
        co_await send_status(x, 301);
        co_return;
    }
    file_answer const a = detail::answer_for(asked.method, asked.fields, f->facts);
    describe(*x, a, f->facts, f->name);
    if (a.status == 200 || a.status == 206) {
        co_await send_part(x, f->file.get(), a.offset, a.length);
    } else {
        (void)co_await x->send();
    }
}

}  // namespace rondo::http
