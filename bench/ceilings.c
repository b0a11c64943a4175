/* How fast this machine reads memory, in order and by rows anywhere, multiplies and adds, and
   computes exp, with as many threads as asked for. What
   all generated C begins with stands in front of this text: kernels multiply and add by its muladd,
   in one instruction where there is one. So do NARROW and WIDE, the bytes of rows that are gathered,
   and AHEAD, how many rows before it is read one is asked for (ceilings.py). */
#if VECTOR_BYTES >= 64
typedef f32x16 vec;
#define MULADD_VEC muladd_f32x16
#define EXP_VEC exp_f32x16
#elif VECTOR_BYTES >= 32
typedef f32x8 vec;
#define MULADD_VEC muladd_f32x8
#define EXP_VEC exp_f32x8
#else
typedef f32x4 vec;
#define MULADD_VEC muladd_f32x4
#define EXP_VEC exp_f32x4
#endif
enum { LANES = VECTOR_BYTES / 4, STREAMS = 8, ACCUMULATORS = 12 };
/* Numbers of which exp is computed again and again: they stay in the nearest cache. */
enum { NUMBERS = 1024 };

/* Nothing read or computed before this may be reused after it, nor left out. */
#define FORGET __asm__ volatile("" ::: "memory")

static float lanes_sum(vec v)
{
    float sum = 0;
    for (int l = 0; l < LANES; ++l) sum += v[l];
    return sum;
}

/* Thread `t` of `threads` has the floats from `begin` to `end`: whole rounds of all streams. */
static void share(int64_t count, int t, int threads, int64_t *begin, int64_t *end)
{
    const int64_t rounds = count / (STREAMS * LANES);
    *begin = rounds * t / threads * (STREAMS * LANES);
    *end = rounds * (t + 1) / threads * (STREAMS * LANES);
}

/* Each thread writes what it will read, so that the pages lie near it. */
void gnnc_fill(float *data, int64_t count, int threads)
{
#pragma omp parallel num_threads(threads)
    {
        int64_t begin, end;
        share(count, omp_get_thread_num(), omp_get_num_threads(), &begin, &end);
        for (int64_t i = begin; i < end; ++i) data[i] = 1;
    }
}

/* Seconds in which all threads read their shares `repeats` times; `sums` (one number a thread) makes
   it count. */
double gnnc_read(const float *data, int64_t count, int64_t repeats, int threads, float *sums)
{
    double start = 0;
#pragma omp parallel num_threads(threads)
    {
        int64_t begin, end;
        share(count, omp_get_thread_num(), omp_get_num_threads(), &begin, &end);
        vec sum[STREAMS] = {{0}};
#pragma omp barrier
#pragma omp master
        start = omp_get_wtime();
        for (int64_t k = 0; k < repeats; ++k) {
            for (int64_t i = begin; i < end; i += STREAMS * LANES)
                UNROLL for (int s = 0; s < STREAMS; ++s)
                    sum[s] += *(const vec *)(data + i + s * LANES);
            FORGET;
        }
        float all = 0;
        for (int s = 0; s < STREAMS; ++s) all += lanes_sum(sum[s]);
        sums[omp_get_thread_num()] = all;
    }
    return omp_get_wtime() - start;
}

/* Seconds for `repeats` rounds of ACCUMULATORS independent multiplications and additions of vectors
   in each thread: as many as hide their latency, and as few as fit into 16 registers. */
double gnnc_multiply_add(int64_t repeats, int threads, float *sums)
{
    double start = 0;
#pragma omp parallel num_threads(threads)
    {
        vec sum[ACCUMULATORS], factor = {0}, term = {0};
        for (int a = 0; a < ACCUMULATORS; ++a) sum[a] = factor + (float)a;
        factor += 0.999f;
        term += 0.001f;
        __asm__ volatile("" : "+x"(factor), "+x"(term));
#pragma omp barrier
#pragma omp master
        start = omp_get_wtime();
        for (int64_t k = 0; k < repeats; ++k)
            UNROLL for (int a = 0; a < ACCUMULATORS; ++a) sum[a] = MULADD_VEC(sum[a], factor, term);
        float all = 0;
        for (int a = 0; a < ACCUMULATORS; ++a) all += lanes_sum(sum[a]);
        sums[omp_get_thread_num()] = all;
    }
    return omp_get_wtime() - start;
}

/* Floating-point operations of one round in one thread. */
int gnnc_round_flops(void) { return 2 * ACCUMULATORS * LANES; }

/* The sum of rows of so many bytes. `order` has AHEAD entries more. */
static inline __attribute__((always_inline)) float gathered(const float *data, const int32_t *order, int64_t begin, int64_t end, int bytes)
{
    vec sum[WIDE / VECTOR_BYTES] = {{0}};
    for (int64_t i = begin; i < end; ++i) {
        const float *row = data + (int64_t)order[i] * (bytes / 4);
        const float *later = data + (int64_t)order[i + AHEAD] * (bytes / 4);
        UNROLL for (int b = 0; b < bytes; b += 64) __builtin_prefetch(later + b / 4);
        UNROLL for (int v = 0; v < bytes / VECTOR_BYTES; ++v) sum[v] += *(const vec *)(row + v * LANES);
    }
    float all = 0;
    for (int v = 0; v < bytes / VECTOR_BYTES; ++v) all += lanes_sum(sum[v]);
    return all;
}

/* Seconds in which all threads read their shares of `count` rows, of NARROW or of WIDE bytes, which
   lie at the places of `order`, `repeats` times. */
double gnnc_gather(const float *data, const int32_t *order, int64_t count, int wide, int64_t repeats, int threads, float *sums)
{
    double start = 0;
#pragma omp parallel num_threads(threads)
    {
        const int64_t t = omp_get_thread_num(), all = omp_get_num_threads();
        const int64_t begin = count * t / all, end = count * (t + 1) / all;
        float sum = 0;
#pragma omp barrier
#pragma omp master
        start = omp_get_wtime();
        for (int64_t k = 0; k < repeats; ++k) {
            sum += wide ? gathered(data, order, begin, end, WIDE) : gathered(data, order, begin, end, NARROW);
            FORGET;
        }
        sums[t] = sum;
    }
    return omp_get_wtime() - start;
}

/* Seconds in which each thread computes exp of NUMBERS numbers `repeats` times. */
double gnnc_exp(int64_t repeats, int threads, float *sums)
{
    double start = 0;
#pragma omp parallel num_threads(threads)
    {
        float x[NUMBERS] __attribute__((aligned(64)));
        for (int i = 0; i < NUMBERS; ++i) x[i] = (float)i * -0.01f;
        vec sum = {0};
#pragma omp barrier
#pragma omp master
        start = omp_get_wtime();
        for (int64_t k = 0; k < repeats; ++k) {
            for (int i = 0; i < NUMBERS; i += LANES) sum += EXP_VEC(*(const vec *)(x + i));
            __asm__ volatile("" ::"r"(x) : "memory");
        }
        sums[omp_get_thread_num()] = lanes_sum(sum);
    }
    return omp_get_wtime() - start;
}

int gnnc_round_exps(void) { return NUMBERS; }
