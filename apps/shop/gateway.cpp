#include "gateway.hpp"

#include <optional>
#include <utility>

#include "messages.hpp"
#include "rondo/cluster/ledger.hpp"
#include "rondo/cluster/peer.hpp"

namespace rondo::shop {

namespace {

using cluster::answer;
using cluster::ledger_entry;
using cluster::message;
using cluster::standing;

std::string shortened(std::string text) {
    if (text.size() > longest_reason) text.resize(longest_reason);
    return text;
}

class gateway {
  public:
    gateway(place const& here, gateway_options const& chosen, cluster::ledger& book)
        : here_(here), options_(chosen), ledger_(book) {}

    task<answer> serve(message m) {
        answer const nonsense = answer_with(reply::nonsense);
        if (!is_screen(m.source.id)) co_return nonsense;
        switch (static_cast<request>(m.type)) {
            case request::prepare:
                co_return with<proposal>(m, [this](proposal const& p) { return prepare(p); });
            case request::commit:
                co_return with<payment>(m, [this](payment const& p) { return commit(p); });
            case request::cancel:
                co_return with<cancellation>(m,
                                             [this](cancellation const& c) { return cancel(c); });
            case request::delivered:
                co_return with<attempt_at>(m, [this](attempt_at const& a) { return delivered(a); });
            case request::remains:
                co_return remains();
            default:
                co_return nonsense;
        }
    }

  private:
    template <class T, class Serve>
    static answer with(message const& m, Serve const& serve) {
        std::optional<T> const read = unpack<T>(m.body);
        return read ? serve(*read) : answer_with(reply::nonsense);
    }

    cluster::ledger::moment now() const { return here_.wall_clock(); }

    // Nothing is answered by a ledger that has failed: the process is over.
    answer lost() {
        here_.fail(ledger_.failure());
        return answer_with(reply::busy);
    }

    std::optional<std::string> judge(proposal const& p) {
        for (item const& i : p.items) {
            if (find(options_.sold, i.flavour) == nullptr) return "unknown flavour " + i.flavour;
        }
        constexpr double steps = 1U << 30U;
        auto const drawn = static_cast<double>(here_.random() % (1U << 30U)) / steps;
        if (drawn < options_.rejection) return "card rejected";
        return std::nullopt;
    }

    answer prepare(proposal const& p) {
        cluster::proposal asked;
        for (item const& i : p.items) asked.items.push_back({i.flavour, i.grams});
        asked.card = p.card;
        asked.price = price_of(p.items, options_.sold);
        auto const e = ledger_.prepare(
            p.oid, asked, [&] { return judge(p); }, now(), now() + options_.authorisation);
        if (!e) return lost();
        here_.log->info("{} {} {}", p.oid, to_text(e->at), e->reason);
        if (e->at == standing::aborted) return answer_with(reply::abort, why{shortened(e->reason)});
        return answer_with(
            reply::ready,
            authorised{e->authorisation, static_cast<std::uint64_t>(e->expires.count())});
    }

    answer commit(payment const& p) {
        auto const e = ledger_.commit(p.oid, p.attempt, p.takes, now());
        if (!e) return lost();
        here_.log->info("{} {} {}", p.oid, to_text(e->at), e->reason);
        switch (e->at) {
            case standing::committed:
            case standing::delivered:
            case standing::refunded:
                return answer_with(reply::finished, attempt_at{p.oid, e->attempt});
            case standing::unknown:
                return answer_with(reply::abort, why{"it was never prepared"});
            default:
                return answer_with(reply::abort, why{shortened(e->reason)});
        }
    }

    answer cancel(cancellation const& c) {
        auto e = ledger_.abort(c.oid, c.reason, now());
        if (e && c.even_if_committed) e = ledger_.refund(c.oid, c.reason, now());
        if (!e) return lost();
        return ended(c.oid, *e);
    }

    answer delivered(attempt_at const& a) {
        auto const e = ledger_.deliver(a.oid, a.attempt, now());
        if (!e) return lost();
        return ended(a.oid, *e);
    }

    answer ended(order_id const& oid, ledger_entry const& e) {
        here_.log->info("{} {} {}", oid, to_text(e.at), e.reason);
        return answer_with(reply::ack, ending{e.at, shortened(e.reason)});
    }

    answer remains() {
        auto const levels = ledger_.levels();
        auto const unresolved = ledger_.unresolved(most_unresolved);
        if (!levels || !unresolved) return lost();
        remaining r;
        for (cluster::resource_level const& l : *levels) {
            if (find(options_.sold, l.resource) == nullptr) continue;
            r.levels.push_back({l.resource, static_cast<std::uint64_t>(l.capacity - l.committed)});
        }
        r.unresolved = *unresolved;
        return answer_with(reply::ready, r);
    }

    place const& here_;
    gateway_options const& options_;
    cluster::ledger& ledger_;
};

}  // namespace

task<void> run_gateway(place here, gateway_options chosen) {
    // First of all: whoever cannot listen, because there is a gateway already, leaves its stock
    // alone.
    std::unique_ptr<datagram_socket> socket = here.bind(gateway_id);
    std::vector<cluster::amount_of> capacities;
    for (flavour const& f : chosen.sold) capacities.push_back({f.name, f.capacity});
    auto opened = cluster::ledger::open(here.file("ledger.db"), capacities, here.vfs);
    if (!opened) {
        bool const sold_more = opened.error().cause == cluster::cannot_open::because::capacity;
        (sold_more ? here.cannot_start : here.fail)(opened.error().text);
        co_return;
    }
    gateway g{here, chosen, *opened};
    cluster::peer me{std::move(socket),
                     here.shared,
                     {gateway_id, here.incarnation},
                     [&g](message m) { return g.serve(std::move(m)); },
                     here.peer_options()};
    if (chosen.shown) chosen.shown({[&me] { return queues_of(me); }, &me.counts()});
    here.log->info("the gateway listens at {}", to_text(here.endpoint_of(gateway_id)));
    co_await me.run();
}

}  // namespace rondo::shop
