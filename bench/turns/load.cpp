#include "load.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <utility>

#include "callers.hpp"

namespace rondo::bench {

namespace {

using namespace std::chrono_literals;

// For those under way when nothing more is offered.
constexpr clock::duration for_the_last = 2s;

std::string request_of(std::string const& tenant, clock::duration patience,
                       std::string const& target = "/") {
    std::string text = "GET " + target + " HTTP/1.1\r\nhost: u\r\nx-tenant: " + tenant + "\r\n";
    if (patience != clock::duration::max()) {
        text += "x-timeout: " + std::to_string(patience / 1ms) + "\r\n";
    }
    return text + "\r\n";
}

clock::duration in_seconds(double s) {
    return std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>{s});
}

// When which tenant asks.
class arrivals {
  public:
    struct arrival {
        clock::duration due;
        std::uint32_t tenant;
    };

    explicit arrivals(load const& l) : load_(l) {
        double total = 0;
        for (tenant_load const& t : l.tenants) sums_.push_back(total += t.rate);
        step();
    }

    bool ended() const { return at_ > load_.seconds; }
    arrival next() {
        double const pick = std::uniform_real_distribution<double>{0, sums_.back()}(random_);
        auto const found = std::ranges::upper_bound(sums_, pick) - sums_.begin();
        arrival const a{in_seconds(at_),
                        static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(
                            found, static_cast<std::ptrdiff_t>(sums_.size()) - 1))};
        step();
        return a;
    }
    clock::duration due() const { return in_seconds(at_); }

  private:
    void step() {
        double const rate = sums_.back() * (load_.times ? load_.times(at_) : 1.0);
        at_ += std::exponential_distribution<double>{rate}(random_);
    }

    load const& load_;
    std::vector<double> sums_;
    std::mt19937_64 random_{42};
    double at_ = 0;
};

class generator {
  public:
    generator(std::uint16_t port, load const& l) : callers_(port), arrivals_(l) {
        for (tenant_load const& t : l.tenants) {
            requests_.push_back(request_of(t.name, l.patience));
        }
        out_.all.reserve(1'000'000);
    }

    outcome run() {
        begin_ = clock::now();
        while (!arrivals_.ended()) {
            send_those_due();
            time_point const until = arrivals_.ended() ? clock::now() : begin_ + arrivals_.due();
            note(callers_.wait(until));
        }
        time_point const end = clock::now() + for_the_last;
        while (callers_.asking() != 0 && clock::now() < end) note(callers_.wait(end));
        for (std::uint32_t who = 0; who < asked_.size(); ++who) {
            if (asked_[who].waits) note_one({who, 0, false});
        }
        out_.connections = callers_.made();
        return std::move(out_);
    }

  private:
    struct asked {
        arrivals::arrival what;
        bool waits = false;
    };

    // A few at a time, so that answers are not left lying for long.
    void send_those_due() {
        time_point const now = clock::now();
        for (int i = 0; i < 8 && !arrivals_.ended() && begin_ + arrivals_.due() <= now; ++i) {
            arrivals::arrival const a = arrivals_.next();
            out_.lateness.record(now - (begin_ + a.due));
            auto const who = callers_.find_free();
            if (!who) {
                out_.all.push_back({a.tenant, 0, false, a.due, {}});
                continue;
            }
            if (asked_.size() <= *who) asked_.resize(*who + 1);
            asked_[*who] = {a, true};
            callers_.ask(*who, requests_[a.tenant]);
        }
    }

    void note(std::span<callers::answer const> answers) {
        for (callers::answer const& a : answers) note_one(a);
    }
    void note_one(callers::answer const& got) {
        asked& a = asked_[got.who];
        a.waits = false;
        out_.all.push_back({a.what.tenant, got.status, got.evicted, a.what.due,
                            clock::now() - (begin_ + a.what.due)});
    }

    callers callers_;
    arrivals arrivals_;
    std::vector<std::string> requests_;
    std::vector<asked> asked_;  // by connection
    time_point begin_{};
    outcome out_;
};

// The first that comes; none until then.
std::optional<callers::answer> answer_of(callers& all, time_point until) {
    do {
        if (auto const answers = all.wait(until); !answers.empty()) return answers.front();
    } while (clock::now() < until);
    return std::nullopt;
}

}  // namespace

outcome offer(std::uint16_t port, load const& l) { return generator{port, l}.run(); }

std::uint64_t saturate(std::uint16_t port, std::size_t clients, double seconds) {
    callers all{port};
    std::string const request = request_of("one", clock::duration::max());
    time_point const end = clock::now() + in_seconds(seconds);
    for (std::size_t i = 0; i < clients; ++i) all.ask(*all.find_free(), request);
    std::uint64_t served = 0;
    while (clock::now() < end) {
        for (callers::answer const& a : all.wait(end)) {
            if (a.status == 200) ++served;
            all.ask(*all.find_free(), request);
        }
    }
    return served;
}

int ask_once(std::uint16_t port, std::string const& target) {
    callers one{port};
    std::string const request = "GET " + target + " HTTP/1.1\r\nhost: u\r\n\r\n";
    one.ask(*one.find_free(), request);
    auto const answered = answer_of(one, time_point::max());
    return answered->status;
}

histogram evict(std::uint16_t port, std::size_t places, std::size_t times) {
    std::string const stays = request_of("many", clock::duration::max(), "/never");
    std::string const comes = request_of("one", clock::duration::max(), "/never");
    callers all{port};
    // The one too many is told that all places are taken.
    for (std::size_t i = 0; i <= places; ++i) all.ask(*all.find_free(), stays);
    (void)answer_of(all, clock::now() + 1s);

    histogram told;
    for (std::size_t i = 0; i < times; ++i) {
        auto const newcomer = *all.find_free();
        time_point const sent = clock::now();
        all.ask(newcomer, comes);
        auto const got = answer_of(all, sent + 1s);
        if (!got) break;
        if (got->evicted) told.record(clock::now() - sent);
        all.hang_up(newcomer);
        // The place is taken back: refused is who comes before the gateway knows that it is free.
        do {
            all.ask(*all.find_free(), stays);
        } while (answer_of(all, clock::now() + 2ms));
    }
    return told;
}

}  // namespace rondo::bench
