/* Threads as fibers: each has a stack, and one runs until it yields. */
#include "machine.h"

#include <cstdlib>
#include <sys/mman.h>

#if !defined(__x86_64__) || defined(EMULATOR_UCONTEXT)
#include <ucontext.h>
#endif

/* of the address sanitizer, where a program is built with it: fibers that were abandoned leave
   marks on their stacks */
extern "C" __attribute__((weak)) void __asan_unpoison_memory_region(const volatile void *, size_t);

namespace emulator {

static constexpr size_t GUARD = 4096;

static char *new_stack() {
    void *memory = mmap(nullptr, STACK + GUARD, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort();
    mprotect(memory, GUARD, PROT_NONE); /* below it: too deep a stack stops the process */
    return static_cast<char *>(memory) + GUARD;
}

static void prepare_stack(Thread &thread) {
    if (!thread.stack) thread.stack = new_stack();
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(thread.stack, STACK);
}

#if defined(__x86_64__) && !defined(EMULATOR_UCONTEXT)

/* Keeps the registers that a function must keep, without the system call that swapcontext makes
   for signals. */
extern "C" __attribute__((visibility("hidden"))) void emulator_switch(void **from, void *to);
asm(R"(
.text
.globl emulator_switch
.hidden emulator_switch
.type emulator_switch, @function
emulator_switch:
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
    ret
.size emulator_switch, . - emulator_switch
)");

static void *scheduler;

void start(Thread &thread, void (*entry)()) {
    prepare_stack(thread);
    void **top = reinterpret_cast<void **>(thread.stack + STACK);
    *--top = nullptr; /* where `entry` would return to: also aligns its frame */
    *--top = reinterpret_cast<void *>(entry);
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    thread.context = top;
}

void resume(Thread &thread) {
    machine.current = &thread;
    emulator_switch(&scheduler, thread.context);
    machine.current = nullptr;
}

void yield() {
    emulator_switch(&machine.current->context, scheduler);
}

#else

static ucontext_t scheduler;

void start(Thread &thread, void (*entry)()) {
    prepare_stack(thread);
    if (!thread.context) thread.context = new ucontext_t;
    ucontext_t &context = *static_cast<ucontext_t *>(thread.context);
    getcontext(&context);
    context.uc_stack.ss_sp = thread.stack;
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, entry, 0);
}

void resume(Thread &thread) {
    machine.current = &thread;
    swapcontext(&scheduler, static_cast<ucontext_t *>(thread.context));
    machine.current = nullptr;
}

void yield() {
    swapcontext(static_cast<ucontext_t *>(machine.current->context), &scheduler);
}

#endif

} // namespace emulator
