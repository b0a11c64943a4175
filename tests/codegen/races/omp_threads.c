/* The calls of the OpenMP runtime that compiled kernels make, on POSIX threads, for ThreadSanitizer.
 *
 * The sanitizer sees how threads wait for each other where the code that makes them wait is compiled with it, or is of pthreads. gcc's own
 * runtime is neither, so it would report every sum that is handed over at a barrier. Here threads wait at the end of a region and at barriers,
 * and nowhere else: what says who does which part of a loop is relaxed, so that it orders nothing and hides no race.
 * A call that is not here fails to link. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 16, MOST_SHARES = 4096 };

/* The threads of one parallel region. Loops and singles are counted by each thread: the k-th of one is the k-th of all. */
typedef struct {
    int size;
    pthread_barrier_t barrier;
    void (*work)(void *);
    void *data;
    long next[MOST_SHARES]; /* of each loop the first iteration that nobody took */
    int taken[MOST_SHARES]; /* whether somebody does the single */
} team;

static _Thread_local struct {
    team *team;
    int id, loops, singles;
    long first, end, step;
} self;
static pthread_mutex_t atomic = PTHREAD_MUTEX_INITIALIZER;

static void run(team *t, int id) {
    self.team = t;
    self.id = id;
    self.loops = self.singles = 0;
    t->work(t->data);
    self.team = NULL;
}

typedef struct {
    team *team;
    int id;
} start;

static void *begin(void *argument) {
    start *s = argument;
    run(s->team, s->id);
    return NULL;
}

static void give_up(const char *what) {
    fprintf(stderr, "omp_threads: %s\n", what);
    abort();
}

void GOMP_parallel(void (*work)(void *), void *data, unsigned threads, unsigned flags) {
    (void)flags;
    if (self.team) give_up("a region inside a region");
    if (threads < 1 || threads > MOST_THREADS) give_up("say how many threads, 16 at most");
    team *t = calloc(1, sizeof *t);
    pthread_t thread[MOST_THREADS];
    start starts[MOST_THREADS];
    t->size = (int)threads;
    t->work = work;
    t->data = data;
    pthread_barrier_init(&t->barrier, NULL, threads);
    for (int i = 1; i < t->size; i++) {
        starts[i] = (start){t, i};
        if (pthread_create(&thread[i], NULL, begin, &starts[i])) give_up("no thread");
    }
    run(t, 0);
    for (int i = 1; i < t->size; i++) pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&t->barrier);
    free(t);
}

void GOMP_barrier(void) {
    if (self.team) pthread_barrier_wait(&self.team->barrier);
}

bool GOMP_single_start(void) {
    if (!self.team) return true;
    if (self.singles == MOST_SHARES) give_up("too many singles");
    return !__atomic_exchange_n(&self.team->taken[self.singles++], 1, __ATOMIC_RELAXED);
}

/* ---- loops with schedule(dynamic) ------------------------------------------------------------------ */

bool GOMP_loop_dynamic_next(long *from, long *to) {
    long *next = &self.team->next[self.loops - 1];
    long at = self.first + __atomic_fetch_add(next, self.step, __ATOMIC_RELAXED);
    if (at >= self.end) return false;
    *from = at;
    *to = at + self.step < self.end ? at + self.step : self.end;
    if ((at / self.step + self.id) % 3 == 0) sched_yield(); /* others come in between */
    return true;
}

bool GOMP_loop_dynamic_start(long first, long end, long increment, long chunk, long *from, long *to) {
    if (!self.team) give_up("a loop outside a region");
    if (increment <= 0) give_up("a loop that counts down");
    if (self.loops++ == MOST_SHARES) give_up("too many loops");
    self.first = first;
    self.end = end;
    self.step = increment * chunk;
    return GOMP_loop_dynamic_next(from, to);
}

bool GOMP_loop_nonmonotonic_dynamic_start(long first, long end, long increment, long chunk, long *from, long *to) {
    return GOMP_loop_dynamic_start(first, end, increment, chunk, from, to);
}
bool GOMP_loop_nonmonotonic_dynamic_next(long *from, long *to) { return GOMP_loop_dynamic_next(from, to); }
void GOMP_loop_end_nowait(void) {}
void GOMP_loop_end(void) { GOMP_barrier(); }

/* ---- the rest ------------------------------------------------------------------------------------- */

void GOMP_atomic_start(void) { pthread_mutex_lock(&atomic); }
void GOMP_atomic_end(void) { pthread_mutex_unlock(&atomic); }
int omp_get_thread_num(void) { return self.team ? self.id : 0; }
int omp_get_num_threads(void) { return self.team ? self.team->size : 1; }
