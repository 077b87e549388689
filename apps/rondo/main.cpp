// rondo: the gateway as a program. Flags, signals and logs meet here and nowhere else.
#include <fcntl.h>
#include <langinfo.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <expected>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "admin_client.hpp"
#include "config.hpp"
#include "demo.hpp"
#include "gateway.hpp"
#include "monitor.hpp"
#include "route_table.hpp"
#include "sheet.hpp"
#include "status.hpp"
#include "top.hpp"

namespace {

using namespace rondo::gateway;

constexpr int exit_bad_config = 2;  // or wrong arguments
constexpr int exit_cannot_start = 1;

void print(std::vector<diagnostic> const& found, std::string const& file) {
    for (diagnostic const& d : found) std::fprintf(stderr, "%s\n", to_string(d, file).c_str());
}

std::string lines(std::vector<diagnostic> const& found, std::string const& file) {
    std::string all;
    for (diagnostic const& d : found) all += (all.empty() ? "" : "\n") + to_string(d, file);
    return all;
}

std::shared_ptr<spdlog::logger> make_log(log_level least) {
    auto log = spdlog::stderr_logger_mt("rondo");
    log->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    constexpr spdlog::level::level_enum levels[] = {spdlog::level::trace, spdlog::level::debug,
                                                    spdlog::level::info,  spdlog::level::warn,
                                                    spdlog::level::err,   spdlog::level::off};
    log->set_level(levels[static_cast<std::size_t>(least)]);
    return log;
}

// A standard stream that is not open would be the next file or socket, and what is written there
// come to a client.
void open_standard_streams() {
    int fd = ::open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO) fd = ::open("/dev/null", O_RDWR);
    if (fd >= 0) ::close(fd);
}

// As many as we may: a shell gives few, and idle clients would take them from backends and
// operators.
void allow_many_files() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
}

// Blocked in every thread from now on: signals are waited for, not handled.
sigset_t block_signals(std::initializer_list<int> which) {
    sigset_t all;
    sigemptyset(&all);
    for (int const s : which) sigaddset(&all, s);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    return all;
}

// For nothing; but the next one ends the process.
extern "C" void take_first_signal(int /*number*/) {
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
}

// The number of the new configuration, or all that is wrong with it.
std::expected<std::uint64_t, std::string> reload(gateway& running, std::string const& file,
                                                 spdlog::logger& log) {
    std::vector<diagnostic> wrong;
    try {
        config_result loaded = load(file);
        if (loaded) {
            auto const changed = running.reload(*std::move(loaded));
            if (changed) {
                log.info("configuration {} is loaded", *changed);
                return *changed;
            }
            wrong = changed.error();
        } else {
            running.refused();
            wrong = std::move(loaded.error());
        }
    } catch (std::exception const& e) {  // no memory, which there may be next time
        running.refused();
        wrong = {{{}, std::string{"cannot load it: "} + e.what(), ""}};
    }
    for (diagnostic const& d : wrong) log.error("{}", to_string(d, file));
    log.error("the configuration stays as it was");
    return std::unexpected{lines(wrong, file)};
}

// Does what it is told to in a thread of its own, so that who hears the signals hears the next one
// meanwhile. Told again before it has ended, it does it once more.
class on_demand {
  public:
    explicit on_demand(std::function<void()> what) : what_(std::move(what)) {}
    on_demand(on_demand const&) = delete;
    on_demand& operator=(on_demand const&) = delete;
    ~on_demand() {
        over_ = true;
        asked_.release();
        thread_.join();
    }
    void ask() { asked_.release(); }

  private:
    void run() {
        for (;;) {
            asked_.acquire();
            while (asked_.try_acquire()) {  // all that came by now are one
            }
            if (over_) return;
            what_();
        }
    }

    std::function<void()> what_;
    std::counting_semaphore<> asked_{0};
    std::atomic<bool> over_{false};
    std::thread thread_{[this] { run(); }};
};

// --- commands to a gateway that runs -----------------------------------------------------------

struct whom {
    std::string file;
    std::string address;  // empty: as the file says
};

constexpr char const* other_version = "the answer is not that of a gateway of this version";

