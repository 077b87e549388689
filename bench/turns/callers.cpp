#include "callers.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <string_view>

namespace rondo::bench {

namespace {

// How many bytes an answer has, 0 while that is not known.
std::size_t whole(std::string_view got) {
    std::size_t const head = got.find("\r\n\r\n");
    if (head == std::string_view::npos) return 0;
    constexpr std::string_view name = "\r\ncontent-length: ";
    auto const same = [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) == b;
    };
    auto const at = std::ranges::search(got.substr(0, head), name, same);
    if (at.empty()) return 0;
    std::size_t length = 0;
    char const* const digits = got.data() + (at.begin() - got.begin()) + name.size();
    (void)std::from_chars(digits, got.data() + head, length);
    return head + 4 + length;
}

int status_of(std::string_view got) {
    int status = 0;
    if (got.size() >= 12) (void)std::from_chars(got.data() + 9, got.data() + 12, status);
    return status;
}

}  // namespace

callers::~callers() {
    for (connection const& c : all_) {
        if (c.socket >= 0) ::close(c.socket);
    }
}

std::optional<std::uint32_t> callers::find_free() {
    if (!free_.empty()) {
        std::uint32_t const last = free_.back();
        free_.pop_back();
        return last;
    }
    if (all_.size() == most_) return std::nullopt;
    all_.emplace_back();
    return static_cast<std::uint32_t>(all_.size() - 1);
}

void callers::ask(std::uint32_t who, std::string const& request) {
    connection& c = all_[who];
    c.request = &request;
    c.sent = 0;
    c.got.clear();
    ++asking_;
    if (c.socket < 0) open(c, who);
    if (c.socket >= 0 && c.connected) send(c, who);
}

void callers::hang_up(std::uint32_t who) {
    connection& c = all_[who];
    if (c.socket >= 0) close(c);
    c.request = nullptr;
    --asking_;
    free_.push_back(who);
}

std::span<callers::answer const> callers::wait(time_point until) {
    for (epoll_event const& e : events_.wait(fresh_.empty() ? until : time_point::min())) {
        std::uint32_t const number = e.data.u32;
        connection& c = all_[number];
        if (c.socket < 0) continue;
        if (!c.connected && (e.events & EPOLLOUT) != 0) {
            c.connected = true;
            events_.change(c.socket, EPOLLIN, number);
            if (c.request != nullptr) send(c, number);
        } else {
            read(c, number);
        }
    }
    given_.swap(fresh_);
    fresh_.clear();
    return given_;
}

void callers::open(connection& c, std::uint32_t number) {
    c.socket = connect_to(port_);
    c.connected = false;
    if (c.socket < 0) {
        end(c, number, 0);
    } else {
        events_.add(c.socket, EPOLLIN | EPOLLOUT, number);
    }
}

void callers::close(connection& c) {
    ::close(c.socket);
    c.socket = -1;
}

// Requests are small: a socket that takes only a part of one is broken.
void callers::send(connection& c, std::uint32_t number) {
    ssize_t const n = ::send(c.socket, c.request->data(), c.request->size(), MSG_NOSIGNAL);
    if (n == static_cast<ssize_t>(c.request->size())) return;
    close(c);
    end(c, number, 0);
}

void callers::read(connection& c, std::uint32_t number) {
    std::array<char, 4096> block;
    ssize_t const n = ::recv(c.socket, block.data(), block.size(), 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
        close(c);
        if (c.request != nullptr) end(c, number, status_of(c.got));
        return;
    }
    c.got.append(block.data(), static_cast<std::size_t>(n));
    std::size_t const size = whole(c.got);
    if (size != 0 && c.got.size() >= size && c.request != nullptr) end(c, number, status_of(c.got));
}

void callers::end(connection& c, std::uint32_t number, int status) {
    c.request = nullptr;
    --asking_;
    free_.push_back(number);
    // By the gateway's own words (src/http/admission.cpp): the status is that of other refusals.
    fresh_.push_back({number, status, status == 429 && c.got.contains("made room")});
}

}  // namespace rondo::bench
