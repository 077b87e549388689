// peer.hpp: requests and answers between the members of a cluster, over datagrams that get lost.
//
//   cluster::peer me{network.bind(here).value(), shared, {.id = 1, .incarnation = 7}, serve};
//   auto running = spawn(where, me.run());
//   auto answer = co_await me.ask({peer_address, 2}, type, body, 5s);
//
// Guarantee      ask() sends the same request again and again, after 50 ms, 100 ms, ... at most
//                2 s, each with jitter, until it is answered or its time is up. A request is served
//                once in each run of the member that it reaches: while it is being served,
//                repetitions are ignored, and afterwards they get the answer that was given, from
//                memory.
// The window     is bounded: `remembered` answers are kept, the oldest go first. A repetition that
//                comes later than that, or after a restart, is served again: what must not happen
//                twice has a key of its own in the body and is remembered durably.
// Limits         at most `served_at_once` requests are served at a time; one more is ignored and
//                counted, and its sender asks again.
// Dropped        what cannot be decoded, is for another member or answers nothing that was asked:
//                counted, by reason. What has another sender than its signed request says, too.
// Stop           an ask that is stopped forgets its request; its answer is dropped. close() ends
//                run(), and every ask with ask_error::closed.
// Thread safety  none: everything runs on one executor that runs one thing at a time: a node, a
//                run_loop, a strand.
// Exceptions     of a service go to executor::unobserved(); its request is forgotten, so that it is
//                served when it is repeated.
// Lifetime       until run() and every ask have ended; after close(), run() waits for the requests
//                that are being served. (One that is stopped does not.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "rondo/cluster/message.hpp"
#include "rondo/core/datagram.hpp"
#include "rondo/core/task.hpp"
#include "rondo/sync/notify.hpp"

namespace rondo::cluster {

struct peer_options {
    clock::duration first_repeat = std::chrono::milliseconds{50};
    clock::duration longest_repeat = std::chrono::seconds{2};
    std::size_t remembered = 4096;
    std::size_t served_at_once = 256;
    std::uint32_t jitter_seed = 1;
};

struct address {
    endpoint at;
    member_id id = 0;
};

struct answer {
    std::uint8_t type = 0;
    std::vector<std::byte> body;
};

enum class ask_error : std::uint8_t { timed_out, closed };

struct peer_counts {
    std::array<std::uint64_t, refusals> refused{};  // by refusal
    std::uint64_t for_another = 0;
    std::uint64_t unasked = 0;  // answers to nothing that is asked now
    std::uint64_t forged = 0;   // a request in the name of another member
    std::uint64_t served = 0;
    std::uint64_t repeated = 0;    // answered from memory, or being served
    std::uint64_t overloaded = 0;  // ignored: too many at once
    std::uint64_t sent_again = 0;
};

class peer {
  public:
    // Serves a request; its answer is sent and remembered.
    using service = std::function<task<answer>(message)>;

    peer(std::unique_ptr<datagram_socket> socket, secret shared, member_run self, service serve,
         peer_options chosen = {});
    ~peer();
    peer(peer const&) = delete;
    peer& operator=(peer const&) = delete;

    // Receives and serves until close(). Once.
    task<void> run();
    // The answer to a request of this type. A type is below 128: answers have the bit above.
    task<std::expected<answer, ask_error>> ask(address to, std::uint8_t type,
                                               std::vector<std::byte> body,
                                               clock::duration patience, epoch known = epoch{});
    void close() noexcept;

    peer_counts const& counts() const noexcept { return counts_; }
    member_run self() const noexcept { return self_; }
    peer_options const& options() const noexcept { return options_; }
    // Requests now; at most options().served_at_once.
    std::size_t being_served() const noexcept { return being_served_; }
    // Answers; at most options().remembered.
    std::size_t remembered() const noexcept { return answered_.size(); }

  private:
    class question;
    class turn;
    // What became of a request: its answer as it was sent, empty while it is being served.
    using records = std::map<request_id, std::vector<std::byte>>;

    void on_datagram(executor& where, datagram const& d);
    void on_answer(message m);
    void on_request(executor& where, endpoint from, message m);
    task<void> serve(endpoint from, message m);
    void remember(request_id const& id, std::vector<std::byte> bytes);
    void end_turn(request_id const& id) noexcept;
    clock::duration with_jitter(clock::duration d);

    std::unique_ptr<datagram_socket> socket_;
    secret const secret_;
    member_run const self_;
    service const service_;
    peer_options const options_;
    std::minstd_rand jitter_;
    std::uint64_t last_sequence_ = 0;
    std::map<std::uint64_t, question*> asked_;
    records records_;
    std::deque<request_id> answered_;  // of the records, the oldest first
    std::size_t being_served_ = 0;
    notify all_served_;
    bool closed_ = false;
    peer_counts counts_;
};

}  // namespace rondo::cluster
