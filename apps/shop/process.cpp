#include "process.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <random>
#include <system_error>
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

// Two processes that are the same member with the same files would each hand over what is in the
// journal once. That both cannot have its port is not enough: there may be a shop at other ports.
// The lock is the process's own, and goes with it however that ends; so nobody closes it. (Not on a
// database itself: to close that file here would end the locks that SQLite has on it.)
std::optional<std::string> lock_out_others(std::string const& directory, member_id self) {
    std::string who = "gateway";
    if (self != gateway_id) {
        who = (is_robot(self) ? "robot-" : "screen-") + std::to_string(number_of(self));
    }
    std::string const file = directory + "/" + who + ".lock";
    int const lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock >= 0 && ::flock(lock, LOCK_EX | LOCK_NB) == 0) return std::nullopt;
    int const why = errno;
    if (lock >= 0) ::close(lock);
    if (why == EWOULDBLOCK) return file + ": another process is " + who + " already";
    return file + ": " + std::error_code{why, std::generic_category()}.message();
}

// What a member needs of its directory; else why it cannot have it.
std::expected<cluster::secret, std::string> move_in(std::string const& directory, member_id self) {
    ::umask(S_IRWXG | S_IRWXO);  // ledger and journals have the numbers of cards
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) return std::unexpected{directory + ": " + error.message()};
    std::expected<cluster::secret, std::string> shared = load_secret(directory);
    if (!shared) return shared;
    if (auto taken = lock_out_others(directory, self)) return std::unexpected{*std::move(taken)};
    return shared;
}

}  // namespace

int run_as_process(process_options const& chosen, member_id self,
                   std::shared_ptr<spdlog::logger> const& log,
                   std::function<task<int>(place, onlooker)> const& role) {
    boost::system::error_code wrong;
    auto const host = boost::asio::ip::make_address_v4(chosen.host, wrong);
    if (wrong) {
        log->critical("'{}' is not an IPv4 address", chosen.host);
        return exit_bad_arguments;
    }
    std::expected<cluster::secret, std::string> const shared = move_in(chosen.directory, self);
    if (!shared) {
        log->critical("{}", shared.error());
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
