/* Support code at the head of every generated C file: vector types, ordered chunks, tiles of products. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")

/* Rows of user tensors are aligned to their element only, hence the explicit alignment of every vector type. */
#define VECTOR(name, mask, T, M, n)                                                     \
    typedef T name __attribute__((vector_size(n * sizeof(T)), aligned(sizeof(T)), may_alias)); \
    typedef M mask __attribute__((vector_size(n * sizeof(M)), aligned(sizeof(M)), may_alias));
VECTOR(f32x2, m32x2, float, int32_t, 2)
VECTOR(f32x4, m32x4, float, int32_t, 4)
VECTOR(f64x2, m64x2, double, int64_t, 2)
#if VECTOR_BYTES >= 32
VECTOR(f32x8, m32x8, float, int32_t, 8)
VECTOR(f64x4, m64x4, double, int64_t, 4)
#endif
#if VECTOR_BYTES >= 64
VECTOR(f32x16, m32x16, float, int32_t, 16)
VECTOR(f64x8, m64x8, double, int64_t, 8)
#endif

/* a * b + c, rounded once where the machine has an instruction for it. The compiler makes none of
 * its own (runtime/cpu/toolchain.py): a value that is computed twice must have the same bits. */
#define MULADD_BY_LANE(T, f)                                                            \
    INLINE T muladd_##T(T a, T b, T c)                                                  \
    {                                                                                   \
        T y;                                                                            \
        for (size_t l = 0; l < sizeof y / sizeof y[0]; ++l) y[l] = f(a[l], b[l], c[l]); \
        return y;                                                                       \
    }
#ifndef __FP_FAST_FMA
#define MULADD(T, f, v) INLINE T muladd_##T(T a, T b, T c) { return a * b + c; }
#elif defined(__FMA__) && !defined(__clang__)
#define MULADD(T, f, v) INLINE T muladd_##T(T a, T b, T c) { return v(a, b, c); }
#else
#define MULADD(T, f, v) MULADD_BY_LANE(T, f)
#endif
#ifdef __FP_FAST_FMA
INLINE float muladd_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
INLINE double muladd_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
INLINE float muladd_f32(float a, float b, float c) { return a * b + c; }
INLINE double muladd_f64(double a, double b, double c) { return a * b + c; }
#endif
#define FMA_PAIR(a, b, c) ((f32x2){muladd_f32(a[0], b[0], c[0]), muladd_f32(a[1], b[1], c[1])})
#define FMA_f32x16(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)
#define FMA_f64x8(a, b, c) __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)
MULADD(f32x2, __builtin_fmaf, FMA_PAIR)
MULADD(f32x4, __builtin_fmaf, __builtin_ia32_vfmaddps)
MULADD(f64x2, __builtin_fma, __builtin_ia32_vfmaddpd)
#if VECTOR_BYTES >= 32
MULADD(f32x8, __builtin_fmaf, __builtin_ia32_vfmaddps256)
MULADD(f64x4, __builtin_fma, __builtin_ia32_vfmaddpd256)
#endif
#if VECTOR_BYTES >= 64 && defined(__FP_FAST_FMA) && !defined(__AVX512F__)
MULADD_BY_LANE(f32x16, __builtin_fmaf) /* vectors that are longer than the machine's */
MULADD_BY_LANE(f64x8, __builtin_fma)
#elif VECTOR_BYTES >= 64
MULADD(f32x16, __builtin_fmaf, FMA_f32x16)
MULADD(f64x8, __builtin_fma, FMA_f64x8)
#endif

/* A vector that stays in a register while a loop's body uses it several times: GCC makes each use a memory operand of
 * its own where there are few of them, and the loads then take longer than the products. */
#define KEEP(T, r) INLINE T keep_##T(T v) { asm("" : r(v)); return v; }
#define KEEP_NOT(T) INLINE T keep_##T(T v) { return v; }
#if defined(__SSE__)
KEEP(f32x4, "+v")
KEEP(f64x2, "+v")
#elif defined(__aarch64__)
KEEP(f32x4, "+w")
KEEP(f64x2, "+w")
#else
KEEP_NOT(f32x4)
KEEP_NOT(f64x2)
#endif
#if VECTOR_BYTES >= 32 && defined(__AVX__)
KEEP(f32x8, "+v")
KEEP(f64x4, "+v")
#elif VECTOR_BYTES >= 32
KEEP_NOT(f32x8)
KEEP_NOT(f64x4)
#endif
#if VECTOR_BYTES >= 64 && defined(__AVX512F__)
KEEP(f32x16, "+v")
KEEP(f64x8, "+v")
#elif VECTOR_BYTES >= 64
KEEP_NOT(f32x16)
KEEP_NOT(f64x8)
#endif

