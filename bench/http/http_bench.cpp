// The gateway beside nginx and HAProxy: requests a second, p99, processor time of a request, and
// the memory of an idle connection.
//
// Who            `rondo run`, nginx and HAProxy, each a process with a configuration of its own,
//                all started once and measured in turns: one run of each per round, the order
//                moving on by one. wrk asks, over as many connections as the name says. The
//                upstream is another nginx: it answers 13 bytes from memory (`return`) and serves
//                64 KiB out of the page cache. Files are served as they are now: nginx without
//                open_file_cache, which answers with what was there a minute ago.
// Where          half of the processors belong to the gateway: as many workers (rondo counts those
//                that it may use; worker_processes; nbthread). wrk and the upstream have the other
//                half. With one processor all share it.
// Output         requests a second, as medians of RONDO_BENCH_ROUNDS (5) runs of
//                RONDO_BENCH_SECONDS (2):
//                  ratio http proxy_13B_c64 nginx rondo=54700 peer=51200 1.07x
//                  spread http proxy_13B_c64 nginx rondo=53000..55100 peer=50000..51900
//                      p99 rondo=1.31ms peer=1.40ms cpu rondo=17.2us peer=18.1us
//                (in one line). cpu is the processor time that the gateway took for a request: if
//                it is less than a worker had, something else was slow.
//                idle_memory: bytes of resident memory for each of 8000 connections that have had
//                an answer and wait; above 1x rondo needs less.
// Failures       a run with errors or statuses other than 200 is not counted, but said.
//
// Arguments are beginnings of names of workloads.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../support/ratio.hpp"
#include "http_paths.hpp"
#include "support/child_process.hpp"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using rondo::bench::quantile;

constexpr char const* nginx_program = "/usr/sbin/nginx";
constexpr char const* haproxy_program = "/usr/sbin/haproxy";
constexpr char const* wrk_program = "/usr/bin/wrk";
constexpr int idle_connections = 8000;
// HAProxy wants two descriptors for each, and 20000 are usual at most.
constexpr int most_connections = 9000;

std::size_t number_from(char const* name, std::size_t otherwise) {
    char const* const set = std::getenv(name);
    return set != nullptr ? std::max<std::size_t>(std::strtoul(set, nullptr, 10), 1) : otherwise;
}

// --- processors ----------------------------------------------------------------------------------

std::vector<int> usable_processors() {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
    std::vector<int> all;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
        if (CPU_ISSET(i, &set)) all.push_back(i);
    }
    return all;
}

void stay_on(std::vector<int> const& processors) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int const i : processors) CPU_SET(i, &set);
    (void)::sched_setaffinity(0, sizeof set, &set);
}

struct halves {
    std::vector<int> of_gateway;
    std::vector<int> of_load;

    explicit halves(std::vector<int> const& all) : of_gateway(all), of_load(all) {
        if (all.size() < 2) return;
        auto const middle = static_cast<std::ptrdiff_t>(all.size() / 2);
        of_gateway.assign(all.begin(), all.begin() + middle);
        of_load.assign(all.begin() + middle, all.end());
    }
    std::size_t workers() const noexcept { return of_gateway.size(); }
};

// --- processes -----------------------------------------------------------------------------------

