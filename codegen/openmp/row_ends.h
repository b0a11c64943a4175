
/* The last vector of a row that does not fill it: its first n lanes are read and written, and nothing behind them. The
   other lanes are 0 when read. n is a constant, more than half of the lanes and fewer than all. */
#define LOAD_SOME(T, n, p) load_some_##T(p, n)
#define STORE_SOME(T, n, p, v) store_some_##T(p, v, n)

/* -1 in the first n of k lanes, else 0. */
#define FIRST(M, k, n) ((M){LANES_TO_##k} < (n))
#define LANES_TO_2 0, 1
#define LANES_TO_4 LANES_TO_2, 2, 3
#define LANES_TO_8 LANES_TO_4, 4, 5, 6, 7
#define LANES_TO_16 LANES_TO_8, 8, 9, 10, 11, 12, 13, 14, 15

/* Number by number, for sanitizers and for vectors that are longer than the machine's. */
#define SOME_BY_NUMBER(T, E)                                                            \
    INLINE T load_some_##T(const E *p, int n)                                           \
    {                                                                                   \
        T v = {0};                                                                      \
        for (int l = 0; l < n; ++l) v[l] = p[l];                                        \
        return v;                                                                       \
    }                                                                                   \
    INLINE void store_some_##T(E *p, T v, int n)                                        \
    {                                                                                   \
        for (int l = 0; l < n; ++l) p[l] = v[l];                                        \
    }
/* AVX-512 has masks of a bit a lane. */
#define SOME_BY_BITS(T, E, read, write)                                                 \
    INLINE T load_some_##T(const E *p, int n)                                           \
    {                                                                                   \
        return read((const void *)p, (T){0}, (1 << n) - 1);                             \
    }                                                                                   \
    INLINE void store_some_##T(E *p, T v, int n) { write((void *)p, v, (1 << n) - 1); }
/* AVX has masks of a lane's sign. Its masked stores take some machines many cycles, so halves and
   quarters are stored instead. */
#define SOME_BY_SIGNS(T, M, k, S, E, read)                                              \
    INLINE T load_some_##T(const E *p, int n)                                           \
    {                                                                                   \
        typedef S lanes __attribute__((vector_size(sizeof(T))));                        \
        return read((const void *)p, (lanes)FIRST(M, k, n));                            \
    }                                                                                   \
    INLINE void store_some_##T(E *p, T v, int n) { store_first_##T(p, v, n); }
#define STORE_FIRST_PAIR(T, E)                                                          \
    INLINE void store_first_##T(E *p, T v, int n)                                       \
    {                                                                                   \
        if (n == 2) STORE(T, p, v);                                                     \
        if (n == 1) p[0] = v[0];                                                        \
    }
#define STORE_FIRST(T, H, E)                                                            \
    INLINE void store_first_##T(E *p, T v, int n)                                       \
    {                                                                                   \
        enum { HALF = sizeof(H) / sizeof(E) };                                          \
        const H a = low_##T(v), b = high_##T(v);                                        \
        if (n >= HALF) STORE(H, p, a);                                                  \
        store_first_##H(n >= HALF ? p + HALF : p, n >= HALF ? b : a, n % HALF);         \
    }

/* The address sanitizer does not see what builtins read and write. */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif

#if defined(__AVX512VL__) && !defined(SANITIZED)
SOME_BY_BITS(f32x4, float, __builtin_ia32_loadups128_mask, __builtin_ia32_storeups128_mask)
#if VECTOR_BYTES >= 32
SOME_BY_BITS(f32x8, float, __builtin_ia32_loadups256_mask, __builtin_ia32_storeups256_mask)
SOME_BY_BITS(f64x4, double, __builtin_ia32_loadupd256_mask, __builtin_ia32_storeupd256_mask)
#endif
#elif defined(__AVX__) && !defined(SANITIZED)
STORE_FIRST_PAIR(f32x2, float)
STORE_FIRST(f32x4, f32x2, float)
SOME_BY_SIGNS(f32x4, m32x4, 4, int, float, __builtin_ia32_maskloadps)
#if VECTOR_BYTES >= 32
STORE_FIRST_PAIR(f64x2, double)
STORE_FIRST(f32x8, f32x4, float)
STORE_FIRST(f64x4, f64x2, double)
SOME_BY_SIGNS(f32x8, m32x8, 8, int, float, __builtin_ia32_maskloadps256)
SOME_BY_SIGNS(f64x4, m64x4, 4, long long, double, __builtin_ia32_maskloadpd256)
#endif
#else
SOME_BY_NUMBER(f32x4, float)
#if VECTOR_BYTES >= 32
SOME_BY_NUMBER(f32x8, float)
SOME_BY_NUMBER(f64x4, double)
#endif
#endif
#if VECTOR_BYTES >= 64 && defined(__AVX512F__) && !defined(SANITIZED)
SOME_BY_BITS(f32x16, float, __builtin_ia32_loadups512_mask, __builtin_ia32_storeups512_mask)
SOME_BY_BITS(f64x8, double, __builtin_ia32_loadupd512_mask, __builtin_ia32_storeupd512_mask)
#elif VECTOR_BYTES >= 64
SOME_BY_NUMBER(f32x16, float)
SOME_BY_NUMBER(f64x8, double)
#endif
