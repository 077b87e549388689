#include "site.hpp"

#include <algorithm>

#include "connection.hpp"

namespace rondo::http::detail {

std::string_view date_text::now() noexcept {
    std::time_t const second = std::time(nullptr);
    if (second != second_) {
        text_ = http_date{second};
        second_ = second;
    }
    return text_.text();
}

clock::duration patience::tick() const noexcept {
    using namespace std::chrono_literals;
    clock::duration const shortest = std::min({head, idle, read, write});
    return std::clamp<clock::duration>(shortest / 8, 5ms, 500ms);
}

task<void> site::run(shutdown::subscription end) {
    while (!end.try_receive()) {
        if (deadlines.empty()) {
            (void)co_await changed.notified(end.token());
        } else {
            (void)co_await end.receive_for(deadlines.tick());
            deadlines.look();
        }
    }
    draining = true;
    deadlines.for_each([](watched& w) { static_cast<connection&>(w).drain(); });
    // acquire: what the connections did is done
    while (live.load(std::memory_order_acquire) != 0) {
        (void)co_await changed.notified_for(deadlines.tick());
        deadlines.look();
    }
}

}  // namespace rondo::http::detail
