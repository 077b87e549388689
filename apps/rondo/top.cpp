#include "top.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

namespace rondo::gateway {

namespace {

std::string rate(double n) {
    if (n >= 10'000) return fmt::format("{:.1f}k", n / 1000);
    return n >= 100 || n == 0 ? fmt::format("{:.0f}", n) : fmt::format("{:.1f}", n);
}
std::string duration(double ms) {
    if (ms == 0) return "0 ms";
    if (ms < 1) return fmt::format("{:.2f} ms", ms);
    if (ms < 1000) return fmt::format("{:.1f} ms", ms);
    return fmt::format("{:.2f} s", ms / 1000);
}
std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

std::string bar(double part, std::size_t width) {
    auto const full =
        static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(width) + 0.5);
    std::string all;
    for (std::size_t i = 0; i < width; ++i) all += i < full ? "#" : ".";
    return all;
}

// Names come from clients: nothing in them may reach a terminal as a command.
std::string harmless(std::string_view text, std::size_t longest) {
    std::string all{text.substr(0, longest)};
    for (char& c : all) {
        if (c < ' ' || c > '~') c = '?';
    }
    return all;
}

class sheet {
  public:
    sheet(std::size_t columns, bool colours) : columns_(columns), colours_(colours) {}

    void line(std::string text) {
        if (text.size() > columns_) text.resize(columns_);
        text_ += text;
        text_ += '\n';
    }
    void title(std::string text) {
        if (text.size() > columns_) text.resize(columns_);
        text_ += colours_ ? "\x1b[1m" + text + "\x1b[0m" : text;
        text_ += '\n';
    }
    std::string take() { return std::move(text_); }

  private:
    std::size_t columns_;
    bool colours_;
    std::string text_;
};

void write_head(sheet& to, status const& s) {
    to.title(fmt::format("rondo {}   {}   configuration {}   up {:.0f} s", s.version,
                         s.draining ? "draining" : "running", s.config_version, s.uptime_s));
    to.line("");
    to.line(fmt::format("offered   {:>9}/s    served    {:>9}/s    connections {:>8}",
                        rate(s.offered), rate(s.served), s.connections));
    if (s.limit == 0) {
        to.line(fmt::format("in flight {:>9}      no limit", s.in_flight));
    } else {
        to.line(
            fmt::format("in flight {:>9} of {:<8} [{}]", s.in_flight, s.limit,
                        bar(static_cast<double>(s.in_flight) / static_cast<double>(s.limit), 20)));
        to.line(fmt::format("queued    {:>9} of {:<8}", s.queued, s.capacity));
        to.line(fmt::format("wait   p50 {:>10}   p99 {:>10}", duration(s.wait_p50_ms),
                            duration(s.wait_p99_ms)));
    }
    to.line(fmt::format("answer p50 {:>10}   p99 {:>10}", duration(s.p50_ms), duration(s.p99_ms)));
}

void write_tenants(sheet& to, status const& s) {
    if (s.tenants.empty()) return;
    to.line("");
    to.title(fmt::format("{:<20} {:>6} {:>9} {:>9} {:>9} {:>7} {:>10} {:>8}", "tenant", "weight",
                         "entitled", "share", "in flight", "queued", "wait p99", "refused"));
    for (tenant_status const& t : s.tenants) {
        to.line(fmt::format("{:<20} {:>6} {:>9} {:>9} {:>9} {:>7} {:>10} {:>8}",
                            harmless(t.name, 20), rate(t.weight), percent(t.entitled),
                            percent(t.share), t.in_flight, t.queued, duration(t.wait_p99_ms),
                            t.refusals));
    }
}

void write_backends(sheet& to, status const& s) {
    if (s.backends.empty()) return;
    to.line("");
    to.title(fmt::format("{:<24} {:<10} {:<14} {:>9} {:>11} {:>9}", "backend", "health", "route",
                         "per s", "requests", "failures"));
    for (backend_status const& b : s.backends) {
        to.line(fmt::format("{:<24} {:<10} {:<14} {:>9} {:>11} {:>9}", harmless(b.address, 24),
                            b.set_aside ? "set aside" : "well", harmless(b.route, 14), rate(b.rate),
                            b.requests, b.failures));
    }
}

void write_servers(sheet& to, status const& s) {
    to.line("");
    to.title(fmt::format("{:<24} {:>17} {:>9} {:>11} {:>10} {:>10}", "server", "connections",
                         "per s", "requests", "p50", "p99"));
    for (server_status const& one : s.servers) {
        to.line(fmt::format("{:<24} {:>17} {:>9} {:>11} {:>10} {:>10}", harmless(one.name, 24),
                            fmt::format("{} of {}", one.connections, one.max_connections),
                            rate(one.rate), one.requests, duration(one.p50_ms),
                            duration(one.p99_ms)));
    }
}

}  // namespace

std::string page_of(status const& s, std::size_t columns, bool colours) {
    sheet page{columns, colours};
    write_head(page, s);
    write_tenants(page, s);
    write_backends(page, s);
    write_servers(page, s);
    return page.take();
}

}  // namespace rondo::gateway
