// fiber.cpp: the switch itself, the stacks, and what sanitizers and exceptions need to know.
//
// Algorithm      A switch pushes the callee-saved registers, stores the stack pointer, loads the
//                other one and pops. A new stack is laid out as if it had switched away right
//                before a trampoline that calls the entry function. Floating point control words
//                are not saved: no checked code has a reason to change them.
// Rejected       ucontext everywhere: swapcontext makes two system calls for the signal mask, half
//                a microsecond a switch. It remains for processors without code here.

#include "fiber.hpp"

#include <cxxabi.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sanitizers.hpp"

#if defined(__linux__) && defined(__x86_64__)
#define RONDO_CHECK_ASSEMBLY 1
asm(R"(
.text
.globl rondo_check_switch
.hidden rondo_check_switch
.type rondo_check_switch,@function
.balign 16
rondo_check_switch:
    .cfi_startproc
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    retq
    .cfi_endproc
.size rondo_check_switch,.-rondo_check_switch

.globl rondo_check_trampoline
.hidden rondo_check_trampoline
.type rondo_check_trampoline,@function
.balign 16
rondo_check_trampoline:
    .cfi_startproc
    .cfi_undefined rip
    movq %r12, %rdi
    callq *%r13
    ud2
    .cfi_endproc
.size rondo_check_trampoline,.-rondo_check_trampoline
)");
#elif defined(__linux__) && defined(__aarch64__)
#define RONDO_CHECK_ASSEMBLY 1
asm(R"(
.text
.globl rondo_check_switch
.hidden rondo_check_switch
.type rondo_check_switch,%function
.balign 16
rondo_check_switch:
    .cfi_startproc
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .cfi_endproc
.size rondo_check_switch,.-rondo_check_switch

.globl rondo_check_trampoline
.hidden rondo_check_trampoline
.type rondo_check_trampoline,%function
.balign 16
rondo_check_trampoline:
    .cfi_startproc
    .cfi_undefined x30
    mov x0, x19
    blr x20
    brk #1
    .cfi_endproc
.size rondo_check_trampoline,.-rondo_check_trampoline
)");
#else
#include <ucontext.h>
#endif

#ifdef RONDO_CHECK_ASSEMBLY
extern "C" void rondo_check_switch(void** save, void* load) noexcept;
extern "C" void rondo_check_trampoline();
#endif

namespace rondo::check::detail {
namespace {

// Instrumented frames are several times larger.
#ifdef RONDO_CHECK_ASAN
constexpr std::size_t stack_bytes = 1024 * 1024;
#else
constexpr std::size_t stack_bytes = 256 * 1024;
#endif

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// One page below the stack stays without access: an overflow faults instead of corrupting.
void* map_stack() {
    std::size_t const guard = page_size();
    void* const base = mmap(nullptr, stack_bytes + guard, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED || mprotect(base, guard, PROT_NONE) != 0) {
        std::perror("rondo::check: cannot map a stack");
        std::abort();
    }
    return static_cast<char*>(base) + guard;
}

#ifdef RONDO_CHECK_ASSEMBLY

// The frame that rondo_check_switch pops, so that it "returns" into the trampoline with the entry
// function and its argument in callee-saved registers.
void* first_frame(void* stack, fiber::entry run, void* argument) {
    auto const top = reinterpret_cast<std::uintptr_t>(stack) + stack_bytes;
    auto* const words = reinterpret_cast<void**>(top);
#if defined(__x86_64__)
    // Seven words are popped, which leaves the stack aligned to 16 bytes as a call wants it.
    void** const frame = words - 9;
    std::memset(static_cast<void*>(frame), 0, 9 * sizeof(void*));
    frame[2] = reinterpret_cast<void*>(run);  // r13
    frame[3] = argument;                      // r12
    frame[6] = reinterpret_cast<void*>(&rondo_check_trampoline);
    return static_cast<void*>(frame);
#else
    void** const frame = words - 20;
    std::memset(static_cast<void*>(frame), 0, 20 * sizeof(void*));
    frame[0] = argument;                                           // x19
    frame[1] = reinterpret_cast<void*>(run);                       // x20
    frame[11] = reinterpret_cast<void*>(&rondo_check_trampoline);  // x30
    return static_cast<void*>(frame);
#endif
}

#endif

}  // namespace

fiber::~fiber() {
    if (stack_ == nullptr) {
        return;
    }
    stop();
    std::size_t const guard = page_size();
    munmap(static_cast<char*>(stack_) - guard, stack_bytes + guard);
#ifndef RONDO_CHECK_ASSEMBLY
    std::free(context_);
#endif
}

void fiber::adopt_current_stack() {
#ifdef RONDO_CHECK_ASAN
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &adopted_stack_, &stack_size_);
        pthread_attr_destroy(&attributes);
    }