/* A row that is too long for a thread's stack lies on the heap while its scope lasts. */
INLINE void *heap_row(size_t bytes)
{
    void *row = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (row == NULL) {
        fprintf(stderr, "gnnc: no memory for a row of %zu bytes\n", bytes);
        abort();
    }
    return row;
}
INLINE void free_row(const void *row) { free(*(void *const *)row); }
#define HEAP_ROW(T, name, n) \
    T *const name __attribute__((cleanup(free_row))) = (T *)heap_row((size_t)(n) * sizeof(T))

#define LOAD(T, p) (*(const T *)(p))
#define STORE(T, p, v) (*(T *)(p) = (v))
#define SPLAT(T, x) ((x) - (T){0})
#define SELECT(T, M, m, a, b) ((T)(((M)(a) & (m)) | ((M)(b) & ~(m))))
/* A function of C's library in the first n lanes. */
#define LANES(T, n, x, f)                                             \
    ({                                                                \
        T x_ = (x), y_ = x_;                                          \
        for (int l_ = 0; l_ < (n); ++l_) y_[l_] = f(x_[l_]);          \
        y_;                                                           \
    })
#define LANES2(T, n, x, z, f)                                         \
    ({                                                                \
        T x_ = (x), z_ = (z), y_ = x_;                                \
        for (int l_ = 0; l_ < (n); ++l_) y_[l_] = f(x_[l_], z_[l_]);  \
        y_;                                                           \
    })

/* The halves of a vector. */
#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define HALF_OF(H, v, second, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#endif
#endif
#ifndef HALF_OF
#define HALF_OF(H, v, second, ...) ({ H y_; memcpy(&y_, (const char *)&(v) + (second) * sizeof(y_), sizeof(y_)); y_; })
#endif
#define LANES_0_TO_3 0, 1, 2, 3
#define LANES_4_TO_7 4, 5, 6, 7
#define LANES_0_TO_7 LANES_0_TO_3, LANES_4_TO_7
#define LANES_8_TO_15 8, 9, 10, 11, 12, 13, 14, 15
#define HALVES(T, H, first, second)                                                     \
    INLINE H low_##T(T v) { return HALF_OF(H, v, 0, first); }                              \
    INLINE H high_##T(T v) { return HALF_OF(H, v, 1, second); }
#define PAIRS(T, H)                                                                     \
    INLINE H low_##T(T v) { return HALF_OF(H, v, 0, 0, 1); }                               \
    INLINE H high_##T(T v) { return HALF_OF(H, v, 1, 2, 3); }
PAIRS(f32x4, f32x2)
#if VECTOR_BYTES >= 32
HALVES(f32x8, f32x4, LANES_0_TO_3, LANES_4_TO_7)
PAIRS(f64x4, f64x2)
#endif
#if VECTOR_BYTES >= 64
HALVES(f32x16, f32x8, LANES_0_TO_7, LANES_8_TO_15)
HALVES(f64x8, f64x4, LANES_0_TO_3, LANES_4_TO_7)
#endif

/* Sums and extremes over the lanes of a vector, half by half. NaN goes through. */
#define FOLD_PAIR(T, M, E)                                                              \
    INLINE E fold_sum_##T(T v) { return v[0] + v[1]; }                                  \
    INLINE E fold_max_##T(T v) { const T w = {v[1], v[1]}; return SELECT(T, M, (v != v) | (v > w), v, w)[0]; } \
    INLINE E fold_min_##T(T v) { const T w = {v[1], v[1]}; return SELECT(T, M, (v != v) | (v < w), v, w)[0]; }
#define FOLD_HALVES(T, H, M, E)                                                         \
    INLINE E fold_sum_##T(T v) { return fold_sum_##H(low_##T(v) + high_##T(v)); }       \
    INLINE E fold_max_##T(T v)                                                          \
    {                                                                                   \
        const H a = low_##T(v), b = high_##T(v);                                        \
        return fold_max_##H(SELECT(H, M, (a != a) | (a > b), a, b));                    \
    }                                                                                   \
    INLINE E fold_min_##T(T v)                                                          \
    {                                                                                   \
        const H a = low_##T(v), b = high_##T(v);                                        \
        return fold_min_##H(SELECT(H, M, (a != a) | (a < b), a, b));                    \
    }
