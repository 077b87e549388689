// fiber.hpp: stacks that one OS thread switches between.
//
// A fiber runs its entry function, which never returns: work is handed to it again and again, so
// that an execution neither makes nor destroys stacks. A fiber in the middle of something may be
// abandoned: its frames are dropped, no destructor runs.
//
// Sanitizers     told about every switch. Abandoning a fiber under AddressSanitizer loses its fake
//                stack; that happens at most twice per failing explore().

#pragma once

#include <cstddef>

namespace rondo::check::detail {

class fiber {
  public:
    using entry = void (*)(void*);

    // Stands for the stack of whoever calls jump() with it as `from`.
    fiber() noexcept = default;
    fiber(fiber const&) = delete;
    fiber& operator=(fiber const&) = delete;
    ~fiber();

    // Before the first jump() from it, once per OS thread that uses it.
    void adopt_current_stack();

    // Gives it a stack of its own (kept if there is one) on which the next jump calls
    // run(argument).
    void start(entry run, void* argument);

    // Ends a fiber that has nothing to do; start() makes it usable again.
    void stop() noexcept;

    [[nodiscard]] bool started() const noexcept { return run_ != nullptr; }

    static void jump(fiber& from, fiber& to) noexcept;

  private:
    // The exception machinery's per-thread state (Itanium ABI); each fiber has its own.
    struct exceptions {
        void* caught = nullptr;
        unsigned uncaught = 0;
    };

    static void enter(void* self);

    void* context_ = nullptr;  // saved stack pointer; or a ucontext_t
    void* stack_ = nullptr;    // lowest usable address
    std::size_t stack_size_ = 0;
    entry run_ = nullptr;
    void* argument_ = nullptr;
    exceptions exceptions_;
    // For sanitizers only.
    [[maybe_unused]] void* asan_fake_stack_ = nullptr;
    [[maybe_unused]] void* adopted_stack_ = nullptr;
    [[maybe_unused]] void* tsan_fiber_ = nullptr;
};

}  // namespace rondo::check::detail
