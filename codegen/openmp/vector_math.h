/* Elementary functions on vectors and, by the same steps, on single numbers.

   VECTOR_MATH(T, U, e) makes every function for one type: T is a vector of e (f32 or f64) or e
   itself, U has unsigned lanes of the same width. No branches, tables or gathers: a number has the
   same bits in every lane of every width and by itself, be it the last of a row or one of sixteen.

   Errors are at most 2 ulp of the real function (tests/codegen/test_vector_math.py), with and
   without fused multiplication and addition. Infinities, NaN and signed zeros are those of C's
   library, for the others those of torch; softplus(x) is x above 20, as in torch. Subnormal
   operands may count as 0, and subnormal results may be 0, as they are in kernels.

   Methods. exp: Cody and Waite's reduction x = n ln 2 + r, a polynomial in r, n added to the
   exponent. log: the exponent taken off, then a polynomial in f (f32), or the series of atanh in
   s = f / (2 + f) (f64). expm1, log1p, sigmoid, tanh and softplus are sums around these two whose
   rounding errors are carried along (Dekker's fast two-sum; exact products are of half mantissas).
   erf and tanh have an odd polynomial near 0; 1 - erf is exp of a polynomial beyond it, and gelu's
   tail of the normal distribution is exp(-a^2 / 2) / (a + 4) by a polynomial in (a - 4) / (a + 4),
   the variable of Shepherd and Laframboise (Mathematics of Computation 36, 1981).

   Coefficients are minimax for the function's relative error: Remez' exchange with 60 digits
   (mpmath) on 400 Chebyshev points of the interval, then rounded to the type; the eight lowest up
   or down, whichever combination leaves the least error. */
typedef float f32;
typedef double f64;
#define WORDS(name, W, n)                                                                      \
    typedef W name __attribute__((vector_size(n * sizeof(W)), aligned(sizeof(W)), may_alias));
WORDS(w32x4, uint32_t, 4)
WORDS(w64x2, uint64_t, 2)
#if VECTOR_BYTES >= 32
WORDS(w32x8, uint32_t, 8)
WORDS(w64x4, uint64_t, 4)
#endif
#if VECTOR_BYTES >= 64
WORDS(w32x16, uint32_t, 16)
WORDS(w64x8, uint64_t, 8)
#endif

/* The format: mantissa bits, and as bits 1, the exponent's unit, the sign, a mask of the first half
   of a mantissa, and sqrt(1/2). */
#define MANTISSA_f32 23
#define MANTISSA_f64 52
#define ONE_f32 0x3f800000u
#define ONE_f64 0x3ff0000000000000u
#define UNIT_f32 0x800000u
#define UNIT_f64 0x10000000000000u
#define BIAS_f32 127
#define BIAS_f64 1023
#define SIGN_f32 0x80000000u
#define SIGN_f64 0x8000000000000000u
#define HALF_f32 0xfffff000u
#define HALF_f64 0xfffffffff8000000u
#define ROOT_f32 0x3f3504f3u
#define ROOT_f64 0x3fe6a09e667f3bcdu
/* 2^MANTISSA, whose mantissa holds an integer; adding half as much again rounds to an integer. */
#define INTEGER_f32 0x1p23f
#define INTEGER_f64 0x1p52
#define ROUND_f32 0x1.8p23f
#define ROUND_f64 0x1.8p52
#define LEAST_f32 0x1p-126f
#define LEAST_f64 0x1p-1022
#define BELOW_ONE_f32 0x1.fffffep-1f
#define BELOW_ONE_f64 0x1.fffffffffffffp-1
#define HUGE_f32 0x1.fffffep127f
#define HUGE_f64 0x1.fffffffffffffp1023
/* ln 2 in two parts; the first has so few bits that its products with exponents are exact. */
#define LOG2E_f32 0x1.715476p+0f
#define LOG2E_f64 0x1.71547652b82fep+0
#define LN2_HIGH_f32 0x1.62e4p-1f
#define LN2_HIGH_f64 0x1.62e42fefa3p-1
#define LN2_LOW_f32 0x1.7f7d1cp-20f
#define LN2_LOW_f64 0x1.3de6af278ece6p-42
/* From the first on and below the second exp is a normal number. */
#define EXP_FIRST_f32 (-0x1.5d589ep6f)
#define EXP_FIRST_f64 (-0x1.6232bdd7abcd2p9)
#define EXP_END_f32 0x1.62e43p6f
#define EXP_END_f64 0x1.62e42fefa39fp9
/* Beyond these expm1 is -1 (exp above), tanh and erf are 1, sigmoid is 0 or 1, and gelu and
   gelu_tanh are 0 or their argument. */