int complain(std::string const& what) {
    std::fprintf(stderr, "rondo: %s\n", what.c_str());
    return exit_cannot_start;
}

std::expected<admin_target, std::string> find(whom const& w) {
    auto const said = admin_of(w.file);
    auto const admin = said.value_or(std::nullopt);
    char const* const token = std::getenv("RONDO_ADMIN_TOKEN");
    address where;
    if (!w.address.empty()) {
        auto const parsed = parse_address(w.address);
        if (!parsed) return std::unexpected{parsed.error().problem};
        where = *parsed;
    } else if (admin && !admin->listen.empty()) {
        where = admin->listen.front();
    } else if (!said) {
        return std::unexpected{lines(said.error(), w.file)};
    } else {
        return std::unexpected{"'" + w.file + "' does not say where to ask (section [admin]); " +
                               "-c names another file, --admin an address"};
    }
    auto at = look_up(where);
    if (!at) return std::unexpected{at.error().problem};
    if (at->port() == 0) return std::unexpected{std::string{"port 0 is any; --admin says which"}};
    if (at->address().is_unspecified()) {
        namespace ip = boost::asio::ip;
        at->address(at->address().is_v4() ? ip::address{ip::address_v4::loopback()}
                                          : ip::address{ip::address_v6::loopback()});
    }
    return admin_target{*at, token != nullptr ? token : admin ? admin->token : ""};
}

// What the gateway says; whoever is there need not be one.
int print_reply(admin_target const& by, std::expected<admin_reply, no_answer> const& r) {
    if (!r) return complain(r.error().why);
    bool const wrong_config = r->status == 422;
    if (r->status < 300 || wrong_config) {
        std::fputs(without_commands(r->body).c_str(), wrong_config ? stderr : stdout);
        return wrong_config ? exit_bad_config : EXIT_SUCCESS;
    }
    std::string const line = without_commands(r->body.substr(0, r->body.find('\n')));
    return complain(to_string(by.at) + " answers " + std::to_string(r->status) +
                    (line.empty() ? "" : ": " + line));
}

int ask_to_reload(whom const& w) {
    auto const target = find(w);
    return target ? print_reply(*target, ask(*target, "POST", "/reload"))
                  : complain(target.error());
}

// Returns when the gateway has gone, or does not say how it is.
int ask_to_drain(whom const& w) {
    auto const target = find(w);
    if (!target) return complain(target.error());
    // Its successor, if a supervisor starts one at once, has not run for as long.
    auto const before = ask(*target, "GET", "/status");
    auto const running = before ? from_json(before->body) : std::nullopt;
    double up = running ? running->uptime_s : 0;
    auto const begun = ask(*target, "POST", "/drain");
    if (!begun || begun->status >= 300) return print_reply(*target, begun);
    std::size_t last = 0;
    std::printf("draining\n");
    std::fflush(stdout);
    for (;;) {
        auto const said = ask(*target, "GET", "/status");
        if (!said && said.error().gone) break;
        if (!said || said->status >= 300) return print_reply(*target, said);
        auto const now = from_json(said->body);
        if (!now) return complain(other_version);
        if (now->uptime_s < up) {
            std::printf("stopped; another one runs there\n");
            return EXIT_SUCCESS;
        }
        up = now->uptime_s;
        if (now->connections != last) std::printf("%zu connections left\n", now->connections);
        std::fflush(stdout);
        last = now->connections;
        std::this_thread::sleep_for(std::chrono::milliseconds{500});
    }
    std::printf("stopped\n");
    return EXIT_SUCCESS;
}

terminal terminal_at(int fd) {
    terminal t;
    t.unicode = std::string_view{::nl_langinfo(CODESET)} == "UTF-8";
    char const* const what = std::getenv("TERM");
    if (::isatty(fd) == 0 || (what != nullptr && std::string_view{what} == "dumb")) return t;
    char const* const plain = std::getenv("NO_COLOR");
    t.colours = plain == nullptr || *plain == '\0';
    winsize size{};
    bool const known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 1;
    t.columns = known ? size.ws_col : 80;
    t.rows = known ? size.ws_row - 1U : 23;  // the cursor stands in the last one
    return t;
}

