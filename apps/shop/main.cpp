// shop: an ice-cream shop of robots, as programs that talk over UDP. Flags and logs meet here.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "demo.hpp"
#include "finished_run.hpp"
#include "gateway.hpp"
#include "process.hpp"
#include "robot.hpp"
#include "screen.hpp"
#include "stock.hpp"

namespace {

using namespace rondo::shop;
using rondo::task;
using duration = rondo::clock::duration;
namespace cluster = rondo::cluster;

struct command_line {
    process_options process;
    std::string log_level = "info";
    std::string stock_file = "stock.toml";
    std::uint32_t number = 0;
    std::string ring;
    std::string screens;
    std::string orders;
    std::uint32_t robots = 0;
    duration scoop{};
    std::uint32_t gone_after_s = 10;
    times patience;
    cluster::election_options election;
    cluster::ring_options tokens;
    duration authorisation = gateway_options{}.authorisation;
};

int complain(std::string const& problem) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    return exit_bad_arguments;
}

std::shared_ptr<spdlog::logger> make_log(command_line const& c, std::string const& who) {
    auto log = spdlog::stderr_logger_mt(who);
    log->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %n %l %v");
    log->set_level(spdlog::level::from_str(c.log_level));
    log->flush_on(spdlog::level::info);
    return log;
}

task<int> gateway_role(place here, gateway_options chosen, onlooker shown) {
    chosen.shown = std::move(shown);
    co_await run_gateway(std::move(here), std::move(chosen));
    co_return EXIT_SUCCESS;
}

int run_the_gateway(command_line const& c) {
    gateway_options chosen;
    auto sold = load_stock(c.stock_file);
    if (!sold) {
        for (std::string const& problem : sold.error()) complain(problem);
        return exit_bad_arguments;
    }
    chosen.sold = *std::move(sold);
    chosen.authorisation = std::chrono::duration_cast<std::chrono::milliseconds>(c.authorisation);
    char const* const rejection = std::getenv("CARD_REJECTION_PROBABILITY");
    if (rejection != nullptr) {
        auto const p = parse_probability(rejection);
        if (!p) return complain("CARD_REJECTION_PROBABILITY: " + p.error());
        chosen.rejection = *p;
    }
    return run_as_process(c.process, gateway_id, make_log(c, "gateway"),
                          [&](place here, onlooker shown) {
                              return gateway_role(std::move(here), chosen, std::move(shown));
                          });
}

task<int> robot_role(place here, robot_options chosen, onlooker shown) {
    chosen.shown = std::move(shown);
    co_await run_robot(std::move(here), std::move(chosen));
    co_return EXIT_SUCCESS;
}

int run_the_robot(command_line const& c) {
    auto ring = parse_ring(c.ring, c.number);
    if (!ring) return complain(ring.error());
    robot_options chosen;
    chosen.number = c.number;
    chosen.ring = *std::move(ring);
    chosen.scoop = c.scoop;
    chosen.patience = c.patience;
    chosen.tokens = c.tokens;
    chosen.tokens.handshake = c.tokens.freeze * 2 / 5;
    auto const log = make_log(c, "robot " + std::to_string(c.number));
    return run_as_process(c.process, robot_id(c.number), log, [&](place here, onlooker shown) {
        return robot_role(std::move(here), chosen, std::move(shown));
    });
}

task<int> screen_role(place here, screen_options chosen, onlooker shown) {
    chosen.shown = std::move(shown);
    auto const log = here.log;
    screen_tally const t = co_await run_screen(std::move(here), std::move(chosen));
    log->info("{} delivered, {} aborted, {} refunded, {} lines skipped", t.delivered, t.aborted,
              t.refunded, t.skipped);
    co_return EXIT_SUCCESS;
}

// The same by whatever path, also through links: by another name its orders would be new ones, and
// each of them be charged again.
std::string name_of_file(std::string const& path) {
    std::error_code error;
    std::filesystem::path const known = std::filesystem::canonical(path, error);
    if (!error) return known.string();
    return std::filesystem::absolute(path, error).lexically_normal().string();  // a pipe, say
}

