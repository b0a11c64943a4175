
/* Truth values: a byte each in memory, a lane-wide integer (0 or -1) in registers. */
typedef uint8_t u8x2 __attribute__((vector_size(2), aligned(1), may_alias));
typedef uint8_t u8x4 __attribute__((vector_size(4), aligned(1), may_alias));
typedef uint8_t u8x8 __attribute__((vector_size(8), aligned(1), may_alias));
typedef uint8_t u8x16 __attribute__((vector_size(16), aligned(1), may_alias));

/* The first n bytes of a vector, more than half of it, as two words of half its length that overlap
   in memory: nothing behind them is read or written. */
#define SOME_BYTES(B, W, H)                                                             \
    INLINE B load_some_##B(const uint8_t *p, int n)                                     \
    {                                                                                   \
        H low, high;                                                                    \
        memcpy(&low, p, sizeof(H));                                                     \
        memcpy(&high, p + n - sizeof(H), sizeof(H));                                    \
        const W all = (W)high << (n - sizeof(H)) * 8 | low;                             \
        B v;                                                                            \
        memcpy(&v, &all, sizeof(v));                                                    \
        return v;                                                                       \
    }                                                                                   \
    INLINE void store_some_##B(uint8_t *p, B v, int n)                                  \
    {                                                                                   \
        W all;                                                                          \
        memcpy(&all, &v, sizeof(v));                                                    \
        const H low = (H)all, high = (H)(all >> (n - sizeof(H)) * 8);                   \
        memcpy(p, &low, sizeof(H));                                                     \
        memcpy(p + n - sizeof(H), &high, sizeof(H));                                    \
    }
SOME_BYTES(u8x4, uint32_t, uint16_t)
SOME_BYTES(u8x8, uint64_t, uint32_t)
#if VECTOR_BYTES >= 64
typedef uint64_t byte_words __attribute__((vector_size(16)));
INLINE u8x16 load_some_u8x16(const uint8_t *p, int n)
{
    uint64_t low, high;
    memcpy(&low, p, 8);
    memcpy(&high, p + n - 8, 8);
    return (u8x16)(byte_words){low, high >> (16 - n) * 8};
}
INLINE void store_some_u8x16(uint8_t *p, u8x16 v, int n)
{
    const byte_words all = (byte_words)v;
    const uint64_t low = all[0], high = all[1] << (16 - n) * 8 | low >> (n - 8) * 8;
    memcpy(p, &low, 8);
    memcpy(p + n - 8, &high, 8);
}
#endif

/* A byte in every lane, for which GCC 12 takes them out one by one unless it is told. */
#define WIDE(M, B) INLINE M wide_##M(B v) { return __builtin_convertvector(v, M); }
WIDE(m32x2, u8x2)
WIDE(m64x2, u8x2)
#if defined(__AVX2__) && !defined(__clang__)
#define WIDE_BY(M, B, W, convert, ...)                                                  \
    INLINE M wide_##M(B v)                                                              \
    {                                                                                   \
        typedef W words __attribute__((vector_size(16)));                               \
        typedef char bytes __attribute__((vector_size(16)));                            \
        words all = {0};                                                                \
        memcpy(&all, &v, sizeof(v));                                                    \
        return (M)convert((bytes)all __VA_ARGS__);                                      \
    }
#else
#define WIDE_BY(M, B, W, ...) WIDE(M, B)
#endif
WIDE_BY(m32x4, u8x4, int, __builtin_ia32_pmovzxbd128)
#if VECTOR_BYTES >= 32
WIDE_BY(m32x8, u8x8, long long, __builtin_ia32_pmovzxbd256)
WIDE_BY(m64x4, u8x4, int, __builtin_ia32_pmovzxbq256)
#endif
#if VECTOR_BYTES >= 64 && defined(__AVX512F__)
WIDE_BY(m32x16, u8x16, long long, __builtin_ia32_pmovzxbd512_mask, , (int __attribute__((vector_size(64)))){0}, -1)
WIDE_BY(m64x8, u8x8, long long, __builtin_ia32_pmovzxbq512_mask, , (long long __attribute__((vector_size(64)))){0}, -1)
#elif VECTOR_BYTES >= 64
WIDE(m32x16, u8x16)
WIDE(m64x8, u8x8)
#endif

#define LOAD_MASK(M, B, p) (wide_##M(LOAD(B, p)) != (M){0})
#define STORE_MASK(B, p, m) STORE(B, p, __builtin_convertvector((m) & 1, B))
#define LOAD_SOME_MASK(M, B, n, p) (wide_##M(load_some_##B(p, n)) != (M){0})
#define STORE_SOME_MASK(B, n, p, m) store_some_##B(p, __builtin_convertvector((m) & 1, B), n)
