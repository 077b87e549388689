// Invariants
//   I1  a request is in records_ from when its service begins; its record is empty until the
//       answer is sent, and then what was sent. So it is served once as long as it is there.
//   I2  answered_ has the records with an answer, in the order of the answers, at most
//       `remembered`; the others are at most `served_at_once`.
//   I3  asked_ has the questions whose ask() is alive: each takes itself out, however it ends.
#include "rondo/cluster/peer.hpp"

#include <algorithm>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"

namespace rondo::cluster {

namespace {

constexpr std::uint8_t answer_bit = 0x80;

}  // namespace

class peer::question {
  public:
    question(peer& p, std::uint64_t sequence) : peer_(p), sequence_(sequence) {
        peer_.asked_.emplace(sequence, this);
    }
    ~question() { peer_.asked_.erase(sequence_); }  // I3
    question(question const&) = delete;
    question& operator=(question const&) = delete;

    notify changed;
    std::optional<answer> reply;
    member_id of = 0;

  private:
    peer& peer_;
    std::uint64_t sequence_;
};

// A request that is being served; one that ends without an answer is forgotten.
class peer::turn {
  public:
    turn(peer& p, request_id const& id) : peer_(p), id_(id) {}
    ~turn() { peer_.end_turn(id_); }
    turn(turn const&) = delete;
    turn& operator=(turn const&) = delete;

  private:
    peer& peer_;
    request_id id_;
};

peer::peer(std::unique_ptr<datagram_socket> socket, secret shared, member_run self, service serve,
           peer_options chosen)
    : socket_(std::move(socket)),
      secret_(shared),
      self_(self),
      service_(std::move(serve)),
      options_(chosen),
      jitter_(chosen.jitter_seed) {}

peer::~peer() { RONDO_ASSERT(asked_.empty(), "a peer outlives what it was asked to ask"); }

void peer::close() noexcept {
    closed_ = true;
    socket_->close();
    for (auto const& [sequence, q] : asked_) q->changed.notify_one();
}

// --- asking ---

// Three quarters to five quarters of it.
clock::duration peer::with_jitter(clock::duration d) {
    auto const part = static_cast<clock::rep>(jitter_() % 1024);
    return d * 3 / 4 + d / 2 * part / 1024;
}

task<std::expected<answer, ask_error>> peer::ask(address to, std::uint8_t type,
                                                 std::vector<std::byte> body,
                                                 clock::duration patience, epoch known) {
    RONDO_ASSERT(type < answer_bit, "the type of a request is below 128");
    environment const& env = co_await this_environment();
    time_point const deadline = later(env.timers().now(), patience);
    request_id const id{self_, ++last_sequence_};
    std::vector<std::byte> const bytes =
        encode({type, self_, to.id, id, known, std::move(body)}, secret_);
    question q{*this, id.sequence};
    q.of = to.id;
    for (clock::duration pause = options_.first_repeat;; pause *= 2) {
        pause = std::min(pause, options_.longest_repeat);
        if (closed_) co_return std::unexpected{ask_error::closed};
        socket_->send_to(to.at, bytes);
        time_point const again = later(env.timers().now(), with_jitter(pause));
        auto const heard = co_await q.changed.notified_until(std::min(again, deadline));
        (void)heard;
        if (q.reply) co_return *std::move(q.reply);
        if (closed_) co_return std::unexpected{ask_error::closed};
        if (env.timers().now() >= deadline) co_return std::unexpected{ask_error::timed_out};
        ++counts_.sent_again;
    }
}

void peer::on_answer(message m) {
    auto const at = asked_.find(m.request.sequence);
    bool const ours = m.request.from == self_ && at != asked_.end() &&
                      at->second->of == m.source.id && !at->second->reply;
    if (!ours) {
        ++counts_.unasked;
        return;
    }
    at->second->reply = answer{static_cast<std::uint8_t>(m.type & ~answer_bit), std::move(m.body)};
    at->second->changed.notify_one();
}

// --- serving ---

task<void> peer::run() {
    environment const& env = co_await this_environment();
    for (;;) {
        auto const d = co_await socket_->receive();
        if (!d) break;
        on_datagram(*env.where, *d);
    }
    while (being_served_ != 0) co_await all_served_.notified();
}

void peer::on_datagram(executor& where, datagram const& d) {
    std::expected<message, refusal> m = decode(d.bytes, secret_);
    if (!m) {
        ++counts_.refused[static_cast<std::size_t>(m.error())];
    } else if (m->destination != self_.id) {
        ++counts_.for_another;
    } else if ((m->type & answer_bit) != 0) {
        on_answer(*std::move(m));
    } else {
        on_request(where, d.from, *std::move(m));
    }
}

void peer::on_request(executor& where, endpoint from, message m) {
    if (m.request.from != m.source) {
        ++counts_.forged;
        return;
    }
    auto const known = records_.find(m.request);
    if (known != records_.end()) {  // I1
        ++counts_.repeated;
        if (!known->second.empty()) socket_->send_to(from, known->second);
        return;
    }
    if (being_served_ == options_.served_at_once) {
        ++counts_.overloaded;
        return;
    }
    records_.emplace(m.request, std::vector<std::byte>{});
    ++being_served_;
    ++counts_.served;
    spawn(where, serve(from, std::move(m))).detach();
}

task<void> peer::serve(endpoint from, message m) {
    request_id const id = m.request;
    turn const here{*this, id};
    epoch const known = m.epoch;
    member_id const asker = m.source.id;
    answer given = co_await service_(std::move(m));
    RONDO_ASSERT(given.type < answer_bit, "the type of an answer is below 128");
    auto const type = static_cast<std::uint8_t>(given.type | answer_bit);
    std::vector<std::byte> bytes =
        encode({type, self_, asker, id, known, std::move(given.body)}, secret_);
    socket_->send_to(from, bytes);
    remember(id, std::move(bytes));
}

void peer::end_turn(request_id const& id) noexcept {
    auto const record = records_.find(id);
    if (record != records_.end() && record->second.empty()) records_.erase(record);
    --being_served_;
    if (being_served_ == 0) all_served_.notify_one();
}

void peer::remember(request_id const& id, std::vector<std::byte> bytes) {
    records_[id] = std::move(bytes);
    answered_.push_back(id);
    while (answered_.size() > options_.remembered) {  // I2
        records_.erase(answered_.front());
        answered_.pop_front();
    }
}

}  // namespace rondo::cluster
