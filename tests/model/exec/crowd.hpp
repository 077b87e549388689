// crowd.hpp: a team with a thread for each worker, and jobs for it.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "rondo/core/parker.hpp"
#include "rondo/exec/detail/team.hpp"
#include "support/model.hpp"

namespace rondo::test {

// Runs a function, once; whoever runs it must have seen it being made.
template <class F>
class doing final : public job {
  public:
    explicit doing(F f) : job(&act), body_(std::move(f)) {}
    int runs() const noexcept { return runs_; }

  private:
    static void act(job& j) noexcept {
        auto& self = static_cast<doing&>(j);
        self.runs_ = self.runs_ + 1;
        self.body_();
    }

    F body_;
    cell<int> runs_{0};
};

// Sleeps, and hears nothing of the world.
class deaf_driver final : public detail::driver {
  public:
    void poll() noexcept override {}
    void park(time_point until) noexcept override {
        last_until = until;
        (void)parker_.park_until(until);
    }
    void unpark() noexcept override { parker_.unpark(); }

    cell<time_point> last_until{time_point{}};

  private:
    parker parker_;
};

class crowd {
  public:
    explicit crowd(std::size_t workers, std::function<void(std::exception_ptr)> unobserved = {})
        : drivers_(workers) {
        detail::team::setup s;
        s.on_unobserved = std::move(unobserved);
        for (auto& d : drivers_) s.drivers.push_back(&(d = std::make_unique<deaf_driver>(), *d));
        team_ = std::make_unique<detail::team>(std::move(s));
    }
    void start() {
        for (auto const& r : team_->runners()) threads_.emplace_back([&r] { r->run(); });
    }
    // Ends as a runtime does, down to its memory.
    void end() {
        team_->close();
        for (check::thread& t : threads_) t.join();
        team_.reset();
        drivers_.clear();
    }
    detail::team& operator*() { return *team_; }
    detail::team* operator->() { return team_.get(); }
    detail::runner& worker(std::size_t i) { return *team_->runners()[i]; }

  private:
    std::vector<std::unique_ptr<deaf_driver>> drivers_;
    std::unique_ptr<detail::team> team_;
    std::vector<check::thread> threads_;
};

}  // namespace rondo::test