#define EXPM1_END_f32 (-20.0f)
#define EXPM1_END_f64 (-40.0)
#define TANH_END_f32 10.0f
#define TANH_END_f64 20.0
#define ERF_END_f32 4.0f
#define ERF_END_f64 6.0
#define SIGMOID_END_f32 110.0f
#define SIGMOID_END_f64 750.0
#define GELU_END_f32 14.5f
#define GELU_END_f64 39.0
#define GELU_TANH_END_f32 10.75f
#define GELU_TANH_END_f64 21.75
/* 2 sqrt(2 / pi) and its product with 0.044715, each in two parts, the first of half a mantissa. */
#define CUBIC_A_HIGH_f32 0x1.988p+0f
#define CUBIC_A_HIGH_f64 0x1.988453p+0
#define CUBIC_A_LOW_f32 0x1.14cf5p-14f
#define CUBIC_A_LOW_f64 0x1.ea1b284687e5ap-27
#define CUBIC_B_HIGH_f32 0x1.244p-4f
#define CUBIC_B_HIGH_f64 0x1.2444f28p-4
#define CUBIC_B_LOW_f32 0x1.3ca936p-18f
#define CUBIC_B_LOW_f64 0x1.26c5a57a4def1p-31
/* Keeps exponents of results near 0 in range until the last multiplication. */
#define EXCESS_f32 0x1p100f
#define EXCESS_f64 0x1p100
/* The first two coefficients of TAIL in half a mantissa; TAIL begins with what they lack. */
#define TAIL_A 0.75537109375f
#define TAIL_B (-0.60791015625f)

/* POLY(T, n, x, c0, .., c(n-1)) = c0 + c1 x + .. by Horner's rule. */
#define POLY(T, n, x, ...) POLY##n(T, x, __VA_ARGS__)
#define POLY2(T, x, a, b) muladd_##T(SPLAT(T, b), x, SPLAT(T, a))
#define POLY3(T, x, a, ...) muladd_##T(POLY2(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY4(T, x, a, ...) muladd_##T(POLY3(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY5(T, x, a, ...) muladd_##T(POLY4(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY6(T, x, a, ...) muladd_##T(POLY5(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY7(T, x, a, ...) muladd_##T(POLY6(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY8(T, x, a, ...) muladd_##T(POLY7(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY9(T, x, a, ...) muladd_##T(POLY8(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY10(T, x, a, ...) muladd_##T(POLY9(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY11(T, x, a, ...) muladd_##T(POLY10(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY12(T, x, a, ...) muladd_##T(POLY11(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY13(T, x, a, ...) muladd_##T(POLY12(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY14(T, x, a, ...) muladd_##T(POLY13(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY15(T, x, a, ...) muladd_##T(POLY14(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY16(T, x, a, ...) muladd_##T(POLY15(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY17(T, x, a, ...) muladd_##T(POLY16(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY18(T, x, a, ...) muladd_##T(POLY17(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY19(T, x, a, ...) muladd_##T(POLY18(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY20(T, x, a, ...) muladd_##T(POLY19(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY21(T, x, a, ...) muladd_##T(POLY20(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY22(T, x, a, ...) muladd_##T(POLY21(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define POLY23(T, x, a, ...) muladd_##T(POLY22(T, x, __VA_ARGS__), x, SPLAT(T, a))
#define EXP_f32(T, x)                                                                          \
    POLY(T, 5, x,                                                                              \
        0x1.fffffep-2f, 0x1.5554aep-3f, 0x1.55567ap-5f, 0x1.122994p-7f, 0x1.6bebacp-10f)
#define EXP_f64(T, x)                                                                          \
    POLY(T, 11, x,                                                                             \
        0x1p-1, 0x1.5555555555559p-3, 0x1.555555555553ep-5, 0x1.111111110f60bp-7,              \
        0x1.6c16c16c1f47fp-10, 0x1.a01a01b030f8bp-13, 0x1.a01a017af6f2dp-16,                   \
        0x1.71ddf77bf6ec3p-19, 0x1.27e537007ff56p-22, 0x1.af605eb4a9f73p-26,                   \
        0x1.1ee89c8c5ad9p-29)
