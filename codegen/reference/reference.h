/* What the printed loops call: C99 and its library alone. Meanings are those of dialects/pointwise. */
/* GCC 12 makes wrong vectors of two loops of choices in a row (-O3 -march=x86-64-v3 with
   -fno-trapping-math), and nothing here needs any. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")
#endif
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* With GNNC_PROFILE every phase adds the seconds of its steps to an array that it exports. */
#ifdef GNNC_PROFILE
#define LAPS(phase, kernels) double gnnc_##phase##_seconds[kernels];
#define START_LAPS clock_t start_ = clock(); (void)start_
#define LAP(phase, k)                                                          \
    do {                                                                       \
        const clock_t now_ = clock();                                          \
        gnnc_##phase##_seconds[k] += (double)(now_ - start_) / CLOCKS_PER_SEC; \
        start_ = now_;                                                         \
    } while (0)
#else
#define LAPS(phase, kernels)
#define START_LAPS (void)0
#define LAP(phase, k) (void)0
#endif

static const double TWO_OVER_PI = 0.63661977236758134308, PI = 3.14159265358979323846;

/* Functions of C's library under the names that the vocabulary calls. */
#define LIBRARY(fn)                                         \
    static inline float fn##_f32(float x) { return fn##f(x); } \
    static inline double fn##_f64(double x) { return fn(x); }
LIBRARY(exp)
LIBRARY(expm1)
LIBRARY(log)
LIBRARY(log1p)
LIBRARY(tanh)
LIBRARY(erf)
static inline float pow_f32(float x, float y) { return powf(x, y); }

/* Those that it lacks. NaN goes through. */
static inline double sigmoid_f64(double x)
{
    const double e = exp(-fabs(x)); /* at most 1: no overflow on either side */
    return (x >= 0 ? 1 : e) / (1 + e);
}
static inline double softplus_f64(double x)
{
    return x > 20 ? x : (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}
static inline double gelu_f64(double x) { return 0.5 * x * erfc(-x * sqrt(0.5)); }
static inline double gelu_tanh_f64(double x)
{
    return x * sigmoid_f64(2 * sqrt(TWO_OVER_PI) * (x + 0.044715 * x * x * x));
}
static inline float sigmoid_f32(float x) { return (float)sigmoid_f64(x); }
static inline float softplus_f32(float x) { return (float)softplus_f64(x); }
static inline float gelu_f32(float x) { return (float)gelu_f64(x); }
static inline float gelu_tanh_f32(float x) { return (float)gelu_tanh_f64(x); }

#define SCALAR_FUNCTIONS(T, s)                                                             \
    static inline T sign##s(T x) { return (T)((x > 0) - (x < 0)); }                        \
    static inline T greater##s(T a, T b) { return a != a || a > b ? a : b; }               \
    static inline T less##s(T a, T b) { return a != a || a < b ? a : b; }
#define LERP(T, s)                                                                         \
    static inline T lerp##s(T a, T b, T w)                                                 \
    {                                                                                      \
        return w >= (T)0.5 || w <= (T)-0.5 ? b + (w - 1) * (b - a) : a + w * (b - a);      \
    }
SCALAR_FUNCTIONS(float, f)
SCALAR_FUNCTIONS(double, )
SCALAR_FUNCTIONS(int64_t, i)
LERP(float, f)
LERP(double, )

/* The number y with erf y = x: Winitzki's first guess, then two of Halley's steps. Near 1 the rest
   to 1 is what is exact. */
static inline double erfinv(double x)
{
    const double a = fabs(x), rest = 1 - a, w = -log1p(-a * a);
    if (!(a < 1)) return a == 1 ? x * INFINITY : NAN;
    const double t = TWO_OVER_PI / 0.147 - w / 2, q = w / 0.147;
    double y = sqrt(q / (sqrt(t * t + q) + t));
    for (int step = 0; step < 2; ++step) {
        const double miss = a < 0.5 ? erf(y) - a : rest - erfc(y);
        const double u = miss * (sqrt(PI) / 2) * exp(y * y);
        y -= u / (1 + y * u);
    }
    return copysign(y, x);
}
static inline float erfinvf(float x) { return (float)erfinv(x); }

/* Rounded down; dividing by 0 gives 0, and the least number by -1 itself, where C has a trap. */
static inline int64_t floordivi(int64_t a, int64_t b)
{
    if (b == 0) return 0;
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    const int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
static inline int64_t resti(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) return 0;
    const int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* Philox4x32-10 as in dialects/meaning/philox.py: the number that decides over one entry. */
static inline uint32_t philox(uint32_t column, int64_t row, uint32_t site, int64_t key)
{
    uint32_t c[4] = {column / 4, (uint32_t)row, (uint32_t)((uint64_t)row >> 32), site};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)((uint64_t)key >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        const uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1,
                                  (uint32_t)(p0 >> 32) ^ c[3] ^ k1, (uint32_t)p0};
        memcpy(c, next, sizeof(c));
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c[column % 4];
}
#define DROPOUT(T, s)                                                                      \
    static inline T dropout##s(T x, int64_t column, int64_t row, uint32_t site, int64_t key, double p) \
    {                                                                                      \
        const int kept = philox((uint32_t)column, row, site, key) >= ceil(p * 4294967296.0); \
        return kept ? x * (T)(1.0 / (1.0 - p)) : 0;                                        \
    }
DROPOUT(float, f)
DROPOUT(double, )