// Runs until its owner goes, with what it starts.
class process {
  public:
    process(std::vector<std::string> command, std::vector<int> const& processors) : pid_(::fork()) {
        if (pid_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        stay_on(processors);
        int const nowhere = ::open("/dev/null", O_WRONLY);
        ::dup2(nowhere, 1);
        ::dup2(nowhere, 2);
        std::vector<char*> arguments;
        for (std::string& a : command) arguments.push_back(a.data());
        arguments.push_back(nullptr);
        ::execv(arguments[0], arguments.data());
        ::_exit(127);
    }
    process(process const&) = delete;
    process& operator=(process const&) = delete;
    ~process() {
        ::kill(pid_, SIGTERM);
        ::waitpid(pid_, nullptr, 0);
    }

    // Of it and its children.
    double cpu_seconds() const {
        double sum = 0;
        for (pid_t const p : family()) sum += cpu_seconds_of(p);
        return sum;
    }
    double resident_bytes() const {
        double sum = 0;
        for (pid_t const p : family()) {
            std::ifstream in{"/proc/" + std::to_string(p) + "/statm"};
            double pages = 0;
            double resident = 0;
            in >> pages >> resident;
            sum += resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
        }
        return sum;
    }

  private:
    std::vector<pid_t> family() const {
        std::string const id = std::to_string(pid_);
        std::ifstream in{"/proc/" + id + "/task/" + id + "/children"};
        std::vector<pid_t> all{pid_};
        for (pid_t child = 0; in >> child;) all.push_back(child);
        return all;
    }
    static double cpu_seconds_of(pid_t p) {
        std::ifstream in{"/proc/" + std::to_string(p) + "/stat"};
        std::string const text{std::istreambuf_iterator<char>{in}, {}};
        std::size_t const name_end = text.rfind(')');
        if (name_end == std::string::npos) return 0;
        // From the state on: utime and stime are the 12th and 13th.
        std::array<char, 32> state{};
        unsigned long user = 0;
        unsigned long system = 0;
        if (std::sscanf(text.c_str() + name_end + 1,
                        "%31s %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", state.data(), &user,
                        &system) != 3) {
            return 0;
        }
        return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    }

    pid_t pid_;
};

// --- sockets -------------------------------------------------------------------------------------

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

class socket {
  public:
    socket() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
    socket(socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    socket& operator=(socket&&) = delete;
    ~socket() {
        if (fd_ >= 0) ::close(fd_);
    }

    bool connect(std::uint16_t port) const {
        sockaddr_in const to = loopback(port);
        return ::connect(fd_, reinterpret_cast<sockaddr const*>(&to), sizeof to) == 0;
    }
    // A port that nobody has, until it is used.
    std::uint16_t bind_anywhere() const {
        sockaddr_in at = loopback(0);
        socklen_t size = sizeof at;
        if (::bind(fd_, reinterpret_cast<sockaddr const*>(&at), size) != 0 ||
            ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
            throw std::runtime_error("no port is free");
        }
        return ntohs(at.sin_port);
    }
    // Whether it was answered with 200 and a body of 13 bytes.
    bool ask() const {
        std::string_view const request = "GET /small HTTP/1.1\r\nHost: bench\r\n\r\n";
        if (::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) < 0) return false;
        std::string answer;
        while (!answer.ends_with("Hello, world!")) {
            std::array<char, 4096> piece;
            ssize_t const n = ::recv(fd_, piece.data(), piece.size(), 0);
            if (n <= 0) return false;
            answer.append(piece.data(), static_cast<std::size_t>(n));
        }
        return answer.starts_with("HTTP/1.1 200 ");
    }

  private:
    int fd_;
};

std::uint16_t free_port() { return socket{}.bind_anywhere(); }

bool listens(std::uint16_t port) {
    for (int i = 0; i < 400; ++i) {
        if (socket{}.connect(port)) return true;
        std::this_thread::sleep_for(10ms);
    }
    return false;
}

// --- what is measured ----------------------------------------------------------------------------

class folder {
  public:
    folder() { fs::permissions(in_.path(), fs::perms{0755}); }  // for nginx's workers

    std::string operator/(std::string const& name) const { return (in_.path() / name).string(); }
    std::string write(std::string const& name, std::string const& text) const {
        return in_.write(name, text).string();
    }

  private:
    rondo::test::scratch_directory in_;
};

// Everything that is started, and the files it needs.
struct setting {
    folder at;
    halves processors{usable_processors()};

    setting() {
        at.write("www/1k", std::string(1024, 'k'));
        at.write("www/64k", std::string(65536, 'l'));
        at.write("www/1m", std::string(1048576, 'm'));
    }