#define LOG_f32(T, x)                                                                          \
    POLY(T, 9, x,                                                                              \
        -0x1.fffff8p-2f, 0x1.55555p-2f, -0x1.000426p-2f, 0x1.99a3f2p-3f, -0x1.54277p-3f,       \
        0x1.22719cp-3f, -0x1.0f375cp-3f, 0x1.084872p-3f, -0x1.38308p-4f)
#define LOG_f64(T, x)                                                                          \
    POLY(T, 7, x,                                                                              \
        0x1.555555555557ep-1, 0x1.99999999834dcp-2, 0x1.24924940ff7b8p-2, 0x1.c71c51806aeb5p-3,\
        0x1.74668ff3ad801p-3, 0x1.39955e2713211p-3, 0x1.2fa3913e943fep-3)
#define TANH_f32(T, x)                                                                         \
    POLY(T, 5, x,                                                                              \
        -0x1.55553ap-2f, 0x1.1107acp-3f, -0x1.b83a12p-5f, 0x1.51c5cp-6f, -0x1.733f2ap-8f)
#define TANH_f64(T, x)                                                                         \
    POLY(T, 12, x,                                                                             \
        -0x1.5555555555552p-2, 0x1.1111111110c38p-3, -0x1.ba1ba1b9d10a5p-5,                    \
        0x1.664f4870bef1fp-6, -0x1.226e32d0fc112p-7, 0x1.d6d35a9ee6b06p-9,                     \
        -0x1.7d9c39cf93993p-10, 0x1.350bca41d5818p-11, -0x1.f1168042d9f74p-13,                 \
        0x1.802789ba34a08p-14, -0x1.faf8249e06011p-16, 0x1.966137ed24c05p-18)
#define ERF_f32(T, x)                                                                          \
    POLY(T, 6, x,                                                                              \
        0x1.06eba8p-3f, -0x1.81272p-2f, 0x1.ce24fep-4f, -0x1.b734ccp-6f, 0x1.4b8686p-8f,       \
        -0x1.4d7252p-11f)
#define ERF_f64(T, x)                                                                          \
    POLY(T, 12, x,                                                                             \
        0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042ad3p-4,                     \
        -0x1.b82ce31281c16p-6, 0x1.565bcd0cefb8cp-8, -0x1.c02db3a124917p-11,                   \
        0x1.f9a317cfadf17p-14, -0x1.f4d0c4046113bp-17, 0x1.b9ca0f2aee629p-20,                  \
        -0x1.5e1c53968e52p-23, 0x1.e824447b2ba8fp-27, -0x1.e855bd4ee18e3p-31)
#define ERFC_f32(T, x)                                                                         \
    POLY(T, 7, x,                                                                              \
        -0x1.c48edep-14f, -0x1.20c78cp+0f, -0x1.45e9e6p-1f, -0x1.ac02f6p-4f, 0x1.70ae08p-6f,   \
        -0x1.980f82p-9f, 0x1.aa118ep-13f)
#define ERFC_f64(T, x)                                                                         \
    POLY(T, 19, x,                                                                             \
        -0x1.3b7872cfb9f2dp-25, -0x1.20dd6e663c641p+0, -0x1.45f3475faf993p-1,                  \
        -0x1.a4ef0e968e35p-4, 0x1.393b4b1eb45b1p-6, 0x1.cf82d2f59c512p-13,                     \
        -0x1.be0bc0a574023p-10, 0x1.30dc9c769c473p-11, -0x1.9cc5b6afd9cf5p-19,                 \
        -0x1.88a4482d1c15bp-14, 0x1.d0754e66887f4p-15, -0x1.525f30f9011eap-16,                 \
        0x1.66f08cfb44a5dp-18, -0x1.2011fd56433acp-20, 0x1.5d540052c02p-23,                    \
        -0x1.37ad66488d6dfp-26, 0x1.82f61c75181d3p-30, -0x1.2ad1c4a27a938p-34,                 \
        0x1.b052c524a113p-40)
