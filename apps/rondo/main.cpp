// rondo: the gateway as a program. Flags, signals and logs meet here and nowhere else.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "config.hpp"
#include "gateway.hpp"

namespace {

using namespace rondo::gateway;

constexpr int exit_bad_config = 2;
constexpr int exit_cannot_start = 1;

void print(std::vector<diagnostic> const& found, std::string const& file) {
    for (diagnostic const& d : found) std::fprintf(stderr, "%s\n", to_string(d, file).c_str());
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

// Blocked in every thread from now on: signals are waited for, not handled.
sigset_t block_stop_signals() {
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stops, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    return stops;
}

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

int run(std::string const& file) {
    config_result loaded = load(file);
    if (!loaded) {
        print(loaded.error(), file);
        return exit_bad_config;
    }
    sigset_t const stops = block_stop_signals();
    auto const log = make_log(loaded->log);
    auto const made = gateway::prepare(*std::move(loaded), log);
    if (!made) {
        print(made.error(), file);
        return exit_bad_config;
    }
    gateway& running = **made;
    auto const started = running.start();
    if (!started) {
        log->error("{}", started.error());
        return exit_cannot_start;
    }

    int signal = 0;
    sigwait(&stops, &signal);
    log->info("{}: stopping; a second signal exits at once", strsignal(signal));
    // From here on a signal does what it does by default: it ends the process.
    pthread_sigmask(SIG_UNBLOCK, &stops, nullptr);
    std::size_t const cut = running.stop();
    if (cut != 0) log->warn("the grace is over: {} connections were cut off", cut);
    log->info("stopped");
    return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"rondo: a gateway that takes turns"};
    app.require_subcommand(1);
    std::string file = "rondo.toml";
    CLI::App* const run_command = app.add_subcommand("run", "run the gateway");
    CLI::App* const check_command =
        app.add_subcommand("check", "say what is wrong with a configuration");
    CLI::App* const version_command = app.add_subcommand("version", "print the version");
    for (CLI::App* const command : {run_command, check_command}) {
        command->add_option("-c,--config", file, "the configuration")->capture_default_str();
    }
    CLI11_PARSE(app, argc, argv);

    if (version_command->parsed()) {
        std::printf("rondo %s\n", RONDO_VERSION);
        return EXIT_SUCCESS;
    }
    return check_command->parsed() ? check(file) : run(file);
}