int run_the_screen(command_line const& c) {
    auto screens = parse_screens(c.screens, c.number);
    if (!screens) return complain(screens.error());
    auto orders = read_orders(c.orders);
    if (!orders) return complain(orders.error());
    screen_options chosen;
    chosen.number = c.number;
    chosen.screens = *std::move(screens);
    chosen.robots = c.robots;
    chosen.patience = c.patience;
    chosen.patience.screen_gone = std::chrono::seconds{c.gone_after_s};
    chosen.election = c.election;
    chosen.election.silence = c.patience.leader_silence;
    // Two signs of a leader in a row have to get lost before it is missed.
    chosen.election.beat = std::min(chosen.election.beat, c.patience.leader_silence / 3);
    chosen.file = name_of_file(c.orders);
    chosen.orders = *std::move(orders);
    auto const log = make_log(c, "screen " + std::to_string(c.number));
    return run_as_process(c.process, screen_id(c.number), log, [&](place here, onlooker shown) {
        return screen_role(std::move(here), chosen, std::move(shown));
    });
}

// Options of times in milliseconds, each with a variable of the environment: --freeze-ms is
// SHOP_FREEZE_MS.
struct waiting_time {
    char const* name;
    duration* value;
    char const* what;
    std::uint32_t least_ms = 1;
};
void add_times(CLI::App& command, std::initializer_list<waiting_time> all) {
    for (waiting_time const& t : all) {
        std::string variable = "SHOP_" + std::string{t.name} + "_MS";
        for (char& c : variable) {
            c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        }
        auto const set = [value = t.value](std::uint32_t ms) {
            *value = std::chrono::milliseconds{ms};
        };
        auto const ms = std::chrono::duration_cast<std::chrono::milliseconds>(*t.value).count();
        command.add_option_function<std::uint32_t>("--" + std::string{t.name} + "-ms", set, t.what)
            ->check(CLI::Range(t.least_ms, 3'600'000U))
            ->envname(variable)
            ->default_str(std::to_string(ms));
    }
}

void add_state(CLI::App& command, command_line& c) {
    command.add_option("--state", c.process.directory, "where the files of the shop are")
        ->envname("SHOP_STATE")
        ->capture_default_str();
}

void add_process_options(CLI::App& command, command_line& c) {
    add_state(command, c);
    command.add_option("--host", c.process.host, "the IPv4 address of all members")
        ->capture_default_str();
    command.add_option("--base-port", c.process.base_port, "the gateway's port; others follow")
        ->check(CLI::Range(std::uint16_t{1}, last_base_port))
        ->envname("SHOP_BASE_PORT")
        ->capture_default_str();
    add_times(command, {{"repeat", &c.process.datagrams.first_repeat,
                         "before a request is sent again; doubles each time"},
                        {"longest-repeat", &c.process.datagrams.longest_repeat,
                         "at most, between two sendings of a request"}});
    command
        .add_option("--peers-port", c.process.peers_port,
                    "reach the others from this base port on, through a proxy")
        ->check(CLI::Range(std::uint16_t{1}, last_base_port));
    command.add_option("--log", c.log_level, "trace, debug, info, warning, error or off")
        ->envname("RONDO_LOG")
        ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}))
        ->capture_default_str();
}

// Books that are not whole must not pass for whole ones.
int when_written(int status) {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    (void)complain("what was found cannot be written");
    return exit_unforeseen;
}

int print_ledger(command_line const& c, bool as_json) {
    auto const text = report(c.process.directory, as_json ? report_form::json : report_form::text);
    if (!text) return complain(text.error());
    std::fputs(text->c_str(), stdout);
    return when_written(EXIT_SUCCESS);
}

int check_run(command_line const& c) {
    auto const checks = verify(c.process.directory);
    if (!checks) return complain(checks.error());
    bool good = true;
    for (invariant_check const& one : *checks) {
        std::printf("%s  %s\n", one.violations.empty() ? "holds" : "FAILS", one.name.c_str());
        for (std::string const& v : one.violations) std::printf("       %s\n", v.c_str());
        good = good && one.violations.empty();
    }
    return when_written(good ? EXIT_SUCCESS : EXIT_FAILURE);
}