#endif
#ifdef RONDO_CHECK_TSAN
    tsan_fiber_ = __tsan_get_current_fiber();
#endif
#ifndef RONDO_CHECK_ASSEMBLY
    if (context_ == nullptr) {
        context_ = std::calloc(1, sizeof(ucontext_t));
    }
#endif
}

void fiber::start(entry run, void* argument) {
    if (stack_ == nullptr) {
        stack_ = map_stack();
        stack_size_ = stack_bytes;
    }
    stop();
    run_ = run;
    argument_ = argument;
    exceptions_ = exceptions{};
    asan_fake_stack_ = nullptr;
    unpoison(stack_, stack_bytes);
#ifdef RONDO_CHECK_TSAN
    tsan_fiber_ = __tsan_create_fiber(0);
#endif
#ifdef RONDO_CHECK_ASSEMBLY
    context_ = first_frame(stack_, &fiber::enter, this);
#else
    if (context_ == nullptr) {
        context_ = std::calloc(1, sizeof(ucontext_t));
    }
    auto* const context = static_cast<ucontext_t*>(context_);
    getcontext(context);
    context->uc_stack.ss_sp = stack_;
    context->uc_stack.ss_size = stack_bytes;
    context->uc_link = nullptr;
    // makecontext passes ints only: the pointer goes in two halves.
    auto const self = reinterpret_cast<std::uintptr_t>(this);
    auto const joined = +[](unsigned high, unsigned low) {
        fiber::enter(reinterpret_cast<void*>((static_cast<std::uintptr_t>(high) << 32U) | low));
    };
    makecontext(context, reinterpret_cast<void (*)()>(joined), 2,
                static_cast<unsigned>(std::uint64_t{self} >> 32U), static_cast<unsigned>(self));
#endif
}

void fiber::stop() noexcept {
    run_ = nullptr;
#ifdef RONDO_CHECK_TSAN
    if (tsan_fiber_ != nullptr) {
        __tsan_destroy_fiber(tsan_fiber_);
        tsan_fiber_ = nullptr;
    }
#endif
}

void fiber::enter(void* raw) {
    auto* const self = static_cast<fiber*>(raw);
#ifdef RONDO_CHECK_ASAN
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    self->run_(self->argument_);
    std::abort();
}

// Not instrumented for TSan: between telling it and switching, this code runs on behalf of both.
RONDO_CHECK_NO_TSAN void fiber::jump(fiber& from, fiber& to) noexcept {
    // Compilers may not keep the address over the switch, but all fibers share the OS thread.
    auto* const machinery = reinterpret_cast<exceptions*>(abi::__cxa_get_globals());
    from.exceptions_ = *machinery;
    *machinery = to.exceptions_;
#ifdef RONDO_CHECK_ASAN
    void const* const bottom = to.stack_ != nullptr ? to.stack_ : to.adopted_stack_;
    __sanitizer_start_switch_fiber(&from.asan_fake_stack_, bottom, to.stack_size_);
#endif
#ifdef RONDO_CHECK_TSAN
    __tsan_switch_to_fiber(to.tsan_fiber_, 0);
#endif
#ifdef RONDO_CHECK_ASSEMBLY
    rondo_check_switch(&from.context_, to.context_);
#else
    swapcontext(static_cast<ucontext_t*>(from.context_), static_cast<ucontext_t*>(to.context_));
#endif
#ifdef RONDO_CHECK_ASAN
    __sanitizer_finish_switch_fiber(from.asan_fake_stack_, nullptr, nullptr);
#endif
}

}  // namespace rondo::check::detail