#define TAIL_f32(T, x)                                                                         \
    POLY(T, 10, x,                                                                             \
        -0x1.688e32p-14f, 0x1.c5eb48p-17f, 0x1.8c6dbcp-2f, -0x1.7dff76p-3f, 0x1.eec658p-5f,    \
        -0x1.edbdbep-8f, -0x1.c8a904p-9f, 0x1.a3de3ep-10f, 0x1.269a44p-13f, -0x1.6eaa5ep-13f)
#define TAIL_f64(T, x)                                                                         \
    POLY(T, 22, x,                                                                             \
        -0x1.688e6d6464778p-14, 0x1.c576c3d73fbdap-17, 0x1.8c6dbf2cfc2cbp-2,                   \
        -0x1.7dff2bff67fd8p-3, 0x1.eec4cc3e49ea9p-5, -0x1.ee276105954eep-8,                    \
        -0x1.c81719cfb1151p-9, 0x1.ab82600aa3e9fp-10, 0x1.17a4a9516f192p-13,                   \
        -0x1.e4a43ae2342e2p-13, -0x1.0014890d226abp-19, 0x1.26d27bd20af2dp-15,                 \
        0x1.7fefa987ed71cp-21, -0x1.8d80a59f3f6a3p-18, -0x1.4f7e497846623p-21,                 \
        0x1.141e291e0f30cp-20, 0x1.198783ca4eee6p-22, -0x1.62d63d134aed4p-23,                  \
        -0x1.3b91aa3b539b3p-24, 0x1.7e30e1836e89ep-26, 0x1.82ff1bc6e8195p-27,                  \
        -0x1.32b87b35da0a4p-29)
#define GELU_f32(T, x)                                                                         \
    POLY(T, 4, x,                                                                              \
        0x1.988454p-2f, -0x1.1057c4p-4f, 0x1.46878cp-7f, -0x1.288e5p-10f)
#define GELU_f64(T, x)                                                                         \
    POLY(T, 8, x,                                                                              \
        0x1.9884533d43651p-2, -0x1.1058377e2cebcp-4, 0x1.46d0429763093p-7,                     \
        -0x1.37403f6589c3ap-10, 0x1.e42b075305133p-14, -0x1.3ce7600dca2b4p-17,                 \
        0x1.65102687f3625p-21, -0x1.4f2d3ca4a83dap-25)

/* Bits, and comparisons that give all ones or all zeros in a lane. */
#define VECTOR_BITS(T, U)                                                                      \
    INLINE U bits_##T(T x) { return (U)x; }                                                    \
    INLINE T real_##T(U i) { return (T)i; }                                                    \
    INLINE U less_##T(T a, T b) { return (U)(a < b); }
#define SCALAR_BITS(T, U)                                                                      \
    INLINE U bits_##T(T x) { U i; memcpy(&i, &x, sizeof(i)); return i; }                       \
    INLINE T real_##T(U i) { T x; memcpy(&x, &i, sizeof(x)); return x; }                       \
    INLINE U less_##T(T a, T b) { return -(U)(a < b); }
#define VECTOR_BASE(T, U, e)                                                                   \
    INLINE T pick_##T(U m, T a, T b)                                                           \
    {                                                                                          \
        return real_##T((bits_##T(a) & m) | (bits_##T(b) & ~m));                               \
    }                                                                                          \
    INLINE T abs_##T(T x) { return real_##T(bits_##T(x) & ~SIGN_##e); }                        \
    INLINE T with_sign_##T(T y, T x)                                                           \
    {                                                                                          \
        return real_##T(bits_##T(y) | (bits_##T(x) & SIGN_##e));                               \
    }                                                                                          \
    INLINE T first_half_##T(T x) { return real_##T(bits_##T(x) & HALF_##e); }                  \
    /* NaN goes through both */                                                                \
    INLINE T at_most_##T(T x, e top)                                                           \
    {                                                                                          \
        return pick_##T(less_##T(SPLAT(T, top), x), SPLAT(T, top), x);                         \
    }                                                                                          \
    INLINE T at_least_##T(T x, e low)                                                          \
    {                                                                                          \
        return pick_##T(less_##T(x, SPLAT(T, low)), SPLAT(T, low), x);                         \
    }

