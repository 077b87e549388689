#include "demo.hpp"

#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <expected>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "config.hpp"
#include "gateway.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/http/client.hpp"
#include "rondo/http/server.hpp"
#include "rondo/sync/semaphore.hpp"
#include "route_table.hpp"

namespace rondo::gateway {

namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;

constexpr std::size_t slots = 16;                        // of the backend
constexpr auto service = std::chrono::milliseconds{20};  // 800 a second, then
constexpr std::size_t noisy_connections = 300;
constexpr std::array quiet{"amber", "birch", "cedar", "delta", "ember", "fjord"};
constexpr std::size_t quiet_connections = 4;
constexpr auto quiet_pause = std::chrono::milliseconds{15};

constexpr std::string_view site =
    "<!doctype html><html lang=en><meta charset=utf-8><title>rondo demo</title>"
    "<body style='font:16px/1.5 system-ui;max-width:40em;margin:3em auto;padding:0 1em'>"
    "<h1>It works</h1><p>This page is a file that the gateway serves. "
    "<a href=/api>/api</a> is forwarded to a backend that answers 800 requests a second at most; "
    "a noisy tenant and some quiet ones ask for more than that.</p>";

// A directory that goes with the demo.
class folder {
  public:
    folder() {
        std::error_code error;
        auto const where = std::filesystem::temp_directory_path(error);
        std::string name = (where / "rondo-demo-XXXXXX").string();
        if (!error && ::mkdtemp(name.data()) == nullptr) error = {errno, std::generic_category()};
        if (!error) path_ = name;
        if (!error) std::filesystem::create_directories(path_ / "site", error);
        if (!error) std::ofstream{path_ / "site/index.html"} << site;
        if (error) problem_ = "no files can be made in a temporary directory: " + error.message();
    }
    folder(folder const&) = delete;
    folder& operator=(folder const&) = delete;
    ~folder() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    std::filesystem::path const& path() const noexcept { return path_; }
    // Why there is none; empty if there is.
    std::string const& problem() const noexcept { return problem_; }

  private:
    std::filesystem::path path_;
    std::string problem_;
};

// --- behind the gateway ------------------------------------------------------------------------

task<void> work(semaphore* places, http::exchange* x) {
    auto const place = co_await places->acquire();
    co_await sleep_for(service);
    x->answer().add("content-type", "text/plain");
    (void)co_await x->send("served\n");
}

// --- in front of it ----------------------------------------------------------------------------

task<bool> ask_once(http::client* by, tcp::endpoint at, std::string_view tenant) {
    auto connected = co_await by->connect(at);
    if (!connected) co_return false;
    http::call over{std::move(*connected)};
    over.head().line("GET", "/api");
    over.head().add("host", "demo");
    over.head().add("x-tenant", tenant);
    auto const sent = co_await over.finish();
    if (!sent) co_return false;
    auto const head = co_await over.read_head();
    if (!head) co_return false;
    bool const served = (*head)->status == 200;
    for (;;) {
        auto const piece = co_await over.read();
        if (!piece) co_return false;
        if (piece->empty()) co_return served;
    }
}

// One request after the other, for ever.
task<void> keep_asking(http::client* by, tcp::endpoint at, std::string tenant,
                       clock::duration pause) {
    for (;;) {
        bool const served = co_await ask_once(by, at, tenant);
        if (!served) co_await sleep_for(200ms);
        if (pause > clock::duration::zero()) co_await sleep_for(pause);
    }
}

class crowd {
  public:
    explicit crowd(tcp::endpoint const& at)
        : rt_(one_worker()), client_(rt_, {.idle_per_address = 2 * noisy_connections}) {
        for (std::size_t i = 0; i < noisy_connections; ++i) add(at, "noisy", 0ms);
        for (char const* const name : quiet) {
            for (std::size_t i = 0; i < quiet_connections; ++i) add(at, name, quiet_pause);
        }
    }
    ~crowd() { (void)rt_.shutdown(2s); }
    crowd(crowd const&) = delete;
    crowd& operator=(crowd const&) = delete;

  private:
    static runtime::options one_worker() {
        runtime::options o;
        o.workers = 1;
        o.name = "demo";
        return o;
    }
    void add(tcp::endpoint const& at, std::string tenant, clock::duration pause) {
        rt_.spawn_pinned(keep_asking(&client_, at, std::move(tenant), pause)).detach();
    }

