#include "process.hpp"

#include <sys/stat.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <random>
#include <utility>

#include "arguments.hpp"
#include "rondo/asio/asio_executor.hpp"
#include "rondo/asio/udp.hpp"
#include "rondo/core/spawn.hpp"

namespace rondo::shop {

namespace {

[[noreturn]] void end_process(spdlog::logger& log, int status) {
    log.flush();
    std::_Exit(status);
}

std::string text_of(std::exception_ptr const& exception) {
    try {
        std::rethrow_exception(exception);
    } catch (std::exception const& e) {
        return e.what();
    } catch (...) {
        return "an unknown exception";
    }
}

task<void> to_its_end(std::function<task<int>(place, onlooker)> role, place here, onlooker shown) {
    auto const log = here.log;
    task<int> running = role(std::move(here), std::move(shown));
    int const status = co_await std::move(running);
    end_process(*log, status);
}

}  // namespace

int run_as_process(process_options const& chosen, member_id self,
                   std::shared_ptr<spdlog::logger> const& log,
                   std::function<task<int>(place, onlooker)> const& role) {
    ::umask(S_IRWXG | S_IRWXO);  // ledger and journals have the numbers of cards
    boost::system::error_code wrong;
    auto const host = boost::asio::ip::make_address_v4(chosen.host, wrong);
    if (wrong) {
        log->critical("'{}' is not an IPv4 address", chosen.host);
        return exit_bad_arguments;
    }
    std::expected<cluster::secret, std::string> const shared = load_secret(chosen.directory);
    std::error_code error;
    std::filesystem::create_directories(chosen.directory, error);
    std::string problem;
    if (!shared) problem = shared.error();
    if (error) problem = chosen.directory + ": " + error.message();
    if (!problem.empty()) {
        log->critical("{}", problem);
        return exit_cannot_start;
    }

    boost::asio::io_context io{1};
    auto const work = boost::asio::make_work_guard(io);
    asio::asio_executor<> where{io.get_executor(), [log](std::exception_ptr const& exception) {
                                    log->critical("cannot go on: {}", text_of(exception));
                                    end_process(*log, exit_unforeseen);
                                }};
    asio::udp_network network{io.get_executor()};
    std::random_device seed;
    std::mt19937_64 random{(std::uint64_t{seed()} << 32U) | seed()};
    boost::asio::signal_set stops{io, SIGTERM, SIGINT};
    view seen;
    stops.async_wait([log, &seen](boost::system::error_code const& e, int) {
        if (e) return;
        if (seen.traffic != nullptr) log->info("{}", to_text(*seen.traffic));
        log->info("stopped");
        end_process(*log, EXIT_SUCCESS);
    });

    place here;
    here.where = &where;
    here.network = &network;
    std::uint16_t const others = chosen.peers_port != 0 ? chosen.peers_port : chosen.base_port;
    std::uint32_t const at = host.to_uint();
    here.endpoint_of = [at, others, own = chosen.base_port, self](member_id id) {
        return endpoint{at, static_cast<std::uint16_t>((id == self ? own : others) + id)};
    };
    here.shared = *shared;
    here.wall_clock = [] {
        return std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::system_clock::now().time_since_epoch());
    };
    here.incarnation =
        static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    here.random = [&random] { return random(); };
    here.directory = chosen.directory;
    here.log = log;
    here.fail = [log](std::string const& reason) {
        log->critical("{}", reason);
        end_process(*log, exit_storage_failed);
    };
    here.cannot_start = [log](std::string const& reason) {
        log->critical("{}", reason);
        end_process(*log, exit_cannot_start);
    };
    here.datagrams = chosen.datagrams;
    onlooker shown = [&seen](view v) { seen = std::move(v); };
    spawn(where, to_its_end(role, std::move(here), std::move(shown))).detach();
    io.run();
    return EXIT_SUCCESS;
}

}  // namespace rondo::shop