CLI::Range number_below(std::uint32_t most) { return {std::uint32_t{0}, most - 1}; }

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"shop: a robotised ice-cream shop that loses nothing"};
    app.require_subcommand(1);
    command_line c;

    CLI::App* const gateway = app.add_subcommand("gateway", "the payment gateway, with its ledger");
    gateway->add_option("--stock", c.stock_file, "what is sold")->capture_default_str();
    add_times(*gateway, {{"authorisation", &c.authorisation, "of a card, until it is charged"}});
    CLI::App* const robot = app.add_subcommand("robot", "a robot of the ring");
    robot->add_option("number", c.number)->required()->check(number_below(most_robots));
    robot->add_option("ring", c.ring, "as 1:2:0, beginning with itself")->required();
    add_times(
        *robot,
        {{"scoop", &c.scoop, "how long it takes to fill in a flavour", 0},
         {"keep-alive", &c.tokens.keep_alive, "between two signs of life; 3 missed are death"},
         {"freeze", &c.tokens.freeze, "of the ring, at most, while it is repaired"},
         {"stock-age", &c.patience.levels_age, "twice that long what a leader said is used"},
         {"cup-kept", &c.patience.cup_kept, "that nobody fetches; more than authorisations"}});
    CLI::App* const screen = app.add_subcommand("screen", "a screen, with the orders of a file");
    screen->add_option("number", c.number)->required()->check(number_below(most_screens));
    screen->add_option("screens", c.screens, "as 0:1:2")->required();
    screen->add_option("orders", c.orders, "a file with an order in JSON on each line")->required();
    screen->add_option("robots", c.robots, "how many there are")
        ->required()
        ->check(CLI::Range(std::uint32_t{1}, most_robots));
    screen
        ->add_option("--gone-after", c.gone_after_s,
                     "seconds of silence after which the orders of another screen are taken over")
        ->check(CLI::Range(1U, 3600U))
        ->envname("SHOP_GONE_AFTER")
        ->capture_default_str();
    add_times(*screen,
              {{"leader-silence", &c.patience.leader_silence, "of a leader, then there is another"},
               {"election-answer", &c.election.answer_time, "for an answer to ELECTION"},
               {"order-silence", &c.patience.order_silence, "of an order, before KEEPALIVE"},
               {"robot-silence", &c.patience.robot_silence, "of a robot, then it is given up"},
               {"stock-age", &c.patience.levels_age, "of what is told to robots"},
               {"cup-wait", &c.patience.cup_wait, "for a cup that was paid for; then refunded"},
               {"farewell", &c.patience.farewell, "that it stays when all screens are done"}});
    for (CLI::App* const command : {gateway, robot, screen}) add_process_options(*command, c);
    CLI::App* const ledger =
        app.add_subcommand("ledger", "print everything that was charged or not");
    bool as_json = false;
    ledger->add_flag("--json", as_json, "as JSON");
    CLI::App* const verify_run = app.add_subcommand("verify", "check the files of a finished run");
    for (CLI::App* const command : {ledger, verify_run}) add_state(*command, c);
    CLI::App* const demo = app.add_subcommand("demo", "a whole shop on this machine");
    demo_options shown;
    demo->add_flag("--chaos", shown.chaos, "kill processes at random while it runs");
    demo->add_option("--state", shown.directory, "keep its files here, in a new directory");
    demo->add_option("--seed", shown.seed, "of orders and of who is killed");
    demo->add_option("--orders", shown.orders, "of each screen")->capture_default_str();
    try {
        app.parse(argc, argv);
    } catch (CLI::ParseError const& e) {  // help that was asked for is one too
        return app.exit(e) == EXIT_SUCCESS ? EXIT_SUCCESS : exit_bad_arguments;
    }

    if (gateway->parsed()) return run_the_gateway(c);
    if (robot->parsed()) return run_the_robot(c);
    if (ledger->parsed()) return print_ledger(c, as_json);
    if (verify_run->parsed()) return check_run(c);
    if (demo->parsed()) {
        auto const good = run_demo(shown);
        if (!good) return complain(good.error());
        return *good ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    return run_the_screen(c);
}
