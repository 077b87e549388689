#include "upstream.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <deque>
#include <queue>
#include <random>
#include <string_view>
#include <vector>

#include "events.hpp"

namespace rondo::bench {

namespace {

constexpr std::uint64_t seed = 7;
constexpr std::uint32_t door = 0xffff'ffff;
constexpr std::string_view ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

// A connection by its socket; the run tells it from another that has the same number later.
struct client {
    int socket;
    std::uint32_t run;
};
struct job {
    time_point ends;
    client of;
    bool operator>(job const& other) const { return ends > other.ends; }
};

class upstream {
  public:
    upstream(std::uint16_t port, upstream_terms t) : terms_(t), listener_(listen_at(port)) {
        events_.add(listener_, EPOLLIN, door);
    }

    [[noreturn]] void serve() {
        for (;;) {
            auto const ready = events_.wait(busy_.empty() ? time_point::max() : busy_.top().ends);
            time_point const now = clock::now();
            finish(now);
            for (epoll_event const& e : ready) {
                if (e.data.u32 == door) {
                    accept();
                } else {
                    read(static_cast<int>(e.data.u32), now);
                }
            }
        }
    }

  private:
    void accept() {
        for (;;) {
            int const s = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (s < 0) return;
            if (runs_.size() <= static_cast<std::size_t>(s)) {
                runs_.resize(static_cast<std::size_t>(s) + 1);
            }
            events_.add(s, EPOLLIN, static_cast<std::uint32_t>(s));
        }
    }

    // Whoever asks here sends small requests without a body, one at a time: what is read is one.
    void read(int s, time_point now) {
        std::array<char, 4096> block;
        ssize_t const n = ::recv(s, block.data(), block.size(), 0);
        if (n <= 0) {
            ++runs_[static_cast<std::size_t>(s)];
            ::close(s);
            return;
        }
        std::string_view const text{block.data(), static_cast<std::size_t>(n)};
        if (text.starts_with("GET /again ")) random_.seed(seed);
        if (text.starts_with("GET /never ")) return;
        client const c{s, runs_[static_cast<std::size_t>(s)]};
        if (terms_.mean == clock::duration::zero() || text.starts_with("GET /again ")) {
            answer(c);
        } else if (busy_.size() < terms_.slots) {
            begin(c, now);
        } else {
            waiting_.push_back(c);
        }
    }

    void begin(client c, time_point now) {
        double const times = std::exponential_distribution<double>{1.0}(random_);
        busy_.push({now + std::chrono::duration_cast<clock::duration>(terms_.mean * times), c});
    }

    void finish(time_point now) {
        while (!busy_.empty() && busy_.top().ends <= now) {
            job const done = busy_.top();
            busy_.pop();
            answer(done.of);
            if (waiting_.empty()) continue;
            begin(waiting_.front(), done.ends);
            waiting_.pop_front();
        }
    }

    void answer(client c) const {
        if (runs_[static_cast<std::size_t>(c.socket)] != c.run) return;  // it has gone
        (void)::send(c.socket, ok.data(), ok.size(), MSG_NOSIGNAL);
    }

    upstream_terms terms_;
    int listener_;
    events events_;
    std::mt19937_64 random_{seed};
    std::vector<std::uint32_t> runs_;
    std::deque<client> waiting_;
    std::priority_queue<job, std::vector<job>, std::greater<>> busy_;
};

}  // namespace

void serve_upstream(std::uint16_t port, upstream_terms t) {
    allow_many_files();
    upstream{port, t}.serve();
}

}  // namespace rondo::bench
