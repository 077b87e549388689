#include "rondo/http/client.hpp"

#include <algorithm>
#include <vector>

#include "rondo/core/assert.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/with_timeout.hpp"
#include "upstream.hpp"

namespace rondo::http {

using detail::pool;
using detail::upstream;

namespace {

clock::duration tick_for(client_options const& o) noexcept {
    using namespace std::chrono_literals;
    clock::duration const shortest =
        std::min({o.connect_timeout, o.response_timeout, o.idle_timeout});
    return std::clamp<clock::duration>(shortest / 8, 5ms, 500ms);
}

// The idle connections of a worker are closed there.
task<void> end_there(runtime* rt, std::size_t worker, pool* p) {
    auto ending = rt->spawn_pinned_to(worker, p->end());
    (void)co_await ending.join();
}

// One direction of a tunnel. Where nothing more can be read because it failed, or was silent for
// too long, nobody wants what the other direction has: it is stopped. Who takes nothing more may
// have said something before that: the other direction reads it, and comes to the end by itself.
template <class From, class To>
task<void> pour(From* from, To* to, stop_source* other) {
    for (;;) {
        auto const piece = co_await from->read();
        if (!piece) {
            other->request_stop();
            co_return;
        }
        if (piece->empty()) break;
        auto const written = co_await to->write(*piece);
        if (!written) co_return;
    }
    (void)co_await to->finish();
}

}  // namespace

struct client::state {
    state(runtime& r, client_options const& o) : rt(r), options(o) {
        for (std::size_t i = 0; i < rt.workers(); ++i) {
            pools.push_back(std::make_unique<pool>(options, rt.context(i), tick_for(options)));
        }
    }

    pool& here() noexcept {
        boost::asio::io_context const& mine = rt.context();
        return **std::ranges::find_if(pools, [&mine](auto& p) { return &p->context == &mine; });
    }

    runtime& rt;
    client_options options;
    std::vector<std::unique_ptr<pool>> pools;
};

bool call::reused() const noexcept { return over_->reused(); }
bool call::answered() const noexcept { return over_->answered(); }
request_text& call::head() noexcept { return over_->head(); }
task<call::done> call::write(std::string_view piece) { return over_->write(piece); }
task<call::done> call::finish(std::span<field const> trailer) { return over_->finish(trailer); }
task<std::expected<response_head const*, failure>> call::read_head() { return over_->read_head(); }
task<std::expected<response_head const*, failure>> call::read_any_head() {
    return over_->read_any_head();
}
task<std::expected<std::string_view, failure>> call::read() { return over_->read(); }
std::optional<std::expected<std::string_view, failure>> call::try_read() {
    return over_->try_read();
}
http::fields call::trailers() const noexcept { return over_->trailers(); }

client::client(runtime& rt, client_options o) : state_(std::make_unique<state>(rt, o)) {}
client::~client() {
    for (std::size_t i = 0; i < state_->pools.size(); ++i) {
        state_->rt.block_on(end_there(&state_->rt, i, state_->pools[i].get()));
    }
}

std::size_t client::workers() const noexcept { return state_->pools.size(); }

task<std::expected<call, failure>> client::connect(endpoint to, reuse allowed) {
    pool& p = state_->here();
    if (allowed == reuse::yes) {
        if (auto kept = p.take(to)) {
            kept->begin(true);
            co_return call{std::unique_ptr<upstream, detail::give_back>{kept.release()}};
        }
    }
    auto made = std::make_unique<upstream>(upstream::socket{p.context}, to, p);
    p.look_after(state_->rt);
    auto const connected = co_await made->connect();
    if (!connected) co_return std::unexpected{connected.error()};
    made->begin(false);
    co_return call{std::unique_ptr<upstream, detail::give_back>{made.release()}};
}

task<void> relay(exchange* x, call* c) {
    stop_source up;
    stop_source down;
    co_await when_all(with_stop(pour(x, c, &down), up.token()),
                      with_stop(pour(c, x, &up), down.token()));
}

}  // namespace rondo::http