/* x + rest = n ln 2 + r + *lost; returns r, and in *n the integer n where the exponent lies. */
#define VECTOR_EXP(T, U, e)                                                                    \
    INLINE T reduce_##T(T x, T *lost, U *n)                                                    \
    {                                                                                          \
        const T low = SPLAT(T, -LN2_LOW_##e), high = SPLAT(T, -LN2_HIGH_##e);                  \
        const T t = muladd_##T(x, SPLAT(T, LOG2E_##e), SPLAT(T, ROUND_##e));                   \
        const T k = t - ROUND_##e, a = muladd_##T(k, high, x), r = muladd_##T(k, low, a);      \
        *lost = muladd_##T(k, low, a - r);                                                     \
        *n = bits_##T(t) << MANTISSA_##e;                                                      \
        return r;                                                                              \
    }                                                                                          \
    INLINE T reduce_sum_##T(T x, T rest, T *lost, U *n)                                        \
    {                                                                                          \
        const T t = muladd_##T(x + rest, SPLAT(T, LOG2E_##e), SPLAT(T, ROUND_##e));            \
        const T k = t - ROUND_##e, a = muladd_##T(k, SPLAT(T, -LN2_HIGH_##e), x);              \
        const T b = muladd_##T(k, SPLAT(T, -LN2_LOW_##e), rest), r = a + b;                    \
        *lost = (a - r) + b;                                                                   \
        *n = bits_##T(t) << MANTISSA_##e;                                                      \
        return r;                                                                              \
    }                                                                                          \
    /* exp(r + lost) - 1 for a reduced argument */                                             \
    INLINE T growth_##T(T r, T lost)                                                           \
    {                                                                                          \
        return r + muladd_##T(r * r, EXP_##e(T, r), lost);                                     \
    }                                                                                          \
    INLINE T exp_##T(T x)                                                                      \
    {                                                                                          \
        T lost;                                                                                \
        U n;                                                                                   \
        const T r = reduce_##T(x, &lost, &n), p = muladd_##T(r * r, EXP_##e(T, r), r) + 1;     \
        const T y = real_##T(bits_##T(p) + n);                                                 \
        const T ended = pick_##T(less_##T(x, SPLAT(T, EXP_END_##e)), y, x * HUGE_##e);         \
        return real_##T(bits_##T(ended) & ~less_##T(x, SPLAT(T, EXP_FIRST_##e)));              \
    }                                                                                          \
    /* 2^n q + (2^n - 1), and 2^n (1 + q) where n may be the exponent of infinity */           \
    INLINE T expm1_##T(T x)                                                                    \
    {                                                                                          \
        T lost;                                                                                \
        U n;                                                                                   \
        const T r = reduce_##T(at_least_##T(x, EXPM1_END_##e), &lost, &n);                     \
        const T q = growth_##T(r, lost), s = real_##T(n + ONE_##e), p = q + 1;                 \
        const T grown = real_##T(bits_##T(p) + n), over = x * HUGE_##e;                        \
        const T large = pick_##T(less_##T(x, SPLAT(T, EXP_END_##e)), grown, over);             \
        const U small = less_##T(x, SPLAT(T, -EXPM1_END_##e));                                 \
        return with_sign_##T(pick_##T(small, muladd_##T(q, s, s - 1), large), x);              \
    }

/* log(1 + f) - f for f + 1 between the roots of 1/2 and 2. */
#define LOG_REST_f32(T, f) ((f) * (f) * LOG_f32(T, f))
#define LOG_REST_f64(T, f)                                                                     \
    ({                                                                                         \
        const T s_ = (f) / ((f) + 2), z_ = s_ * s_, h_ = (f) * (f) * 0.5;                      \
        muladd_##T(s_, muladd_##T(z_, LOG_f64(T, z_), h_), -h_);                               \
    })
#define VECTOR_LOG(T, U, e)                                                                    \
    /* the exponent n of x as a number and 2^-n x - 1, between those roots */                  \
    INLINE T exponent_##T(T x)                                                                 \
    {                                                                                          \
        const U i = (bits_##T(x) - (ROOT_##e - ONE_##e)) >> MANTISSA_##e;                      \
        return real_##T(i | bits_##T(SPLAT(T, INTEGER_##e))) - (INTEGER_##e + BIAS_##e);       \
    }                                                                                          \
    INLINE T log_##T(T x)                                                                      \
    {                                                                                          \
        const U i = (bits_##T(x) - ROOT_##e) & (UNIT_##e - 1);                                 \
        const T n = exponent_##T(x), f = real_##T(i + ROOT_##e) - 1;                           \
        const T low = muladd_##T(n, SPLAT(T, LN2_LOW_##e), LOG_REST_##e(T, f));                \
        const T y = muladd_##T(n, SPLAT(T, LN2_HIGH_##e), f + low);                            \
        const T ended = pick_##T(less_##T(x, SPLAT(T, INFINITY)), y, x);                       \
        const T pole = SPLAT(T, -INFINITY), nan = SPLAT(T, NAN);                               \
        const T none = pick_##T(less_##T(SPLAT(T, -LEAST_##e), x), pole, nan);                 \
        return pick_##T(less_##T(x, SPLAT(T, LEAST_##e)), none, ended);                        \
    }                                                                                          \
    /* base + log(1 + x + rest); 1 + f = 2^-n (1 + x), in two steps as n is up to 1024 */      \
    INLINE T log1p_sum_##T(T base, T x, T rest)                                                \
    {                                                                                          \
        const T n = exponent_##T(x + 1);                                                       \
        const U up = bits_##T(SPLAT(T, 1)) - (bits_##T(n + ROUND_##e) << MANTISSA_##e);        \
        const T s = real_##T(up + 2 * UNIT_##e), g = s * (e)0.25 - 1, f = s * x * (e)0.25 + g; \
        const T lost = s * x * (e)0.25 - (f - g) + s * rest * (e)0.25;                         \
        const T low = LOG_REST_##e(T, f) + muladd_##T(n, SPLAT(T, LN2_LOW_##e), lost);         \
        return muladd_##T(n, SPLAT(T, LN2_HIGH_##e), base) + (f + low);                        \
    }                                                                                          \
    INLINE T log1p_##T(T x)                                                                    \
    {                                                                                          \
        const T y = log1p_sum_##T((T){0}, x, (T){0});                                          \
        const T pole = SPLAT(T, -INFINITY), nan = SPLAT(T, NAN);                               \
        const T none = pick_##T(less_##T(x, SPLAT(T, -1)), nan, pole);                         \
        const T ended = pick_##T(less_##T(x, SPLAT(T, INFINITY)), y, x);                       \
        const U out = less_##T(x, SPLAT(T, -BELOW_ONE_##e));                                   \
        return with_sign_##T(pick_##T(out, none, ended), x);                                   \
    }                                                                                          \
    /* max(x, 0) + log(1 + exp(-|x|)), and x above 20, as torch has it */                      \
    INLINE T softplus_##T(T x)                                                                 \
    {                                                                                          \
        T lost;                                                                                \
        U n;                                                                                   \
        const T least = SPLAT(T, EXP_FIRST_##e);                                               \
        const T r = reduce_##T(at_least_##T(-abs_##T(x), EXP_FIRST_##e), &lost, &n);           \
        const T q = growth_##T(r, lost), p = q + 1;                                            \
        const T power = real_##T(bits_##T(p) + n);                                             \
        const T rest = real_##T(n + ONE_##e) * (q - (p - 1));                                  \
        const T y = log1p_sum_##T(at_least_##T(x, 0), power, rest);                            \
        const T ended = pick_##T(less_##T(SPLAT(T, 20), x), x, y);                             \
        return real_##T(bits_##T(ended) & ~less_##T(x, least));                                \
    }

/* Functions of 1 / (1 + exp). */
#define VECTOR_SIGMOID(T, U, e)                                                                \
    /* num / (1 + exp(-v)), and where it falls num exp(-v) / (1 + exp(-v)), v = x + rest >= 0; n \
       has an excess, so that no step before the last one is subnormal. `careful` adds         \
       what the division rounds off. */                                                        \
    INLINE T logistic_##T(T num, T x, T rest, U falls, int careful)                            \
    {                                                                                          \
        T lost;                                                                                \
        U n;                                                                                   \
        const T r = reduce_sum_##T(-x, -rest, &lost, &n), q = growth_##T(r, lost);             \
        const T big = SPLAT(T, EXCESS_##e), s = real_##T(n + bits_##T(big));                   \
        const T sum = muladd_##T(s, q, s) * (1 / EXCESS_##e);                                  \
        const T d = sum + 1, rounded = sum - (d - 1);                                          \
        const T inverse = d * (e)-0.5 + (e)1.457, scale = pick_##T(falls, s, big);             \
        const T v = num / d, y = v * scale;                                                    \
        const T more = real_##T(bits_##T(q) & falls) - rounded * inverse;                      \
        if (!careful) return muladd_##T(y, more, y) * (1 / EXCESS_##e);                        \
        const T vh = first_half_##T(v), dh = first_half_##T(d);                                \
        const T left = ((num - vh * dh) - vh * (d - dh)) - (v - vh) * d;                       \
        return ((y * more + left * inverse * scale) + y) * (1 / EXCESS_##e);                   \
    }                                                                                          \
    INLINE T sigmoid_##T(T x)                                                                  \
    {                                                                                          \
        const T a = at_most_##T(abs_##T(x), SIGMOID_END_##e);                                  \
        return logistic_##T(SPLAT(T, 1), a, (T){0}, less_##T(x, (T){0}), 0);                   \
    }                                                                                          \
    /* x + x^3 P(x^2), or 1 - 2 exp(-2a) / (1 + exp(-2a)) */                                   \
    INLINE T tanh_##T(T x)                                                                     \
    {                                                                                          \
        const T a = abs_##T(x), z = x * x, all = SPLAT(T, 2);                                  \
        const T c = at_most_##T(a, TANH_END_##e);                                              \
        const T far = 1 - logistic_##T(all, c + c, (T){0}, less_##T((T){0}, all), 0);          \
        const T near = muladd_##T(x, z * TANH_##e(T, z), x);                                   \
        return with_sign_##T(pick_##T(less_##T(a, SPLAT(T, 0.625)), near, far), x);            \
    }                                                                                          \
    /* x / (1 + exp(-v)), v = x (A + B x^2) in two parts with far more bits than one has */    \
    INLINE T gelu_tanh_##T(T x)                                                                \
    {                                                                                          \
        const T a = abs_##T(x), c = at_most_##T(a, GELU_TANH_END_##e);                         \
        const T h = first_half_##T(c), hh = h * h, z = first_half_##T(hh);                     \
        const T z_rest = (hh - z) + (c - h) * (c + h);                                         \
        const T sum = z * CUBIC_B_HIGH_##e + CUBIC_A_HIGH_##e, w = first_half_##T(sum);        \
        const T rounded = z * CUBIC_B_HIGH_##e - (sum - CUBIC_A_HIGH_##e);                     \
        const T low = z_rest * CUBIC_B_HIGH_##e + (c * c * CUBIC_B_LOW_##e + CUBIC_A_LOW_##e); \
        const T w_rest = (sum - w) + (rounded + low);                                          \
        const T v = h * w, v_rest = c * w_rest + (c - h) * w;                                  \
        const T y = logistic_##T(with_sign_##T(c, x), v, v_rest, less_##T(x, (T){0}), 1);      \
        const T ended = pick_##T(less_##T(x, (T){0}), x * 0, x);                               \
        const U out = less_##T(SPLAT(T, GELU_TANH_END_##e), a);                                \
        return with_sign_##T(pick_##T(out, ended, y), x);                                      \
    }

/* The error function, and the tail of the normal distribution. */
#define VECTOR_ERF(T, U, e)                                                                    \
    INLINE T erf_##T(T x)                                                                      \
    {                                                                                          \
        T lost;                                                                                \
        U n;                                                                                   \
        const T a = abs_##T(x), z = x * x, c = at_most_##T(a, ERF_END_##e);                    \
        const T r = reduce_##T(ERFC_##e(T, c), &lost, &n);                                     \
        const T p = muladd_##T(r * r, EXP_##e(T, r), r) + 1;                                   \
        const T far = muladd_##T(-p, real_##T(n + ONE_##e), SPLAT(T, 1));                      \
        const T near = x * (ERF_##e(T, z) + 1);                                                \
        return pick_##T(less_##T(a, SPLAT(T, 0.84375)), near, with_sign_##T(far, x));          \
    }                                                                                          \
    /* x / 2 + x^2 P(x^2) near 0; else x Q(a) for x < 0 and x (1 - Q(a)) for x > 0, Q the tail \
       of the normal distribution at a = |x|, exp(-a^2 / 2) C(t) / (a + 4), t = (a - 4) / (a + 4). \
       1 / (a + 4) = w + w lost, w of half a mantissa; so are c in C = c + c_rest, mh in m. */ \
    INLINE T gelu_##T(T x)                                                                     \
    {                                                                                          \
        T missed;                                                                              \
        U n;                                                                                   \
        const T a = at_most_##T(abs_##T(x), GELU_END_##e), h = first_half_##T(a);              \
        const T square = h * h * (e)-0.5, square_rest = (a - h) * (a + h) * (e)-0.5;           \
        const T r = reduce_sum_##T(square, square_rest, &missed, &n);                          \
        const T q = growth_##T(r, missed);                                                     \
        const T d = a + 4, dh = first_half_##T(d), w = first_half_##T(1 / d);                  \
        const T miss = ((1 - w * dh) - w * (d - dh)) - w * (a - (d - 4));                      \
        const T lost = miss * miss + miss;                                                     \
        const T th = 1 - w * 8, t_rest = w * lost * -8, t = th + t_rest;                       \
        const T line = th * TAIL_B + TAIL_A, line_rest = th * TAIL_B - (line - TAIL_A);        \
        const T curve = TAIL_##e(T, t) + (t_rest * TAIL_B + line_rest);                        \
        const T sum = line + curve, c = first_half_##T(sum), c_rest = (line - c) + curve;      \
        const T wc = w * c, rest = w * (sum * lost + c_rest);                                  \
        const T small = SPLAT(T, 1 / EXCESS_##e), one = SPLAT(T, 1);                           \
        const T s = real_##T(n + bits_##T(SPLAT(T, EXCESS_##e)));                              \
        const T head = s * wc, more = s * ((wc + rest) * q + rest);                            \
        const T tail = head + more, tail_rest = more - (tail - head);                          \
        const U falls = less_##T(x, (T){0});                                                   \
        const T m = pick_##T(falls, tail, one - tail * small), mh = first_half_##T(m);         \
        const T m_rest = (m - mh) + real_##T(bits_##T(tail_rest) & falls);                     \
        const T xh = first_half_##T(x), scaled = xh * mh + ((x - xh) * mh + x * m_rest);       \
        const T far = scaled * pick_##T(falls, small, one), xx = x * x;                        \
        const T near = xx * GELU_##e(T, xx) + x * (e)0.5;                                      \
        const T y = pick_##T(less_##T(a, SPLAT(T, 0.5)), near, far);                           \
        const T ended = pick_##T(falls, x * 0, x);                                             \
        const U out = less_##T(SPLAT(T, GELU_END_##e), abs_##T(x));                            \
        return with_sign_##T(pick_##T(out, ended, y), x);                                      \
    }

#define VECTOR_MATH(T, U, e)                                                                   \
    VECTOR_BASE(T, U, e) VECTOR_EXP(T, U, e) VECTOR_LOG(T, U, e)                               \
    VECTOR_SIGMOID(T, U, e) VECTOR_ERF(T, U, e)
#define VECTORS(T, U, e) VECTOR_BITS(T, U) VECTOR_MATH(T, U, e)
#define SCALARS(T, U) SCALAR_BITS(T, U) VECTOR_MATH(T, U, T)
SCALARS(f32, uint32_t)
SCALARS(f64, uint64_t)
VECTORS(f32x4, w32x4, f32)
VECTORS(f64x2, w64x2, f64)
#if VECTOR_BYTES >= 32
VECTORS(f32x8, w32x8, f32)
VECTORS(f64x4, w64x4, f64)
#endif
#if VECTOR_BYTES >= 64
VECTORS(f32x16, w32x16, f32)
VECTORS(f64x8, w64x8, f64)
#endif

/* Two numbers of f32 are computed among four. */
#define PAIR(f)                                                                                \
    INLINE f32x2 f##_f32x2(f32x2 x)                                                            \
    {                                                                                          \
        const f32x4 y = f##_f32x4((f32x4){x[0], x[1], x[0], x[1]});                            \
        return (f32x2){y[0], y[1]};                                                            \
    }
PAIR(abs) PAIR(exp) PAIR(expm1) PAIR(log) PAIR(log1p) PAIR(softplus)
PAIR(sigmoid) PAIR(tanh) PAIR(gelu_tanh) PAIR(erf) PAIR(gelu)
