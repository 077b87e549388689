#include "sides.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "events.hpp"
#include "turns_paths.hpp"

namespace rondo::bench {

namespace {

void replace_all(std::string& text, std::string_view what, std::string_view by) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
        text.replace(at, what.size(), by);
    }
}

// Turns between tenants, or first in, first out, with the same limits.
std::string rondo_config(side_terms t, bool turns) {
    std::ostringstream out;
    out << "[gateway]\nlog = 'warn'\n[admission]\nmax_in_flight = " << t.in_flight
        << "\nmax_queued = " << t.queued << "\nturns = " << (turns ? "true" : "false")
        << "\n[admission.deadline]\nheader = 'x-timeout'\n"
        << "[tenants]\nkey = ['header:x-tenant']\ntrusted = ['127.0.0.1']\n"
        << "[[server]]\nlisten = '127.0.0.1:%p'\nmax_connections = 9000\n"
        << "forward = '127.0.0.1:%u'\n";
    return out.str();
}

// Each tenant its part of what there is, and as much waiting as it would take the others.
std::string nginx_config(side_terms t) {
    std::ostringstream out;
    out << "daemon off; worker_processes 2; pid nginx.pid; error_log stderr crit;\n"
        << "worker_rlimit_nofile 20000;\nevents { worker_connections 9000; }\n"
        << "http { access_log off;\nlimit_req_zone $http_x_tenant zone=t:1m rate="
        << static_cast<int>(t.capacity) / static_cast<int>(t.tenants)
        << "r/s; limit_req_status 429;\n"
        << "upstream u { server 127.0.0.1:%u; keepalive " << t.in_flight << "; }\n"
        << "server { listen 127.0.0.1:%p backlog=4096; keepalive_requests 1000000;\n"
        << "limit_req zone=t burst=" << t.queued / t.tenants << ";\n"
        << "location / { proxy_pass http://u; proxy_http_version 1.1; "
        << "proxy_set_header Connection \"\"; } } }\n";
    return out.str();
}

// As many at the upstream as we send it; the others wait as long as ours would, at most.
std::string haproxy_config(side_terms t) {
    std::ostringstream out;
    out << "global\n maxconn 9000\ndefaults\n mode http\n timeout connect 5s\n"
        << " timeout client 60s\n timeout server 60s\n timeout queue "
        << static_cast<int>(1000 * static_cast<double>(t.queued) / t.capacity) << "ms\n"
        << "frontend f\n bind 127.0.0.1:%p backlog 4096\n default_backend b\n"
        << "backend b\n server s 127.0.0.1:%u maxconn " << t.in_flight << "\n";
    return out.str();
}

// The process and its children.
std::vector<pid_t> family(pid_t of) {
    std::vector<pid_t> all{of};
    std::string const p = std::to_string(of);
    std::ifstream children{"/proc/" + p + "/task/" + p + "/children"};
    for (pid_t child = 0; children >> child;) {
        for (pid_t const c : family(child)) all.push_back(c);
    }
    return all;
}

double peak_mb(pid_t of) {
    std::ifstream status{"/proc/" + std::to_string(of) + "/status"};
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
    }
    return 0;
}

double cpu_seconds(pid_t of) {
    std::ifstream stat{"/proc/" + std::to_string(of) + "/stat"};
    std::string text;
    std::getline(stat, text);
    std::istringstream fields{text.substr(text.rfind(')') + 2)};
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    double user = 0;
    double system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

std::vector<std::string> const& side::names() {
    static std::vector<std::string> const all{"rondo", "fifo", "nginx", "haproxy"};
    return all;
}

std::unique_ptr<side> side::launch(std::string const& name, std::string config,
                                   std::vector<std::string> command, std::uint16_t to) {
    if (::access(command.front().c_str(), X_OK) != 0) {
        std::printf("turns - %s is not there\n", name.c_str());
        return nullptr;
    }
    std::unique_ptr<side> s{new side};
    s->port_ = free_port();
    replace_all(config, "%p", std::to_string(s->port_));
    replace_all(config, "%u", std::to_string(to));
    std::string const file = s->folder_.write("config", config).string();
    for (std::string& word : command) {
        replace_all(word, "%f", file);
        replace_all(word, "%d", s->folder_.path().string());
    }
    s->process_.emplace(command);
    if (listens(s->port_)) return s;
    s->process_->signal(SIGTERM);
    (void)s->process_->wait();
    std::printf("turns - %s did not start: %s\n", name.c_str(), s->process_->said().c_str());
    return nullptr;
}

std::unique_ptr<side> side::start(std::string const& name, side_terms t, std::uint16_t to) {
    if (name == "nginx") {
        return launch(name, nginx_config(t), {"/usr/sbin/nginx", "-p", "%d", "-c", "%f"}, to);
    }
    if (name == "haproxy") {
        return launch(name, haproxy_config(t), {"/usr/sbin/haproxy", "-db", "-f", "%f"}, to);
    }
    return start_rondo(name, rondo_config(t, name == "rondo"), to);
}

std::unique_ptr<side> side::start_rondo(std::string const& name, std::string config,
                                        std::uint16_t to) {
    return launch(name, std::move(config), {RONDO_PROGRAM, "run", "-c", "%f"}, to);
}

side::usage side::take_usage() {
    usage u{};
    for (pid_t const p : family(process_->pid())) {
        u.peak_mb += peak_mb(p);
        u.cpu_seconds += cpu_seconds(p);
        std::ofstream{"/proc/" + std::to_string(p) + "/clear_refs"} << 5;  // the peak begins anew
    }
    double const before = std::exchange(cpu_before_, u.cpu_seconds);
    u.cpu_seconds -= before;
    return u;
}

}  // namespace rondo::bench
