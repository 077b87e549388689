// files.hpp: a handler that answers with the files of a directory.
//
//   auto site = http::files::open("/srv/site");
//   http::server server{rt, options, [&](http::exchange* x) { return site->answer(x); }};
//
// Reach          nothing outside of the directory: every file is opened with openat2() and
//                RESOLVE_BENEATH, so no spelling of a path and no link leads out. Links inside are
//                followed. What is neither a file nor a directory is not there.
// Paths          are decoded once; an encoded slash, NUL and other control characters are refused
//                with 400, as is what leads above the root. Slashes in a row are one. So the prefix
//                is found however it is spelled, and what dot segments lead out of it is not there.
//                Names that begin with a dot are served as others are.
// Directories    are answered with their index file; without a slash at the end of the path, with a
//                redirect to the path with one. There is no listing: 404 without an index.
// Methods        GET and HEAD; 405 otherwise.
// Conditions     ETag (strong: time and size) and Last-Modified, which is never in the future;
//                If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since, If-Range.
// Ranges         one; several are answered with the whole file. RFC 9110 allows it, and nobody can
//                make us do more work than he does by asking for many.
// Compression    name.gz is sent in place of name to who accepts gzip, if it is not older. Every
//                answer about a file, also 304, 412 and 416, says Vary: Accept-Encoding.
// Blocking       opening and reading are blocking calls on the worker. Large files are sent without
//                a copy (sendfile) where the connection can.
// Changes        a file that shrinks while it is being sent ends the connection.
// Thread safety  answer() may be called concurrently.
// Lifetime       until the tasks of answer() have ended.
// Example        examples/http/front.cpp
#pragma once

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "rondo/core/task.hpp"
#include "rondo/http/detail/descriptor.hpp"
#include "rondo/http/exchange.hpp"

namespace rondo::http {

struct files_options {
    std::string index = "index.html";
    // Of the paths, begins with '/', decoded; the rest is the path below the directory.
    std::string prefix = "/";
    std::optional<std::string> not_found = {};  // the page for what is not there, below the root
};

class files {
  public:
    static std::expected<files, std::error_code> open(std::filesystem::path const& root,
                                                      files_options o = {});

    task<void> answer(exchange* x) const;
    // Why such a file below the directory cannot be read; nothing if it can.
    std::error_code cannot_read(std::string const& name) const;

  private:
    struct found;

    files(detail::descriptor root, files_options o) noexcept
        : root_(std::move(root)), options_(std::move(o)) {}

    std::optional<std::string> below_prefix(std::string_view name) const;
    std::expected<found, int> look_up(request_head const& asked) const;
    std::expected<found, int> open_file(std::string const& name, bool take_gzip) const;
    task<void> send_not_found(exchange* x) const;

    detail::descriptor root_;
    files_options options_;
};

}  // namespace rondo::http