    runtime rt_;
    http::client client_;
};

// --- the gateway -------------------------------------------------------------------------------

std::string config_text(tcp::endpoint const& backend, tcp::endpoint const& front,
                        tcp::endpoint const& admin, bool turns) {
    return "[gateway]\nlog = 'warn'\nshutdown_grace = '1s'\n[admin]\nlisten = '" +
           to_string(admin) + "'\n[admission]\nmax_in_flight = " + std::to_string(slots) +
           "\nturns = " + (turns ? "true" : "false") +
           "\n[tenants]\nkey = ['header:x-tenant', 'address']\ntrusted = ['127.0.0.0/8']\n"
           "[[tenant]]\nname = 'cedar'\nweight = 2\n"
           "[[server]]\nname = 'demo'\nlisten = '" +
           to_string(front) + "'\nmatch = [\n  { uri = '/api', forward = '" + to_string(backend) +
           "' },\n  { uri = '/', serve = 'site', admission = false },\n]\n";
}

using started = std::expected<std::unique_ptr<gateway>, std::string>;

started start(std::string const& text, std::filesystem::path const& in,
              std::shared_ptr<spdlog::logger> const& log) {
    config_result loaded = parse(text, in);
    if (!loaded) return std::unexpected{to_string(loaded.error().front(), "demo")};
    auto made = gateway::prepare(*std::move(loaded), log);
    if (!made) return std::unexpected{to_string(made.error().front(), "demo")};
    auto const begun = (*made)->start();
    if (!begun) return std::unexpected{begun.error()};
    return *std::move(made);
}

int complain(std::string_view why) {
    std::fprintf(stderr, "rondo: the demo cannot start: %s\n", std::string{why}.c_str());
    return EXIT_FAILURE;
}

void say_how_it_is(bool turns) {
    std::printf("turns are %s: %s\n", turns ? "on" : "off",
                turns ? "each tenant has its share, and the quiet ones hardly wait"
                      : "first in, first out, and everybody waits behind the noisy one");
    std::fflush(stdout);
}

// False: stdin has ended.
bool read_line() {
    std::array<char, 256> ignored{};
    return ::read(STDIN_FILENO, ignored.data(), ignored.size()) > 0;
}

}  // namespace

int run_demo(bool turns, std::string_view program, std::shared_ptr<spdlog::logger> const& log) {
    folder const in;
    if (!in.problem().empty()) return complain(in.problem());
    runtime::options one;
    one.workers = 1;
    one.name = "backend";
    runtime rt{one};
    semaphore places{slots};
    auto const here = boost::asio::ip::address_v4::loopback();
    http::server_options o;
    o.listen = {{.address = {here, 0}}};
    http::server backend{rt, o, [&places](http::exchange* x) { return work(&places, x); }};
    if (auto const listens = backend.start(); !listens) return complain(listens.error().reason);

    tcp::endpoint const behind = backend.addresses().front();
    tcp::endpoint front{here, 8080};
    tcp::endpoint admin{here, 9180};
    auto made = start(config_text(behind, front, admin, turns), in.path(), log);
    if (!made) {  // the usual ports may be taken
        front.port(0);
        admin.port(0);
        made = start(config_text(behind, front, admin, turns), in.path(), log);
    }
    if (!made) return complain(made.error());
    auto const running = *std::move(made);
    tcp::endpoint const at = running->addresses().front();
    std::printf("dashboard  http://%s/\ngateway    http://%s/   a page; /api goes to a backend\n",
                to_string(running->admin_addresses().front()).c_str(), to_string(at).c_str());
    std::printf("           try: %.*s top --admin %s\n", static_cast<int>(program.size()),
                program.data(), to_string(running->admin_addresses().front()).c_str());
    std::printf("Enter switches turns off and on (or begin with --turns off); Ctrl-C ends it.\n");
    say_how_it_is(turns);

    auto customers = std::make_unique<crowd>(at);
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    std::array<pollfd, 2> wait{pollfd{::signalfd(-1, &ends, SFD_CLOEXEC), POLLIN, 0},
                               pollfd{STDIN_FILENO, POLLIN, 0}};
    while (::poll(wait.data(), wait.size(), -1) >= 0 && wait[0].revents == 0) {
        if (!read_line()) {
            wait[1].fd = -1;
            continue;
        }
        turns = !turns;
        auto changed = parse(config_text(behind, front, admin, turns), in.path());
        if (changed && running->reload(*std::move(changed))) say_how_it_is(turns);
    }
    ::close(wait[0].fd);
    customers.reset();
    (void)running->stop();
    return EXIT_SUCCESS;
}

}  // namespace rondo::gateway