FOLD_PAIR(f32x2, m32x2, float)
FOLD_PAIR(f64x2, m64x2, double)
FOLD_HALVES(f32x4, f32x2, m32x2, float)
#if VECTOR_BYTES >= 32
FOLD_HALVES(f32x8, f32x4, m32x4, float)
FOLD_HALVES(f64x4, f64x2, m64x2, double)
#endif
#if VECTOR_BYTES >= 64
FOLD_HALVES(f32x16, f32x8, m32x8, float)
FOLD_HALVES(f64x8, f64x4, m64x4, double)
#endif

/* A row that is needed soon (`level` 3: in the nearest cache, 2: in the second); an address past the end is not touched
   by a prefetch. */
#define PREFETCH_ROW(p, bytes, level) \
    for (int o_ = 0; o_ < (int)(bytes); o_ += 64) __builtin_prefetch((const char *)(p) + o_, 0, level)

/* What is asked for while something else runs, a cache line at a time, for it is as slow as memory: the rows of `bytes`
   that members up to `end` look up; after each `rest` is done. It need not get past the second-level cache. */
typedef struct { int64_t member, end; int byte; } asked;
#define ASK_FOR_LINE(what, row, bytes, rest)                                            \
    if ((what).member < (what).end) {                                                   \
        __builtin_prefetch((const char *)(row) + (what).byte, 0, 2);                    \
        if (((what).byte += 64) >= (bytes)) {                                           \
            rest;                                                                       \
            (what).byte = 0;                                                            \
            ++(what).member;                                                            \
        }                                                                               \
    }

/* With GNNC_PROFILE every phase adds the seconds of its kernels to an array that it exports. */
#ifdef GNNC_PROFILE
#define LAPS(phase, kernels) double gnnc_##phase##_seconds[kernels];
#define START_LAPS double start_ = omp_get_wtime()
#define LAP(phase, k)                                     \
    do {                                                  \
        const double now_ = omp_get_wtime();              \
        gnnc_##phase##_seconds[k] += now_ - start_;       \
        start_ = now_;                                    \
    } while (0)
#else
#define LAPS(phase, kernels)
#define START_LAPS (void)0
#define LAP(phase, k) (void)0
#endif

INLINE int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

/* Scalar functions that C's library does not have. NaN goes through, as in torch. */
#define SCALAR_FUNCTIONS(T, s)                                                                  \
    INLINE T sign##s(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : (T)0; }                       \
    INLINE T greater##s(T a, T b) { return a != a || a > b ? a : b; }                           \
    INLINE T less##s(T a, T b) { return a != a || a < b ? a : b; }                              \
    INLINE T lerp##s(T a, T b, T w)                                                             \
    {                                                                                           \
        int far = w >= (T)0.5 || w <= (T)-0.5;                                                  \
        return (far ? b : a) + (far ? w - 1 : w) * (b - a);                                     \
    }
SCALAR_FUNCTIONS(float, f)
SCALAR_FUNCTIONS(double, )
/* The number y with erf y = x: a first guess good for three digits (Winitzki), then two of Halley's steps, whose errors
   are the cube of what they begin with. Near 1 the rest to 1 is what is exact. */
