/* Functions of single numbers that C's library lacks, or has under other names, for texts of C99 and
   of CUDA C++; their meanings are those of dialects/pointwise. Who includes this has defined FUNCTION,
   the specifiers of each, and has the fixed-width integers and C's mathematical functions. */

/* Functions of C's library under the names that the vocabulary calls. */
#define LIBRARY(fn)                           \
    FUNCTION float fn##_f32(float x) { return fn##f(x); } \
    FUNCTION double fn##_f64(double x) { return fn(x); }
LIBRARY(exp)
LIBRARY(expm1)
LIBRARY(log)
LIBRARY(log1p)
LIBRARY(tanh)
LIBRARY(erf)
FUNCTION float pow_f32(float x, float y) { return powf(x, y); }

/* Those that it lacks. NaN goes through. */
FUNCTION double sigmoid_f64(double x)
{
    const double e = exp(-fabs(x)); /* at most 1: no overflow on either side */
    return (x >= 0 ? 1 : e) / (1 + e);
}
FUNCTION double softplus_f64(double x)
{
    return x > 20 ? x : (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}
FUNCTION double gelu_f64(double x) { return 0.5 * x * erfc(-x * sqrt(0.5)); }
FUNCTION double gelu_tanh_f64(double x)
{
    const double root = 0.79788456080286535588; /* of 2 / pi */
    return x * sigmoid_f64(2 * root * (x + 0.044715 * x * x * x));
}

#define SCALAR_FUNCTIONS(T, s)                                                             \
    FUNCTION T sign##s(T x) { return (T)((x > 0) - (x < 0)); }                             \
    FUNCTION T greater##s(T a, T b) { return a != a || a > b ? a : b; }                    \
    FUNCTION T less##s(T a, T b) { return a != a || a < b ? a : b; }
#define LERP(T, s)                                                                         \
    FUNCTION T lerp##s(T a, T b, T w)                                                      \
    {                                                                                      \
        return w >= (T)0.5 || w <= (T)-0.5 ? b + (w - 1) * (b - a) : a + w * (b - a);      \
    }
SCALAR_FUNCTIONS(float, f)
SCALAR_FUNCTIONS(double, )
SCALAR_FUNCTIONS(int64_t, i)
LERP(float, f)
LERP(double, )

#ifndef __CUDACC__ /* CUDA has erfinv and erfinvf of its own */
/* The number y with erf y = x: Winitzki's first guess, then two of Halley's steps. Near 1 the rest
   to 1 is what is exact. */
FUNCTION double erfinv(double x)
{
    const double half_root_of_pi = 0.88622692545275801365;
    const double a = fabs(x), rest = 1 - a, w = -log1p(-a * a);
    if (!(a < 1)) return a == 1 ? x * INFINITY : NAN;
    const double t = 0.63661977236758134308 / 0.147 - w / 2, q = w / 0.147; /* 2 / pi */
    double y = sqrt(q / (sqrt(t * t + q) + t));
    for (int step = 0; step < 2; ++step) {
        const double miss = a < 0.5 ? erf(y) - a : rest - erfc(y);
        const double u = miss * half_root_of_pi * exp(y * y);
        y -= u / (1 + y * u);
    }
    return copysign(y, x);
}
FUNCTION float erfinvf(float x) { return (float)erfinv(x); }
#endif

/* Rounded down; dividing by 0 gives 0, and the least number by -1 itself, where C has a trap. */
FUNCTION int64_t floordivi(int64_t a, int64_t b)
{
    if (b == 0) return 0;
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    const int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
FUNCTION int64_t resti(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) return 0;
    const int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* Philox4x32-10 as in dialects/meaning/philox.py: the numbers that decide over four entries, from
   column 4 block on. */
typedef struct {
    uint32_t w0, w1, w2, w3; /* no array: GPUs have no registers for one that takes an index */
} PhiloxWords;
FUNCTION PhiloxWords philox_words(uint32_t block, int64_t row, uint32_t site, int64_t key)
{
    uint32_t c0 = block, c1 = (uint32_t)row, c2 = (uint32_t)((uint64_t)row >> 32), c3 = site;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)((uint64_t)key >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const PhiloxWords words = {c0, c1, c2, c3};
    return words;
}
/* That which decides over one entry. */
FUNCTION uint32_t philox(uint32_t column, int64_t row, uint32_t site, int64_t key)
{
    const PhiloxWords w = philox_words(column / 4, row, site, key);
    const uint32_t low = column % 2 ? w.w1 : w.w0, high = column % 2 ? w.w3 : w.w2;
    return column % 4 < 2 ? low : high;
}
#define DROPOUT(T, s)                                                                      \
    FUNCTION T dropout_by##s(T x, uint32_t word, double p)                                 \
    {                                                                                      \
        const uint64_t least = (uint64_t)ceil(p * 4294967296.0);                           \
        return word >= least ? x * (T)(1.0 / (1.0 - p)) : 0;                               \
    }                                                                                      \
    FUNCTION T dropout##s(T x, int64_t column, int64_t row, uint32_t site, int64_t key, double p) \
    {                                                                                      \
        return dropout_by##s(x, philox((uint32_t)column, row, site, key), p);              \
    }
DROPOUT(float, f)
DROPOUT(double, )