    // What both nginx have.
    std::string nginx_head(std::string const& name) const {
        std::string text = "daemon off; worker_processes " + std::to_string(processors.workers()) +
                           "; error_log /dev/null; pid " + at / (name + ".pid") +
                           ";\nworker_rlimit_nofile 20000;\nevents { worker_connections 18000; }\n"
                           "http { access_log off; sendfile on; tcp_nopush on; tcp_nodelay on;\n"
                           "keepalive_requests 1000000000;\n";
        for (char const* const kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
            text += std::string{kind} + "_temp_path " + at / (name + "_" + kind) + ";\n";
        }
        return text;
    }
};

struct running {
    std::string name;
    std::uint16_t port = 0;
    std::unique_ptr<process> program = {};
    bool has_files = true;
};

std::unique_ptr<process> start_nginx(setting const& s, std::string const& name,
                                     std::string const& servers, std::vector<int> const& where) {
    std::string const file = s.at.write(name + ".conf", s.nginx_head(name) + servers + "}\n");
    return std::make_unique<process>(
        std::vector<std::string>{nginx_program, "-p", s.at / "", "-c", file}, where);
}

running start_upstream(setting const& s) {
    running r{.name = "upstream", .port = free_port()};
    r.program =
        start_nginx(s, r.name,
                    "server { listen 127.0.0.1:" + std::to_string(r.port) + " backlog=4096; root " +
                        s.at / "www" + ";\nlocation /small { return 200 \"Hello, world!\"; } }\n",
                    s.processors.of_load);
    return r;
}

running start_rondo(setting const& s, std::string const& up) {
    running r{.name = "rondo", .port = free_port()};
    std::string const file = s.at.write(
        "rondo.toml",
        "[gateway]\nlog = 'warn'\n[[server]]\nlisten = '127.0.0.1:" + std::to_string(r.port) +
            "'\nmax_connections = " + std::to_string(most_connections) +
            "\nmatch = [\n  { uri = '/files', serve = '" + s.at / "www" +
            "' },\n  { uri = '/', forward = '" + up + "' },\n]\n");
    r.program = std::make_unique<process>(
        std::vector<std::string>{RONDO_PROGRAM, "run", "-c", file}, s.processors.of_gateway);
    return r;
}

running start_nginx_gateway(setting const& s, std::string const& up) {
    running r{.name = "nginx", .port = free_port()};
    r.program = start_nginx(
        s, r.name,
        "upstream u { server " + up +
            "; keepalive 512; keepalive_requests 1000000000; }\nserver { listen 127.0.0.1:" +
            std::to_string(r.port) + " backlog=4096;\nlocation /files/ { alias " + s.at / "www/" +
            "; }\nlocation / { proxy_pass http://u; proxy_http_version 1.1; proxy_set_header "
            "Connection \"\"; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; "
            "proxy_max_temp_file_size 0; } }\n",
        s.processors.of_gateway);
    return r;
}

running start_haproxy(setting const& s, std::string const& up) {
    running r{.name = "haproxy", .port = free_port(), .program = nullptr, .has_files = false};
    std::string const file = s.at.write(
        "haproxy.cfg",
        "global\n nbthread " + std::to_string(s.processors.workers()) + "\n maxconn " +
            std::to_string(most_connections) +
            "\ndefaults\n mode http\n option forwardfor\n http-reuse always\n timeout connect "
            "5s\n timeout client 60s\n timeout server 60s\nfrontend f\n bind 127.0.0.1:" +
            std::to_string(r.port) + " backlog 4096\n default_backend b\nbackend b\n server s " +
            up + "\n");
    r.program = std::make_unique<process>(
        std::vector<std::string>{haproxy_program, "-db", "-f", file}, s.processors.of_gateway);
    return r;
}

using start_function = running(setting const&, std::string const& upstream);

// --- one run -------------------------------------------------------------------------------------

struct sample {
    double requests_a_second;
    double p99_ms;
    double cpu_us;  // of a request
};

// "3.30ms", "870.00us", "1.20s".
double to_ms(std::string_view text) {
    double const n = std::strtod(std::string{text}.c_str(), nullptr);
    if (text.ends_with("us")) return n / 1000;
    return text.ends_with("ms") ? n : n * 1000;
}

std::optional<std::string> word_after(std::string const& text, std::string_view label) {
    std::size_t const at = text.find(label);
    if (at == std::string::npos) return std::nullopt;
    std::size_t const from = text.find_first_not_of(' ', at + label.size());
    return text.substr(from, text.find_first_of(" \n", from) - from);
}

std::string output_of(std::string const& command) {
    std::string said;
    FILE* const out = ::popen(command.c_str(), "r");
    if (out == nullptr) return said;
    std::array<char, 4096> piece;
    while (std::size_t const n = std::fread(piece.data(), 1, piece.size(), out)) {
        said.append(piece.data(), n);
    }
    (void)::pclose(out);
    return said;
}

std::optional<sample> run_wrk(running const& r, std::string const& path, int connections,
                              std::size_t threads, std::size_t seconds) {
    threads = std::min(threads, static_cast<std::size_t>(connections));
    double const before = r.program->cpu_seconds();
    std::string const said =
        output_of(std::string{wrk_program} + " --latency -t" + std::to_string(threads) + " -c" +
                  std::to_string(connections) + " -d" + std::to_string(seconds) +
                  "s http://127.0.0.1:" + std::to_string(r.port) + path + " 2>&1");
    double const cpu = r.program->cpu_seconds() - before;
    auto const rate = word_after(said, "Requests/sec:");
    auto const p99 = word_after(said, "99%");
    bool const wrong = said.find("Non-2xx") != std::string::npos ||
                       said.find("Socket errors") != std::string::npos;
    if (wrong || !rate || !p99) {
        std::size_t const from = said.find_first_of("NS", said.find("requests in"));
        std::printf("failed http %s%s c%d: %s\n", r.name.c_str(), path.c_str(), connections,
                    wrong ? said.substr(from, said.find('\n', from) - from).c_str() : said.c_str());
        return std::nullopt;
    }
    double const a_second = std::strtod(rate->c_str(), nullptr);
    return sample{a_second, to_ms(*p99), 1e6 * cpu / (a_second * static_cast<double>(seconds))};
}

// --- workloads -----------------------------------------------------------------------------------

struct workload {
    std::string name;
    std::string path;
    int connections;
    bool of_files;
};

std::vector<workload> all_workloads() {
    std::vector<workload> all;
    struct what {
        char const* name;
        char const* path;
        bool of_files;
    };
    for (what const& w :
         {what{"proxy_13B", "/small", false}, what{"proxy_64KiB", "/64k", false},
          what{"static_1KiB", "/files/1k", true}, what{"static_1MiB", "/files/1m", true}}) {
        for (int const c : {1, 64, 512}) {
            all.push_back({w.name + ("_c" + std::to_string(c)), w.path, c, w.of_files});
        }
    }
    return all;
}

class record {
  public:
    void add(sample const& s) { all_.push_back(s); }
    bool empty() const noexcept { return all_.empty(); }
    double at(double sample::* what, double q) const {
        std::vector<double> sorted;
        for (sample const& s : all_) sorted.push_back(s.*what);
        std::ranges::sort(sorted);
        return quantile(sorted, q);
    }
    double median(double sample::* what) const { return at(what, 0.5); }

