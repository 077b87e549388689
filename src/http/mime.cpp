#include "rondo/http/detail/mime.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace rondo::http::detail {

namespace {

struct media_type {
    std::string_view ending;
    std::string_view type;
};

constexpr auto types = std::to_array<media_type>({
    {"7z", "application/x-7z-compressed"},
    {"aac", "audio/aac"},
    {"avif", "image/avif"},
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip2"},
    {"css", "text/css; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"eot", "application/vnd.ms-fontobject"},
    {"epub", "application/epub+zip"},
    {"flac", "audio/flac"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"htm", "text/html; charset=utf-8"},
    {"html", "text/html; charset=utf-8"},
    {"ico", "image/x-icon"},
    {"ics", "text/calendar; charset=utf-8"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"jsonld", "application/ld+json"},
    {"m3u8", "application/vnd.apple.mpegurl"},
    {"m4a", "audio/mp4"},
    {"map", "application/json"},
    {"md", "text/markdown; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"mpeg", "video/mpeg"},
    {"oga", "audio/ogg"},
    {"ogg", "audio/ogg"},
    {"ogv", "video/ogg"},
    {"opus", "audio/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"rss", "application/rss+xml"},
    {"rtf", "application/rtf"},
    {"svg", "image/svg+xml"},
    {"svgz", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", "application/toml"},
    {"ts", "video/mp2t"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain; charset=utf-8"},
    {"vtt", "text/vtt; charset=utf-8"},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"webm", "video/webm"},
    {"webmanifest", "application/manifest+json"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xhtml", "application/xhtml+xml"},
    {"xml", "application/xml"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
});
static_assert(std::ranges::is_sorted(types, {}, &media_type::ending));

constexpr std::size_t longest_ending = 16;

}  // namespace

std::string_view media_type_of(std::string_view file_name) noexcept {
    constexpr std::string_view unknown = "application/octet-stream";
    std::size_t const slash = file_name.rfind('/');
    if (slash != std::string_view::npos) file_name.remove_prefix(slash + 1);
    std::size_t const dot = file_name.rfind('.');
    // A name that begins with its only dot is hidden, and has no ending.
    if (dot == std::string_view::npos || dot == 0) return unknown;
    std::string_view const ending = file_name.substr(dot + 1);
    std::array<char, longest_ending> lower{};
    if (ending.empty() || ending.size() > lower.size()) return unknown;
    std::ranges::transform(ending, lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    std::string_view const wanted{lower.data(), ending.size()};
    auto const* const found = std::ranges::lower_bound(types, wanted, {}, &media_type::ending);
    return found != types.end() && found->ending == wanted ? found->type : unknown;
}

}  // namespace rondo::http::detail