// False: nobody can read it.
bool write_page(past const& p, bool once, bool first) {
    terminal on = terminal_at(STDOUT_FILENO);
    bool const stays = once || on.rows == 0;
    if (once) on.rows = 0;
    auto const page = page_of(p, on);
    std::string text;
    if (stays) {
        if (!first) text += '\n';
        for (std::string const& line : page) text += line + '\n';
    } else {
        text = redrawn(page, first);
    }
    return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
}

// Each second, until the gateway is gone or somebody interrupts. It is the stream of the dashboard,
// and begins with what was before; who asks once a second for what is now is told some of it twice
// and some never.
int show_top(whom const& w, bool once) {
    auto const target = find(w);
    if (!target) return complain(target.error());
    std::setlocale(LC_CTYPE, "");
    past seen;
    bool written = false;
    bool renewed = false;  // by the stream of now
    std::string wrong;
    auto const take = [&](std::string_view name, std::string_view data) {
        std::optional<std::vector<status>> fresh;
        if (name == "history") {
            fresh = all_from_json(data);
            seen = {};
        } else if (auto one = from_json(data)) {
            fresh.emplace().push_back(*std::move(one));
        }
        if (!fresh) {
            wrong = other_version;
            return false;
        }
        for (status& s : *fresh) seen.add(std::move(s));
        if (seen.empty()) return true;  // it has only just begun
        if (!write_page(seen, once, !written)) wrong = "cannot write it";
        written = renewed = true;
        return wrong.empty() && !once;
    };
    for (;;) {
        renewed = false;
        auto const said = watch(*target, "/events", take);
        if (!wrong.empty()) return complain(wrong);
        if (once && written) return EXIT_SUCCESS;
        if (!said && said.error().gone && written) return EXIT_SUCCESS;
        // As when we were stopped for a while, by Ctrl-Z. If nobody answers, the next renews
        // nothing.
        if (!said && said.error().late && renewed) continue;
        if (!said || said->status >= 300) return print_reply(*target, said);
        if (!written) return complain(other_version);
        // It was ended for those who may not look any more: who asks again is told so.
        std::this_thread::sleep_for(monitor::interval);
    }
}

// --- the gateway -------------------------------------------------------------------------------

int check(std::string const& file) {
    config_result loaded = load(file);
    if (!loaded) {
        print(loaded.error(), file);
        return exit_bad_config;
    }
    auto const made = gateway::prepare(*std::move(loaded), make_log(log_level::off));
    if (!made) {
        print(made.error(), file);
        return exit_bad_config;
    }
    std::printf("%s is fine\n", file.c_str());
    return EXIT_SUCCESS;
}

// An operator who asks to drain is not a second signal: that would end the process at once. Only
// this process means that by it: from others it is to have logs reopened.
constexpr int drain_asked = SIGUSR1;

// The signal that ends the gateway.
int await_end(sigset_t const& signals, std::function<void()> const& load_again) {
    for (;;) {
        siginfo_t got{};
        int const signal = ::sigwaitinfo(&signals, &got);
        if (signal == SIGHUP) {
            load_again();
        } else if (signal > 0 && (signal != drain_asked || got.si_pid == ::getpid())) {
            return signal;
        }
    }
}

int run(std::string const& file) {
    config_result loaded = load(file);
    if (!loaded) {
        print(loaded.error(), file);
        return exit_bad_config;
    }
    sigset_t const signals = block_signals({SIGTERM, SIGINT, SIGHUP, drain_asked});
    auto const log = make_log(loaded->log);
    std::mutex loading;  // outlives the gateway, whose threads use it
    auto const made = gateway::prepare(*std::move(loaded), log);
    if (!made) {
        print(made.error(), file);
        return exit_bad_config;
    }
    gateway& running = **made;
    // One at a time from the file on: what was read first must not be applied last.
    auto const load_again = [&] {
        std::lock_guard const guard{loading};
        return reload(running, file, *log);
    };
    running.obey({.reload = load_again, .drain = [] { ::kill(::getpid(), drain_asked); }});
    auto const started = running.start();
    if (!started) return complain(started.error());  // also if nothing is logged

    on_demand loader{[&] { (void)load_again(); }};
    int const signal = await_end(signals, [&] {
        log->info("{}: loading {}", strsignal(SIGHUP), file);
        loader.ask();
    });
    log->info("{}: stopping; a second signal exits at once",
              signal == drain_asked ? "asked to drain" : strsignal(signal));
    // From here on a signal does what it does by default: it ends the process. A drain was no
    // signal: after it the first one is for nothing, as when systemd stops what an operator drains.
    std::signal(SIGHUP, SIG_IGN);
    std::signal(drain_asked, SIG_IGN);
    if (signal == drain_asked) {
        std::signal(SIGTERM, take_first_signal);
        std::signal(SIGINT, take_first_signal);
    }
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    std::size_t const cut = running.stop();
    if (cut != 0) log->warn("the grace is over: {} requests were cut off", cut);
    log->info("stopped");
    return EXIT_SUCCESS;
}