  private:
    std::vector<sample> all_;
};

void print_pair(workload const& w, std::string const& peer, record const& ours,
                record const& theirs) {
    auto const rate = &sample::requests_a_second;
    std::printf("ratio http %s %s rondo=%.0f peer=%.0f %.2fx\n", w.name.c_str(), peer.c_str(),
                ours.median(rate), theirs.median(rate), ours.median(rate) / theirs.median(rate));
    std::printf(
        "spread http %s %s rondo=%.0f..%.0f peer=%.0f..%.0f p99 rondo=%.2fms peer=%.2fms cpu "
        "rondo=%.1fus peer=%.1fus\n",
        w.name.c_str(), peer.c_str(), ours.at(rate, 0.25), ours.at(rate, 0.75),
        theirs.at(rate, 0.25), theirs.at(rate, 0.75), ours.median(&sample::p99_ms),
        theirs.median(&sample::p99_ms), ours.median(&sample::cpu_us),
        theirs.median(&sample::cpu_us));
    std::fflush(stdout);
}

// all[0] is ours.
void measure(workload const& w, std::vector<running> const& all, std::size_t threads) {
    std::size_t const rounds = number_from("RONDO_BENCH_ROUNDS", 5);
    std::size_t const seconds = number_from("RONDO_BENCH_SECONDS", 2);
    std::vector<record> records(all.size());
    for (std::size_t round = 0; round < rounds; ++round) {
        for (std::size_t turn = 0; turn < all.size(); ++turn) {
            std::size_t const who = (round + turn) % all.size();
            if (w.of_files && !all[who].has_files) continue;
            auto const s = run_wrk(all[who], w.path, w.connections, threads, seconds);
            if (s) records[who].add(*s);
        }
    }
    for (std::size_t i = 1; i < all.size(); ++i) {
        if (records[0].empty() || records[i].empty()) continue;
        print_pair(w, all[i].name, records[0], records[i]);
    }
}

// --- memory --------------------------------------------------------------------------------------

// Of one that has just been started: what a gateway has freed it would use again. Each connection
// has had an answer. Then they wait: rondo takes the buffers of connections back that have been
// idle for some two seconds.
std::optional<double> bytes_of_an_idle_connection(running const& r) {
    if (!listens(r.port)) return std::nullopt;
    for (int i = 0; i < 100; ++i) {  // what is made once
        socket const s;
        if (!s.connect(r.port) || !s.ask()) return std::nullopt;
    }
    double const before = r.program->resident_bytes();
    std::vector<socket> all;
    for (int i = 0; i < idle_connections; ++i) {
        socket const& s = all.emplace_back();
        if (!s.connect(r.port) || !s.ask()) return std::nullopt;
    }
    std::this_thread::sleep_for(4s);
    return (r.program->resident_bytes() - before) / idle_connections;
}

// The first is ours.
void measure_memory(setting const& s, std::vector<start_function*> const& starts,
                    std::string const& up) {
    std::optional<double> ours;
    for (start_function* const start : starts) {
        running const r = start(s, up);
        auto const bytes = bytes_of_an_idle_connection(r);
        if (!bytes) {
            std::printf("failed http idle_memory %s: a connection was refused\n", r.name.c_str());
        } else if (start == starts.front()) {
            ours = bytes;
        } else if (ours) {
            std::printf("ratio http idle_memory %s rondo=%.0f peer=%.0f %.2fx\n", r.name.c_str(),
                        *ours, *bytes, *bytes / *ours);
        }
        std::fflush(stdout);
    }
}

// --- all of it -----------------------------------------------------------------------------------

bool is_there(char const* program, char const* package) {
    if (::access(program, X_OK) == 0) return true;
    std::printf("missing http %s: it comes with the package %s\n", program, package);
    return false;
}

bool all_listen(std::vector<running> const& all) {
    return std::ranges::all_of(all, [](running const& r) {
        bool const up = listens(r.port);
        if (!up) std::printf("failed http %s: it does not start\n", r.name.c_str());
        return up;
    });
}

int run(std::vector<std::string_view> const& beginnings) {
    auto const wanted = [&](std::string_view name) {
        return beginnings.empty() ||
               std::ranges::any_of(beginnings, [&](auto b) { return name.starts_with(b); });
    };
    std::vector<workload> chosen = all_workloads();
    std::erase_if(chosen, [&](workload const& w) { return !wanted(w.name); });
    if (chosen.empty() && !wanted("idle_memory")) {
        std::fprintf(stderr, "no workload begins so; there are:");
        for (workload const& w : all_workloads()) std::fprintf(stderr, " %s", w.name.c_str());
        std::fprintf(stderr, " idle_memory\n");
        return EXIT_FAILURE;
    }
    if (!is_there(nginx_program, "nginx-light") || !is_there(wrk_program, "wrk")) {
        return EXIT_FAILURE;  // nothing to ask, or nobody who asks
    }

    setting const s;
    std::printf(
        "legend: requests a second, above 1x rondo serves more; %zu of %zu processors and as many "
        "workers for the gateway, the others for wrk and the upstream (nginx). haproxy has no "
        "files\n",
        s.processors.workers(), usable_processors().size());
    std::vector<running> up;
    up.push_back(start_upstream(s));
    std::string const up_address = "127.0.0.1:" + std::to_string(up[0].port);
    std::vector<start_function*> starts{start_rondo, start_nginx_gateway};
    if (is_there(haproxy_program, "haproxy")) starts.push_back(start_haproxy);
    if (!all_listen(up)) return EXIT_FAILURE;
    if (!chosen.empty()) {
        std::vector<running> all;
        for (start_function* const start : starts) all.push_back(start(s, up_address));
        if (!all_listen(all)) return EXIT_FAILURE;
        stay_on(s.processors.of_load);
        for (workload const& w : chosen) measure(w, all, s.processors.workers());
    }
    if (wanted("idle_memory")) measure_memory(s, starts, up_address);
    return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) try {
    return run({argv + 1, argv + argc});
} catch (std::exception const& e) {
    std::fprintf(stderr, "http_bench: %s\n", e.what());
    return EXIT_FAILURE;
}
