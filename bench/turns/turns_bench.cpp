// Tenants before an upstream that can do so much and no more: what quiet ones get beside a noisy
// one, through a gateway with turns, without them, and through nginx and HAProxy if they are there.
//
// The upstream has 32 slots; a request takes 10 ms there on average (exponential), so it can do
// 3200 a second. 20 quiet tenants offer a fifth of that together; one noisy tenant offers 100 or
// 1000 times what each of them does. Arrivals are open loop (Poisson, fixed seeds): a request is
// counted from the moment at which it should have been sent, whatever held up its sender. A run
// takes RONDO_BENCH_SECONDS (2).
//
//   alone               the quiet load by itself
//   hot_100, hot_1000   with the noisy tenant
//   over_2, over_10     21 tenants alike, 2 and 10 times too much, with deadlines of 250 ms;
//                       goodput is what was answered in time, of what could have been
//   spike               half a second of 10 times too much, then the quiet load: how long until the
//                       quiet requests take no longer than twice their usual p99
//
//   turns hot_100 rondo quiet_p50=..ms quiet_p99=..ms worst_tenant_p99=..ms refused_quiet=..
//         served=../s refusal_p99=..ms rss=..MB
//
// On a machine with few processors the generator, the gateway and the upstream share them.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/histogram.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/http/admission.hpp"
#include "rondo/http/client.hpp"
#include "rondo/http/proxy.hpp"
#include "rondo/http/server.hpp"
#include "rondo/sync/semaphore.hpp"