// What cannot be had here, such as a thread or a descriptor for it, is thrown.
int or_say_why_not(std::function<int()> const& command) {
    try {
        return command();
    } catch (std::exception const& e) {
        return complain(e.what());
    }
}

}  // namespace

int main(int argc, char** argv) {
    open_standard_streams();
    allow_many_files();
    CLI::App app{"rondo: a gateway that takes turns"};
    app.require_subcommand(1);
    app.set_version_flag("--version", "rondo " RONDO_VERSION, "print the version");
    std::string file = "rondo.toml";
    CLI::App* const run_command = app.add_subcommand("run", "run the gateway");
    CLI::App* const check_command =
        app.add_subcommand("check", "say what is wrong with a configuration");
    CLI::App* const version_command = app.add_subcommand("version", "print the version");
    CLI::App* const reload_command =
        app.add_subcommand("reload", "have a gateway load its configuration again");
    CLI::App* const drain_command =
        app.add_subcommand("drain", "have a gateway end, and wait until it has");
    CLI::App* const top_command = app.add_subcommand("top", "watch a gateway, in a terminal");
    bool once = false;
    top_command->add_flag("--once", once, "print it once and end");
    CLI::App* const demo_command = app.add_subcommand(
        "demo", "run a gateway with a backend and tenants of its own, to look at");
    std::string turns = "on";
    demo_command->add_option("--turns", turns, "whether tenants take turns")
        ->check(CLI::IsMember({"on", "off"}))
        ->capture_default_str();
    whom operated;
    for (CLI::App* const command :
         {run_command, check_command, reload_command, drain_command, top_command}) {
        command->add_option("-c,--config", file, "the configuration")->capture_default_str();
    }
    for (CLI::App* const command : {reload_command, drain_command, top_command}) {
        command->add_option("--admin", operated.address,
                            "where to ask, if not as the configuration says");
        command->footer("A token is taken from RONDO_ADMIN_TOKEN, or from the configuration.");
    }
    constexpr auto names = std::to_array<std::string_view>(
        {"run", "check", "reload", "drain", "top", "demo", "version"});
    std::string_view const command = argc > 1 ? argv[1] : "-";
    if (!command.starts_with('-') && std::ranges::find(names, command) == names.end()) {
        (void)complain("no command '" + std::string{command} + "'; " + suggest(command, names));
        return exit_bad_config;
    }
    try {
        app.parse(argc, argv);
    } catch (CLI::ParseError const& e) {  // help that was asked for is one too
        return app.exit(e) == EXIT_SUCCESS ? EXIT_SUCCESS : exit_bad_config;
    }

    if (version_command->parsed()) {
        std::printf("rondo %s\n", RONDO_VERSION);
        return EXIT_SUCCESS;
    }
    auto const address = parse_address(operated.address);
    if (!operated.address.empty() && !address) {
        (void)complain(address.error().problem);
        return exit_bad_config;
    }
    operated.file = file;
    return or_say_why_not([&] {
        if (demo_command->parsed()) {
            (void)block_signals({SIGTERM, SIGINT, SIGHUP});
            return run_demo(turns == "on", argv[0], make_log(log_level::warn));
        }
        if (reload_command->parsed()) return ask_to_reload(operated);
        if (top_command->parsed()) return show_top(operated, once);
        if (drain_command->parsed()) return ask_to_drain(operated);
        return check_command->parsed() ? check(file) : run(file);
    });
}
