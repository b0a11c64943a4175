
/* What machines do with lanes and C's operators do not say. */

/* a where a > b (a < b), else b, also where one of them is NaN: what x86's instructions give. */
#define ORDERED(T, M)                                                                   \
    INLINE T above_##T(T a, T b) { return SELECT(T, M, a > b, a, b); }                  \
    INLINE T below_##T(T a, T b) { return SELECT(T, M, a < b, a, b); }
#define ORDERED_BY(T, greater, less)                                                    \
    INLINE T above_##T(T a, T b) { return greater(a, b); }                              \
    INLINE T below_##T(T a, T b) { return less(a, b); }
#define ORDERED_BY_BITS(T, greater, less) /* of all lanes, rounded as usual */          \
    INLINE T above_##T(T a, T b) { return greater(a, b, (T){0}, -1, 4); }               \
    INLINE T below_##T(T a, T b) { return less(a, b, (T){0}, -1, 4); }
ORDERED(f32x2, m32x2)
#if defined(__SSE2__)
ORDERED_BY(f32x4, __builtin_ia32_maxps, __builtin_ia32_minps)
ORDERED_BY(f64x2, __builtin_ia32_maxpd, __builtin_ia32_minpd)
#else
ORDERED(f32x4, m32x4)
ORDERED(f64x2, m64x2)
#endif
#if VECTOR_BYTES >= 32 && defined(__AVX__)
ORDERED_BY(f32x8, __builtin_ia32_maxps256, __builtin_ia32_minps256)
ORDERED_BY(f64x4, __builtin_ia32_maxpd256, __builtin_ia32_minpd256)
#elif VECTOR_BYTES >= 32
ORDERED(f32x8, m32x8)
ORDERED(f64x4, m64x4)
#endif
#if VECTOR_BYTES >= 64 && defined(__AVX512F__) && !defined(__clang__)
ORDERED_BY_BITS(f32x16, __builtin_ia32_maxps512_mask, __builtin_ia32_minps512_mask)
ORDERED_BY_BITS(f64x8, __builtin_ia32_maxpd512_mask, __builtin_ia32_minpd512_mask)
#elif VECTOR_BYTES >= 64
ORDERED(f32x16, m32x16)
ORDERED(f64x8, m64x8)
#endif

/* A vector of the lanes of another one that are named, as often as they are. GCC goes through memory
   where the result is four times as long; half of that on the way keeps it in registers. */
#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define SPREAD(T, v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#endif
#endif
#ifndef SPREAD
#define SPREAD(T, v, ...)                                                               \
    ({                                                                                  \
        const int of_[] = {__VA_ARGS__};                                                \
        T y_;                                                                           \
        for (int l_ = 0; l_ < (int)(sizeof(of_) / sizeof(int)); ++l_) y_[l_] = (v)[of_[l_]]; \
        y_;                                                                             \
    })
#endif
