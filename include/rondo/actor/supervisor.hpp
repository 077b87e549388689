// supervisor.hpp: actors that belong together: started, watched and ended as one.
//
//   actor::supervisor shop{pool, actor::when_one_gives_up::stop_all};
//   auto till = shop.start<till_actor>("till", {.restarts = {.at_most = 3}});
//   auto shelf = shop.start<shelf_actor>("shelf", [till] { return shelf_actor{till}; });
//   ...
//   shop.drain();
//   for (actor::obituary const& o : co_await shop.join()) log(o.name, o.why);
//
// Guarantee      an actor that fails is restarted as its own `restarts` say, and the others do not
//                notice. With all_begin_again the others are restarted with it, at once and
//                whatever their own `restarts` say, with new objects and their old mailboxes. A
//                message that one of them was receiving is lost, and an asker gets `unanswered`;
//                what is in its mailbox is for the new object.
//                When one gives up, the others go on, or all are stopped, as chosen.
// Drain, stop    apply to all actors, in the order in which they were started; an actor that is
//                started afterwards is drained or stopped at once.
// Join           ends when no actor is left, and says how each ended, in the order in which they
//                were started; until then the supervisor remembers each of them. A join that is
//                stopped loses nothing: the next join continues. All actors must have ended before
//                the supervisor is destroyed.
// Thread safety  every member except the destructor may be called concurrently, but only one caller
//                joins.
// Lifetime       the executor outlives the supervisor. An actor may start others in its supervisor.
// Example        examples/actor/night_shift.cpp
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rondo/actor/address.hpp"
#include "rondo/actor/spawn.hpp"
#include "rondo/core/executor.hpp"
#include "rondo/core/short_lock.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/task.hpp"

namespace rondo::actor {

enum class when_one_gives_up : std::uint8_t { others_go_on, stop_all };
enum class when_one_fails : std::uint8_t { it_begins_again, all_begin_again };

enum class end_of_life : std::uint8_t { drained, gave_up, stopped };

char const* describe(end_of_life why) noexcept;

// How one of the actors ended.
struct obituary {
    std::string name;
    end_of_life why;
    std::exception_ptr failure;  // if it gave up
};

// How one of the actors is doing.
struct report {
    std::string name;
    std::optional<actor::progress> progress;  // nothing: it has ended
};

class supervisor {
  public:
    explicit supervisor(executor& where, when_one_gives_up then = when_one_gives_up::others_go_on,
                        when_one_fails who = when_one_fails::it_begins_again);
    ~supervisor();
    supervisor(supervisor const&) = delete;
    supervisor& operator=(supervisor const&) = delete;

    // See actor::spawn().
    template <behaviour A, class Make>
    requires std::invocable<Make&> || std::invocable<Make&, address_of<A>>
    address_of<A> start(std::string name, Make make, options chosen = {}) {
        watch_failures(chosen);
        chosen.fate = fate_;
        spawned<A> one = spawn<A>(where_, std::move(make), std::move(chosen), stop_.token());
        add(std::move(name), std::move(one.life));
        return std::move(one.address);
    }
    template <behaviour A>
    requires std::default_initializable<A>
    address_of<A> start(std::string name, options chosen = {}) {
        return start<A>(std::move(name), [] { return A{}; }, std::move(chosen));
    }

    void drain() noexcept;
    void request_stop() noexcept { stop_.request_stop(); }

    task<std::vector<obituary>> join();
    std::vector<obituary> blocking_join();

    std::vector<report> look() const;

  private:
    struct child {
        std::string name;
        handle life;
        std::optional<obituary> end{};  // set once it was joined

        void bury(std::expected<ended, wait_error> const& how);
    };
    using child_ptr = std::shared_ptr<child>;

    void watch_failures(options& chosen);
    void add(std::string name, handle life);
    child_ptr nth(std::size_t n) const noexcept;
    // The first that has not been joined yet.
    child_ptr next_to_join() const noexcept;
    std::vector<obituary> take_obituaries();

    executor& where_;
    when_one_gives_up const then_;
    std::shared_ptr<detail::shared_fate> const fate_;  // null: each has its own
    stop_source stop_;
    mutable short_lock lock_;
    std::vector<child_ptr> children_;  // under the lock
    bool draining_ = false;            // under the lock
};

}  // namespace rondo::actor