namespace {

using namespace rondo;
using namespace std::chrono_literals;
using boost::asio::ip::tcp;

constexpr std::size_t slots = 32;
constexpr clock::duration service = 10ms;
constexpr double capacity = 3200;
constexpr std::size_t quiet_tenants = 20;
constexpr double quiet_rate = capacity * 0.2 / quiet_tenants;

double seconds_of_a_run() {
    char const* const set = std::getenv("RONDO_BENCH_SECONDS");
    return set != nullptr ? std::atof(set) : 2.0;
}
double ms(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

tcp::endpoint loopback(std::uint16_t port = 0) {
    return {boost::asio::ip::address_v4::loopback(), port};
}
http::server_options at_a_free_port() {
    http::server_options o;
    o.listen.push_back({loopback()});
    o.max_connections = 20'000;
    o.backlog = 4096;
    return o;
}

// --- what stands behind ------------------------------------------------------------------------

class upstream {
  public:
    upstream()
        : server_(rt_, at_a_free_port(), [this](http::exchange* x) { return serve(this, x); }) {
        if (!server_.start()) std::abort();
    }
    tcp::endpoint address() const { return server_.addresses().front(); }

  private:
    static task<void> serve(upstream* self, http::exchange* x) {
        auto const slot = co_await self->free_.acquire();
        std::exponential_distribution<double> takes{1.0};
        co_await sleep_for(
            std::chrono::duration_cast<clock::duration>(service * takes(self->random_)));
        (void)co_await x->send("ok");
    }

    std::mt19937_64 random_{7};
    semaphore free_{slots};
    runtime rt_{{.workers = 1}};
    http::server server_;
};

// --- what stands in front ----------------------------------------------------------------------

class gateway {
  public:
    gateway(tcp::endpoint to, bool turns)
        : admission_(settings(turns), 1),
          client_(rt_),
          proxy_(client_, {.backends = {{to, 1}}}),
          server_(rt_, options(), [this](http::exchange* x) { return proxy_.answer(x); }) {
        if (!server_.start()) std::abort();
    }
    tcp::endpoint address() const { return server_.addresses().front(); }

  private:
    static http::admission_settings settings(bool turns) {
        http::admission_settings s;
        s.limits.max_in_flight = slots;
        s.limits.max_queued = 4000;
        s.limits.max_queued_per_tenant = turns ? 2000 : 4000;
        s.tenants.key = {*http::parse_tenant_key("header:x-tenant")};
        s.tenants.trusted = {*http::parse_network("127.0.0.1")};
        s.deadline_header = "x-timeout";
        s.turns = turns;
        return s;
    }
    http::server_options options() {
        http::server_options o = at_a_free_port();
        o.layers.push_back(admission_.as_layer());
        return o;
    }

    http::admission admission_;
    runtime rt_{{.workers = 1}};
    http::client client_;
    http::proxy proxy_;
    http::server server_;
};

// A program with a configuration, in the foreground; it ends with this one.
class peer {
  public:
    peer(char const* program, std::vector<std::string> arguments) : pid_(::fork()) {
        if (pid_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        int const nowhere = ::open("/dev/null", O_WRONLY);
        ::dup2(nowhere, 1);
        ::dup2(nowhere, 2);
        std::vector<char*> argv{const_cast<char*>(program)};
        for (std::string& a : arguments) argv.push_back(a.data());
        argv.push_back(nullptr);
        ::execv(program, argv.data());
        ::_exit(127);
    }
    peer(peer const&) = delete;
    peer& operator=(peer const&) = delete;
    ~peer() {
        ::kill(pid_, SIGTERM);
        ::waitpid(pid_, nullptr, 0);
    }

  private:
    pid_t pid_;
};

std::uint16_t free_port() {
    boost::asio::io_context context;
    tcp::acceptor const taken{context, loopback()};
    return taken.local_endpoint().port();
}

bool listens(std::uint16_t port) {
    for (int i = 0; i < 200; ++i) {
        boost::asio::io_context context;
        tcp::socket s{context};
        boost::system::error_code error;
        (void)s.connect(loopback(port), error);
        if (!error) return true;
        std::this_thread::sleep_for(10ms);
    }
    return false;
}

std::string folder() {
    char name[] = "/tmp/rondo_turns_XXXXXX";
    return ::mkdtemp(name);
}

std::unique_ptr<peer> start_nginx(std::uint16_t port, std::uint16_t to) {
    if (::access("/usr/sbin/nginx", X_OK) != 0) return nullptr;
    std::string const at = folder();
    std::ofstream{at + "/nginx.conf"}
        << "daemon off; master_process off; pid " << at << "/pid; error_log /dev/null;\n"
        << "events { worker_connections 20000; }\nhttp { access_log off;\n"
        << "limit_req_zone $http_x_tenant zone=t:1m rate=" << static_cast<int>(capacity / 21)
        << "r/s; limit_req_status 429;\nupstream u { server 127.0.0.1:" << to
        << "; keepalive 64; }\nserver { listen 127.0.0.1:" << port << " backlog=4096;\n"
        << "keepalive_requests 1000000; limit_req zone=t burst=100;\n"
        << "location / { proxy_pass http://u; proxy_http_version 1.1; "
           "proxy_set_header Connection \"\"; } } }\n";
    return std::make_unique<peer>("/usr/sbin/nginx",
                                  std::vector<std::string>{"-p", at, "-c", at + "/nginx.conf"});
}

std::unique_ptr<peer> start_haproxy(std::uint16_t port, std::uint16_t to) {
    if (::access("/usr/sbin/haproxy", X_OK) != 0) return nullptr;
    std::string const at = folder();
    std::ofstream{at + "/haproxy.cfg"}
        << "global\n maxconn 20000\ndefaults\n mode http\n timeout connect 5s\n timeout client "
           "60s\n"
        << " timeout server 60s\n timeout queue 5s\nfrontend f\n bind 127.0.0.1:" << port
        << "\n default_backend b\nbackend b\n server s 127.0.0.1:" << to << " maxconn " << slots
        << "\n";
    return std::make_unique<peer>("/usr/sbin/haproxy",
                                  std::vector<std::string>{"-db", "-f", at + "/haproxy.cfg"});
}

// --- the generator -----------------------------------------------------------------------------

struct tenant_load {
    double rate;  // a second
    std::string name;
};

struct outcome {
    std::vector<histogram> times;  // of the answers, of each tenant
    histogram refusals;
    std::vector<std::uint64_t> served, refused;
    std::uint64_t in_time = 0;
    std::vector<std::pair<clock::duration, clock::duration>>
        quiet;  // when it should begin, and took

    explicit outcome(std::size_t tenants) : times(tenants), served(tenants), refused(tenants) {}
};

class generator {
  public:
    explicit generator(tcp::endpoint to) : to_(to), client_(rt_, options()) {}

    // `rates` may change with time.
    std::unique_ptr<outcome> run(std::vector<tenant_load> const& tenants, double seconds,
                                 clock::duration patience,
                                 std::function<double(double)> const& boost = {}) {
        out_ = std::make_unique<outcome>(tenants.size());
        patience_ = patience;
        boost_ = boost;
        auto handle = rt_.spawn_pinned(drive(this, &tenants, seconds));
        (void)handle.blocking_join();
        return std::move(out_);
    }

  private:
    static http::client_options options() {
        http::client_options o;
        o.idle_per_address = 20'000;
        o.connect_timeout = 20s;
        return o;
    }

    static task<void> drive(generator* self, std::vector<tenant_load> const* tenants,
                            double seconds) {
        std::mt19937_64 random{42};
        std::vector<double> sums;
        double total = 0;
        for (tenant_load const& t : *tenants) sums.push_back(total += t.rate);
        std::vector<join_handle<void>> all;
        time_point const begin = clock::now();
        double at = 0;
        for (;;) {
            double const rate = total * (self->boost_ ? self->boost_(at) : 1.0);
            at += std::exponential_distribution<double>{rate}(random);
            if (at > seconds) break;
            double const pick = std::uniform_real_distribution<double>{0, total}(random);
            auto const who = static_cast<std::size_t>(
                std::upper_bound(sums.begin(), sums.end(), pick) - sums.begin());
            auto const due =
                std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>{at});
            if (begin + due > clock::now()) co_await sleep_until(begin + due);
            std::string const* const name = &(*tenants)[std::min(who, tenants->size() - 1)].name;
            all.push_back(self->rt_.spawn_pinned(
                ask(self, std::min(who, tenants->size() - 1), name, begin + due, due)));
        }
        for (auto& a : all) (void)co_await a.join();
    }

    static task<void> ask(generator* self, std::size_t who, std::string const* name,
                          time_point should_begin, clock::duration due) {
        int status = 0;
        auto call = co_await self->client_.connect(self->to_);
        if (call) {
            call->head().line("GET", "/");
            call->head().add("host", "u");
            call->head().add("x-tenant", *name);
            if (self->patience_ != clock::duration::max()) {
                call->head().add("x-timeout", static_cast<std::uint64_t>(self->patience_ / 1ms));
            }
            auto const sent = co_await call->finish();
            if (sent) {
                auto const head = co_await call->read_head();
                if (head) status = (*head)->status;
                for (bool more = head.has_value(); more;) {
                    auto const piece = co_await call->read();
                    more = piece && !piece->empty();
                }
            }
        }
        clock::duration const took = clock::now() - should_begin;
        outcome& o = *self->out_;
        if (status == 200) {
            o.times[who].record(took);
            ++o.served[who];
            if (took <= self->patience_) ++o.in_time;
            if (who < quiet_tenants) o.quiet.push_back({due, took});
        } else {
            o.refusals.record(took);
            ++o.refused[who];
        }
    }

    tcp::endpoint to_;
    runtime rt_{{.workers = 1}};
    http::client client_;
    std::unique_ptr<outcome> out_;
    clock::duration patience_ = clock::duration::max();
    std::function<double(double)> boost_;
};

// --- the scenarios -----------------------------------------------------------------------------

std::vector<tenant_load> quiet_and(double noisy_times) {
    std::vector<tenant_load> all;
    for (std::size_t i = 0; i < quiet_tenants; ++i) {
        all.push_back({quiet_rate, "quiet" + std::to_string(i)});
    }
    if (noisy_times > 0) all.push_back({quiet_rate * noisy_times, "noisy"});
    return all;
}

double resident_mb() {
    std::ifstream in{"/proc/self/statm"};
    long pages = 0;
    long resident = 0;
    in >> pages >> resident;
    return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

void report_quiet(char const* scenario, char const* side, outcome const& o, double seconds) {
    histogram quiet;
    std::uint64_t worst = 0;
    std::uint64_t refused = 0;
    std::uint64_t served = 0;
    for (std::size_t i = 0; i < o.times.size(); ++i) {
        served += o.served[i];
        if (i >= quiet_tenants) continue;
        quiet.merge(o.times[i]);
        worst = std::max(worst, o.times[i].quantile(0.99));
        refused += o.refused[i];
    }
    std::printf(
        "turns %s %s quiet_p50=%.1fms quiet_p99=%.1fms worst_tenant_p99=%.1fms "
        "refused_quiet=%llu served=%.0f/s refusal_p99=%.2fms rss=%.0fMB\n",
        scenario, side, ms(quiet.quantile(0.5)), ms(quiet.quantile(0.99)), ms(worst),
        static_cast<unsigned long long>(refused), static_cast<double>(served) / seconds,
        ms(o.refusals.empty() ? 0 : o.refusals.quantile(0.99)), resident_mb());
    std::fflush(stdout);
}

void overload(char const* side, tcp::endpoint at, double times, double seconds) {
    std::vector<tenant_load> all = quiet_and(1);
    for (tenant_load& t : all) t.rate = capacity * times / static_cast<double>(all.size());
    generator g{at};
    auto const o = g.run(all, seconds, 250ms);
    double const could = capacity * seconds;
    std::printf("turns over_%.0f %s goodput=%.1f%% refusal_p99=%.2fms\n", times, side,
                100 * static_cast<double>(o->in_time) / could,
                ms(o->refusals.empty() ? 0 : o->refusals.quantile(0.99)));
    std::fflush(stdout);
}

void spike(char const* side, tcp::endpoint at, double usual_p99_ms, double seconds) {
    generator g{at};
    auto const all = quiet_and(100);
    double const calm = 0.2 / 1.2;  // of that rate: within what can be done
    auto o = g.run(all, seconds, clock::duration::max(),
                   [calm](double t) { return t >= 0.5 && t < 1.0 ? 8.0 : calm; });
    clock::duration last = 1s;
    for (auto const& [due, took] : o->quiet) {
        if (due > 1s && ms(static_cast<std::uint64_t>(took.count())) > 2 * usual_p99_ms) {
            last = std::max(last, due);
        }
    }
    std::printf("turns spike %s settled_after=%.0fms\n", side,
                ms(static_cast<std::uint64_t>((last - clock::duration{1s}).count())));
    std::fflush(stdout);
}

void all_of(char const* side, tcp::endpoint at) {
    double const seconds = seconds_of_a_run();
    double usual = 0;
    {
        generator g{at};
        auto const o = g.run(quiet_and(0), seconds, clock::duration::max());
        histogram quiet;
        for (histogram const& h : o->times) quiet.merge(h);
        usual = ms(quiet.quantile(0.99));
        report_quiet("alone", side, *o, seconds);
    }
    for (double const times : {100.0, 1000.0}) {
        generator g{at};
        auto const o = g.run(quiet_and(times), seconds, clock::duration::max());
        report_quiet(times == 100 ? "hot_100" : "hot_1000", side, *o, seconds);
    }
    overload(side, at, 2, seconds);
    overload(side, at, 10, seconds);
    spike(side, at, usual, std::max(seconds, 2.0));
}

}  // namespace

int main() {
    // Open loop: a request that finds no connection free makes one.
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    upstream up;
    {
        gateway const with{up.address(), true};
        all_of("rondo", with.address());
    }
    {
        gateway const without{up.address(), false};
        all_of("fifo", without.address());
    }
    for (bool const nginx : {true, false}) {
        char const* const name = nginx ? "nginx" : "haproxy";
        std::uint16_t const port = free_port();
        auto const running = nginx ? start_nginx(port, up.address().port())
                                   : start_haproxy(port, up.address().port());
        if (running == nullptr || !listens(port)) {
            std::printf("turns - %s is not there\n", name);
            continue;
        }
        all_of(name, loopback(port));
    }
    return EXIT_SUCCESS;
}
