#include "rondo/core/task_trace.hpp"

#include <cstddef>
#include <string_view>

#include "rondo/core/detail/promise.hpp"

namespace rondo {

namespace {

// g++ calls the body of a coroutine `void f(f(int)::_Z1fi.Frame*)`: what is f about it.
std::string_view without_frame_parameter(std::string_view name) noexcept {
    if (!name.ends_with(".Frame*)")) return name;
    if (name.starts_with("void ")) name.remove_prefix(5);
    std::size_t open = 0;
    for (std::size_t i = name.size(); i-- > 0;) {
        if (name[i] == ')') ++open;
        if (name[i] == '(' && --open == 0) return name.substr(0, i);
    }
    return name;
}

void add_line(std::string& text, std::size_t depth, std::string_view line) {
    text.append(2 * depth, ' ').append(line).push_back('\n');
}

void add_trace(std::string& text, std::size_t depth, task_trace const& trace) {
    add_line(text, depth, describe(trace.doing));
    for (task_trace::frame const& f : trace.frames) {
        add_line(text, depth + 1,
                 (&f == &trace.frames.front() ? "at " : "in ") + f.function + " (" + f.file + ":" +
                     std::to_string(f.line) + ")");
    }
    for (task_trace const& b : trace.branches) add_trace(text, depth + 1, b);
}

}  // namespace

task_trace::frame::frame(std::source_location at)
    : function(without_frame_parameter(at.function_name())),
      file(at.file_name()),
      line(at.line()) {}

char const* describe(task_trace::activity what) noexcept {
    switch (what) {
        case task_trace::activity::not_begun:
            return "has not begun";
        case task_trace::activity::running:
            return "runs";
        case task_trace::activity::waiting:
            return "waits";
        case task_trace::activity::sleeping:
            return "sleeps";
        case task_trace::activity::yielding:
            return "gives way";
        case task_trace::activity::in_io:
            return "waits for I/O";
        case task_trace::activity::elsewhere:
            return "waits for something foreign";
        case task_trace::activity::forked:
            return "waits for its branches";
    }
    return "unknown";
}

std::string to_text(task_trace const& trace) {
    std::string text;
    add_trace(text, 0, trace);
    return text;
}

std::string to_text(std::vector<task_trace> const& traces) {
    std::string text;
    for (task_trace const& t : traces) add_trace(text, 0, t);
    return text;
}

namespace detail {

task_trace trace_from(promise_base const& innermost, task_trace::activity doing) {
    task_trace trace{doing, {}, {}};
    for (promise_base const* p = &innermost; p != nullptr; p = p->awaited_in()) {
        trace.frames.emplace_back(p->position());
    }
    return trace;
}

task_trace trace_of(flow const& f, promise_base const* outermost, std::source_location origin) {
    if (suspension const* const at = f.suspended_at()) return at->describe();
    if (outermost == nullptr) {
        return {task_trace::activity::running, {task_trace::frame{origin}}, {}};
    }
    return trace_from(*outermost, task_trace::activity::running);
}

}  // namespace detail

}  // namespace rondo
