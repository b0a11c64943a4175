/* A block of CUDA's threads on a processor: fibers, each of which runs until the next barrier. */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define __device__
#define __host__
#define __forceinline__ inline
#define GNNC_EMULATED

struct Index {
    int x;
};
/* of a grid of one block */
static Index threadIdx, blockIdx{0}, blockDim{1}, gridDim{1};

enum { MOST_THREADS = 1024, STACK = 64 << 10 };
static ucontext_t scheduler_, fibers_[MOST_THREADS];
static bool ended_[MOST_THREADS];
static void *body_;
static void (*call_)(void *);

static void enter_()
{
    call_(body_);
    ended_[threadIdx.x] = true;
}
static inline void __syncthreads()
{
    const int self = threadIdx.x;
    swapcontext(&fibers_[self], &scheduler_);
    threadIdx.x = self;
}

/* Accesses of packs that are not aligned, which a GPU refuses: calls of -fsanitize=alignment. */
static int misaligned_;
extern "C" void __ubsan_handle_type_mismatch_v1(void *, void *) { ++misaligned_; }
extern "C" int misaligned() { return misaligned_; }

/* Runs a function in every thread, in order or backwards; a barrier that not all threads come to
   ends the process. */
template <class Body> static void run_block(int threads, bool backwards, Body body)
{
    static char *const stacks = (char *)malloc((size_t)MOST_THREADS * STACK);
    body_ = &body;
    blockDim.x = threads;
    call_ = [](void *b) { (*(Body *)b)(); };
    for (int t = 0; t < threads; ++t) {
        getcontext(&fibers_[t]);
        fibers_[t].uc_stack.ss_sp = stacks + (size_t)t * STACK;
        fibers_[t].uc_stack.ss_size = STACK;
        fibers_[t].uc_link = &scheduler_;
        makecontext(&fibers_[t], enter_, 0);
        ended_[t] = false;
    }
    for (int left = threads; left;) {
        left = 0;
        for (int i = 0; i < threads; ++i) {
            const int t = threadIdx.x = backwards ? threads - 1 - i : i;
            swapcontext(&scheduler_, &fibers_[t]);
            left += !ended_[t];
        }
        if (left && left != threads) {
            fprintf(stderr, "%d of %d threads came to a barrier\n", left, threads);
            abort();
        }
    }
}
