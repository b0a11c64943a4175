/* pow for f32, through the exp and log of f64 in vector_math.h: |y log x| is at most 104 where the
   result is neither 0 nor infinite, so the error of the two is far below one ulp of f32.

   Special operands are those of C's pow: x^0 and 1^y are 1 whatever the other is, a negative x has
   powers for integers y alone, odd ones keep its sign. No branches: lanes have the bits of scalars.
   Subnormal operands may count as 0. */
#define VECTOR_POWER(T, U, same)                                                               \
    INLINE T nearest_##T(T x) { return (x + ROUND_f64) - ROUND_f64; }                          \
    INLINE T power_##T(T x, T y)                                                               \
    {                                                                                          \
        const T a = abs_##T(x), zero = (T){0}, one = SPLAT(T, 1), nan = SPLAT(T, NAN);         \
        /* every f32 from 2^24 on is an even number */                                         \
        const T b = at_most_##T(abs_##T(y), 0x1p24), half = b * 0.5;                           \
        const U whole = same(U, nearest_##T(b), b);                                            \
        const U odd = whole & ~same(U, nearest_##T(half), half);                               \
        const U negative = less_##T(x, zero) & less_##T(a, SPLAT(T, INFINITY));                \
        const T p = exp_##T(y * log_##T(a));                                                   \
        /* 1 to an infinite power, and -1 */                                                   \
        const T q = pick_##T(same(U, a, one) & same(U, y, y), one, p);                         \
        const T sign = real_##T(bits_##T(x) & odd);                                            \
        const T z = pick_##T(negative & ~whole & same(U, b, b), nan, with_sign_##T(q, sign));  \
        return pick_##T(same(U, y, zero) | same(U, x, one), one, z);                           \
    }
#define SAME_LANES(U, a, b) ((U)((a) == (b)))
#define SAME_SCALARS(U, a, b) (-(U)((a) == (b)))
VECTOR_POWER(f64, uint64_t, SAME_SCALARS)
VECTOR_POWER(f64x2, w64x2, SAME_LANES)
#if VECTOR_BYTES >= 32
VECTOR_POWER(f64x4, w64x4, SAME_LANES)
#endif
#if VECTOR_BYTES >= 64
VECTOR_POWER(f64x8, w64x8, SAME_LANES)
#endif

INLINE f32 pow_f32(f32 x, f32 y) { return (f32)power_f64(x, y); }
/* The numbers of T in a vector of doubles, or half of them at a time. */
#define POW_WHOLE(T, D)                                                                        \
    INLINE T pow_##T(T x, T y)                                                                 \
    {                                                                                          \
        const D p = power_##D(__builtin_convertvector(x, D), __builtin_convertvector(y, D));   \
        return __builtin_convertvector(p, T);                                                  \
    }
#define POW_HALVES(T, H)                                                                       \
    INLINE T pow_##T(T x, T y)                                                                 \
    {                                                                                          \
        H a[2], b[2];                                                                          \
        memcpy(a, &x, sizeof(x));                                                              \
        memcpy(b, &y, sizeof(y));                                                              \
        const H c[2] = {pow_##H(a[0], b[0]), pow_##H(a[1], b[1])};                             \
        T z;                                                                                   \
        memcpy(&z, c, sizeof(z));                                                              \
        return z;                                                                              \
    }
POW_WHOLE(f32x2, f64x2)
#if VECTOR_BYTES >= 32
POW_WHOLE(f32x4, f64x4)
#else
POW_HALVES(f32x4, f32x2)
#endif
#if VECTOR_BYTES >= 64
POW_WHOLE(f32x8, f64x8)
POW_HALVES(f32x16, f32x8)
#elif VECTOR_BYTES >= 32
POW_HALVES(f32x8, f32x4)
#endif
