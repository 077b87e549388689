// trace.cpp: the events of an execution as text, one line each.

#include "trace.hpp"

#include <cstdio>
#include <cstring>

#include "execution.hpp"

namespace rondo::check::detail {
namespace {

// A livelock has thousands of steps, of which the last ones tell the story.
constexpr std::size_t shown_at_begin = 100;
constexpr std::size_t shown_at_end = 200;

char const* order_name(std::memory_order order) noexcept {
    switch (order) {
        case std::memory_order::relaxed:
            return "relaxed";
        case std::memory_order::consume:
            return "consume";
        case std::memory_order::acquire:
            return "acquire";
        case std::memory_order::release:
            return "release";
        case std::memory_order::acq_rel:
            return "acq_rel";
        case std::memory_order::seq_cst:
            return "seq_cst";
    }
    return "?";
}

std::string object_name(execution const& run, std::uint32_t id) {
    location const& place = run.locations()[id];
    if (place.label != nullptr) {
        return place.label;
    }
    char const* const kind = place.kind == object_kind::atomic ? "atomic#"
                             : place.kind == object_kind::cell ? "cell#"
                                                               : "mutex#";
    return kind + std::to_string(id);
}

// Pointers to watched objects and into the arena are shown by name and by offset, which are the
// same in every run of the program.
std::string value_text(execution const& run, std::uint64_t value) {
    void const* const pointer = reinterpret_cast<void const*>(value);
    char text[40];
    if (value <= 0xffff'ffffU) {
        return std::to_string(value);
    }
    for (std::size_t id = run.locations().size(); id-- != 0;) {
        if (run.locations()[id].address == pointer) {
            return '&' + object_name(run, static_cast<std::uint32_t>(id));
        }
    }
    if (run.memory().contains(pointer)) {
        std::snprintf(text, sizeof text, "arena+0x%zx", run.memory().offset(pointer));
    } else {
        std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    }
    return text;
}

std::string describe(execution const& run, event const& e) {
    auto const object = [&] { return object_name(run, e.object); };
    auto const value = [&](std::uint64_t v) { return value_text(run, v); };
    std::string const order = std::string(" ") + order_name(e.order);
    std::string const stale = e.newer == 0 ? "" : " (stale: " + std::to_string(e.newer) + " newer)";
    switch (e.what) {
        case action::created:
            return "constructs " + object();
        case action::destroyed:
            return "destroys " + object();
        case action::load:
            return "load " + object() + order + " -> " + value(e.value) + stale;
        case action::store:
            return "store " + object() + order + " <- " + value(e.value);
        case action::rmw:
            return "rmw " + object() + order + " " + value(e.value) + " => " + value(e.written);
        case action::compare_exchanged:
            return "cas " + object() + order + " " + value(e.value) + " => " + value(e.written);
        case action::compare_failed:
            return "cas " + object() + order + " failed: expected " + value(e.written) +
                   ", found " + value(e.value) + (e.value == e.written ? " (spurious)" : stale);
        case action::cell_read:
            return "read " + object();
        case action::cell_write:
            return "write " + object();
        case action::lock:
            return "lock " + object();
        case action::lock_blocked:
            return "lock " + object() + " blocks: T" + value(e.value) + " holds it";
        case action::try_lock_failed:
            return "try_lock " + object() + " fails: T" + value(e.value) + " holds it";
        case action::unlock:
            return "unlock " + object();
        case action::futex_block:
            return "futex_wait " + object() + " blocks at " + value(e.value);
        case action::futex_differs:
            return "futex_wait " + object() + " returns: finds " + value(e.value);
        case action::futex_spurious:
            return "futex_wait " + object() + " returns spuriously";
        case action::futex_woken:
            return "futex_wait " + object() + " returns: woken";
        case action::futex_timeout:
            return "futex_wait " + object() + " times out";
        case action::futex_wake:
            return "futex_wake of " + value(e.written) + ": wakes " + value(e.value);
        case action::pause:
            return "spin_pause";
        case action::spawn:
            return "starts T" + std::to_string(e.object);
        case action::join:
            return "joined T" + std::to_string(e.object);
        case action::thread_end:
            return "ends";
    }
    return {};
}

}  // namespace

char const* file_name(std::source_location const& at) noexcept {
    char const* const slash = std::strrchr(at.file_name(), '/');
    return slash != nullptr ? slash + 1 : at.file_name();
}

std::string write_trace(execution const& run) {
    std::string text;
    std::size_t const count = run.events().size();
    for (std::size_t i = 0; i < count; ++i) {
        if (count > shown_at_begin + shown_at_end && i == shown_at_begin) {
            i = count - shown_at_end;
            text += "  ... " + std::to_string(i - shown_at_begin) + " more ...\n";
        }
        event const& each = run.events()[i];
        std::string line = "  T" + std::to_string(each.thread) + "  ";
        line.append(std::size_t{2} * each.thread, ' ');
        line += describe(run, each);
        if (each.at.line() != 0) {
            line.resize(line.size() < 64 ? 64 : line.size() + 2, ' ');
            line += file_name(each.at);
            line += ':' + std::to_string(each.at.line());
        }
        text += line + '\n';
    }
    return text;
}

}  // namespace rondo::check::detail