static __attribute__((unused)) double erfinv(double x)
{
    const double a = fabs(x), rest = 1 - a, w = -log1p(-a * a);
    if (!(a < 1)) return a == 1 ? x * INFINITY : NAN;
    const double t = 2 / (M_PI * 0.147) - w / 2, q = w / 0.147;
    double y = sqrt(q / (sqrt(t * t + q) + t));
    for (int step = 0; step < 2; ++step) {
        const double miss = a < 0.5 ? erf(y) - a : rest - erfc(y);
        const double u = miss * (sqrt(M_PI) / 2) * exp(y * y);
        y -= u / (1 + y * u);
    }
    return copysign(y, x);
}
INLINE float erfinvf(float x) { return (float)erfinv(x); }
INLINE int64_t greateri(int64_t a, int64_t b) { return a > b ? a : b; }
INLINE int64_t lessi(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t signi(int64_t a) { return (a > 0) - (a < 0); }
/* Rounded down; dividing by 0 gives 0, and the least number by -1 itself, where C has a trap. */
INLINE int64_t floordivi(int64_t a, int64_t b)
{
    if (b == 0) return 0;
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
INLINE int64_t resti(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* First row of chunk c of `chunks`: rows carry the work of their edges and of `row_cost` more. */
INLINE int64_t cut(const int64_t *offsets, int64_t n, int64_t row_cost, int64_t c, int64_t chunks)
{
    if (!offsets) return (int64_t)((__int128)n * c / chunks);
    int64_t want = (int64_t)((__int128)(offsets[n] + row_cost * n) * c / chunks), lo = 0, hi = n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (offsets[mid] + row_cost * mid < want) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}
/* A function of the sizes alone, so that ordered partial results do not depend on the number of threads. */
INLINE int64_t chunk_count(const int64_t *offsets, int64_t n, int64_t row_cost, int64_t grain, int64_t most)
{
    int64_t work = (offsets ? offsets[n] : 0) + row_cost * n;
    const int64_t chunks = min64(max64(work / grain, 1), most);
    return chunks > 1 ? chunks & ~1 : 1; /* few chunks are no work for two threads where one is left over */
}

/* A row so long that it spans whole chunks; its edges are reduced in pieces `first` .. `first + count`. */
typedef struct {
    int64_t row, first, count;
} hub;
/* Rows that leave a chunk behind them empty; each chunk does, so there are fewer than chunks. */
static __attribute__((unused)) int find_hubs(const int64_t *offsets, int64_t n, int64_t row_cost, int64_t chunks, int64_t piece, hub *hubs)
{
    int found = 0;
    int64_t pieces = 0, before = cut(offsets, n, row_cost, 1, chunks);
    for (int64_t c = 2; c <= chunks; ++c) {
        const int64_t here = cut(offsets, n, row_cost, c, chunks);
        const int64_t row = here - 1;
        if (here == before && row >= 0 && (!found || hubs[found - 1].row != row)) {
            const int64_t count = (offsets[row + 1] - offsets[row] + piece - 1) / piece;
            hubs[found++] = (hub){row, pieces, count};
            pieces += count;
        }
        before = here;
    }
    return found;
}
INLINE int hub_of(const hub *hubs, int found, int64_t row)
{
    for (int h = 0; h < found; ++h)
        if (hubs[h].row == row) return h;
    return -1;
}

/* Denormal numbers are flushed inside kernels and the caller's mode restored: they cost a hundred cycles each. With
   GNNC_DENORMALS they are kept. */
#if defined(__SSE__) && !defined(GNNC_DENORMALS)
#define ENTER_KERNEL unsigned csr_ = _mm_getcsr(); _mm_setcsr(csr_ | 0x8040)
#define LEAVE_KERNEL _mm_setcsr(csr_)
#else
#define ENTER_KERNEL (void)0
#define LEAVE_KERNEL (void)0
#endif

/* Do something in step `k` of a loop with `n` multiplications a step, about as often whatever `n` is. */
#define NOW_AND_THEN(k, n, what)                                                        \
    do {                                                                                \
        if ((k) % ((n) >= 192 ? 1 : (n) >= 96 ? 2 : (n) >= 48 ? 4 : 8) == 0) what;      \
        if ((n) >= 384) what;                                                           \
    } while (0)

/* C[MR rows][NV vectors] = A[MR rows][K] . W[K][NV vectors], or += where MORE; W is packed and zero-padded, the last
   vector of C may be cut; then it goes through a vector of its own, for a sum whose address is taken lies in memory.
   A whole one does not: GCC 12 copies it by halves, which costs a tile of K = 16 a fifth of its time.
   With AHEAD the next MR rows of A are fetched meanwhile, a cache line of each at a time: all at once they would hold up
   the loads of this tile. MEANWHILE is done every 192 to 256 multiplications or so. */
#define MATMUL_TILE(V, VL, MR, NV, K, A, lda, W, C, ldc, last, AHEAD, MORE, MEANWHILE)  \
    do {                                                                                \
        V acc_[MR][NV];                                                                 \
        UNROLL for (int r_ = 0; r_ < MR; ++r_) UNROLL for (int q_ = 0; q_ < NV; ++q_) acc_[r_][q_] = (V){0}; \
        if (MORE) UNROLL for (int r_ = 0; r_ < MR; ++r_) {                              \
            UNROLL for (int q_ = 0; q_ < NV - 1; ++q_) acc_[r_][q_] = LOAD(V, (C) + r_ * (ldc) + q_ * VL); \
            if ((last) == VL) {                                                         \
                acc_[r_][NV - 1] = LOAD(V, (C) + r_ * (ldc) + (NV - 1) * VL);           \
            } else {                                                                    \
                V end_ = {0};                                                           \
                memcpy(&end_, (C) + r_ * (ldc) + (NV - 1) * VL, sizeof(*(C)) * (last)); \
                acc_[r_][NV - 1] = keep_##V(end_);                                      \
            }                                                                           \
        }                                                                               \
        for (int k_ = 0; k_ < (K); ++k_) {                                              \
            if ((AHEAD) && k_ % (64 / (int)sizeof(*(A))) == 0)                          \
                UNROLL for (int r_ = 0; r_ < MR; ++r_) __builtin_prefetch((A) + (MR + r_) * (lda) + k_); \
            NOW_AND_THEN(k_, MR * NV * VL, MEANWHILE);                                  \
            V w_[NV];                                                                   \
            UNROLL for (int q_ = 0; q_ < NV; ++q_) w_[q_] = LOAD(V, (W) + (k_ * NV + q_) * VL); \
            if (MR > 1) UNROLL for (int q_ = 0; q_ < NV; ++q_) w_[q_] = keep_##V(w_[q_]); \
            UNROLL for (int r_ = 0; r_ < MR; ++r_) {                                    \
                V s_ = SPLAT(V, (A)[r_ * (lda) + k_]);                                  \
                if (NV > 1) s_ = keep_##V(s_);                                          \
                UNROLL for (int q_ = 0; q_ < NV; ++q_)                                  \
                    acc_[r_][q_] = muladd_##V(s_, w_[q_], acc_[r_][q_]);                \
            }                                                                           \
        }                                                                               \
        UNROLL for (int r_ = 0; r_ < MR; ++r_) {                                        \
            UNROLL for (int q_ = 0; q_ < NV - 1; ++q_) STORE(V, (C) + r_ * (ldc) + q_ * VL, acc_[r_][q_]); \
            if ((last) == VL) {                                                         \
                STORE(V, (C) + r_ * (ldc) + (NV - 1) * VL, acc_[r_][NV - 1]);           \
            } else {                                                                    \
                const V end_ = keep_##V(acc_[r_][NV - 1]);                              \
                memcpy((C) + r_ * (ldc) + (NV - 1) * VL, &end_, sizeof(*(C)) * (last)); \
            }                                                                           \
        }                                                                               \
    } while (0)

/* C[MR][NV vectors] += A[n rows][MR]^T . B[n rows][NV vectors]; with FETCH what lies `ahead` numbers behind each row
   of A is fetched, a row at a time: all at once they would hold up the loads of this tile. */
#define OUTER_TILE(V, VL, MR, NV, n, A, lda, B, ldb, C, ldc, FETCH, ahead, MEANWHILE)   \
    do {                                                                                \
        V acc_[MR][NV];                                                                 \
        UNROLL for (int m_ = 0; m_ < MR; ++m_) UNROLL for (int q_ = 0; q_ < NV; ++q_)   \
            acc_[m_][q_] = LOAD(V, (C) + m_ * (ldc) + q_ * VL);                         \
        const int fetch_ = (FETCH);                                                     \
        for (int64_t r_ = 0; r_ < (n); ++r_) {                                          \
            if (fetch_) __builtin_prefetch((A) + r_ * (lda) + (ahead));                 \
            NOW_AND_THEN(r_, MR * NV * VL, MEANWHILE);                                  \
            V b_[NV];                                                                   \
            UNROLL for (int q_ = 0; q_ < NV; ++q_) b_[q_] = LOAD(V, (B) + r_ * (ldb) + q_ * VL); \
            if (MR > 1) UNROLL for (int q_ = 0; q_ < NV; ++q_) b_[q_] = keep_##V(b_[q_]); \
            UNROLL for (int m_ = 0; m_ < MR; ++m_) {                                    \
                V s_ = SPLAT(V, (A)[r_ * (lda) + m_]);                                  \
                if (NV > 1) s_ = keep_##V(s_);                                          \
                UNROLL for (int q_ = 0; q_ < NV; ++q_)                                  \
                    acc_[m_][q_] = muladd_##V(s_, b_[q_], acc_[m_][q_]);                \
            }                                                                           \
        }                                                                               \
        UNROLL for (int m_ = 0; m_ < MR; ++m_) UNROLL for (int q_ = 0; q_ < NV; ++q_)   \
            STORE(V, (C) + m_ * (ldc) + q_ * VL, acc_[m_][q_]);                         \
    } while (0)
