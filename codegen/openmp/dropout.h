
/* Counter-based dropout with Philox4x32-10, bit for bit the function of dialects/meaning/philox.py. A 32-bit word lies in
   a 64-bit lane, so that a round is two vector multiplications; the words of one block end up side by side. */
typedef uint64_t words __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t halves __attribute__((vector_size(VECTOR_BYTES)));
enum { LANES_OF_WORDS = VECTOR_BYTES / 8 };
/* The product of the low halves of the lanes, which is one instruction where the compiler can be told. */
INLINE words times(words a, words b)
{
#if VECTOR_BYTES == 64 && defined(__AVX512F__) && !defined(__clang__)
    typedef long long lanes __attribute__((vector_size(64)));
    return (words)__builtin_ia32_pmuludq512_mask((halves)a, (halves)b, (lanes){0}, 255);
#elif VECTOR_BYTES == 32 && defined(__AVX2__) && !defined(__clang__)
    return (words)__builtin_ia32_pmuludq256((halves)a, (halves)b);
#elif VECTOR_BYTES == 16 && defined(__SSE2__) && !defined(__clang__)
    return (words)__builtin_ia32_pmuludq128((halves)a, (halves)b);
#else
    const words none = {0}, low = none + 0xFFFFFFFFu;
    return (a & low) * (b & low);
#endif
}
/* The ten rounds, on `groups` vectors of blocks. */
INLINE void philox_rounds(int groups, words *c0, words *c1, words *c2, words *c3, int64_t key)
{
    const words none = {0}, low = none + 0xFFFFFFFFu;
    words k0 = none + ((uint64_t)key & 0xFFFFFFFFu), k1 = none + ((uint64_t)key >> 32);
    for (int round = 0; round < 10; ++round) {
        UNROLL for (int q = 0; q < groups; ++q) {
            const words p0 = times(none + 0xD2511F53u, c0[q]), p1 = times(none + 0xCD9E8D57u, c2[q]);
            c0[q] = (p1 >> 32) ^ c1[q] ^ k0;
            c1[q] = p1 & low;
            c2[q] = (p0 >> 32) ^ c3[q] ^ k1;
            c3[q] = p0 & low;
        }
        k0 = (k0 + 0x9E3779B9u) & low;
        k1 = (k1 + 0xBB67AE85u) & low;
    }
}
/* The words of `groups` vectors of blocks, from block `first` on. */
INLINE void philox(int groups, uint32_t *restrict out, uint32_t first, int64_t row, uint32_t site, int64_t key)
{
    const words none = {0};
    words c0[4], c1[4], c2[4], c3[4];
    UNROLL for (int q = 0; q < groups; ++q) {
        for (int j = 0; j < LANES_OF_WORDS; ++j) c0[q][j] = first + (uint32_t)(q * LANES_OF_WORDS + j);
        c1[q] = none + ((uint64_t)row & 0xFFFFFFFFu);
        c2[q] = none + ((uint64_t)row >> 32);
        c3[q] = none + site;
    }
    philox_rounds(groups, c0, c1, c2, c3, key);
    UNROLL for (int q = 0; q < groups; ++q) {
        const words first_two = c0[q] | c1[q] << 32, last_two = c2[q] | c3[q] << 32;
        uint64_t even[LANES_OF_WORDS], odd[LANES_OF_WORDS], both[2 * LANES_OF_WORDS];
        memcpy(even, &first_two, sizeof(even));
        memcpy(odd, &last_two, sizeof(odd));
        for (int j = 0; j < LANES_OF_WORDS; ++j) {
            both[2 * j] = even[j];
            both[2 * j + 1] = odd[j];
        }
        memcpy(out + q * 4 * LANES_OF_WORDS, both, sizeof(both));
    }
}
/* Narrow rows need few words; in wide ones several vectors hide the latency of the multiplications. */
#define PHILOX(groups)                                                                           \
    static __attribute__((noinline, unused)) void philox##groups(uint32_t *out, uint32_t first, int64_t row, uint32_t site, int64_t key) \
    {                                                                                            \
        philox(groups, out, first, row, site, key);                                              \
    }
PHILOX(1)
PHILOX(2)
PHILOX(4)
#define DROPOUT(T, s, I)                                                                         \
    static __attribute__((unused)) void dropout##s(T *restrict y, const T *restrict x, int n, int64_t key, uint32_t site, int64_t row, double p) \
    {                                                                                            \
        const double threshold = ceil(p * 4294967296.0);                                         \
        if (threshold > 4294967295.0) {                                                          \
            memset(y, 0, sizeof(T) * n);                                                         \
            return;                                                                              \
        }                                                                                        \
        const uint32_t least = (uint32_t)threshold;                                              \
        const T scale = (T)(1.0 / (1.0 - p));                                                    \
        enum { GROUP = 4 * LANES_OF_WORDS };                                                     \
        uint32_t u[4 * GROUP];                                                                   \
        for (int f = 0, m; f < n; f += m) {                                                      \
            const int groups = n - f > 2 * GROUP ? 4 : n - f > GROUP ? 2 : 1;                    \
            (groups == 4 ? philox4 : groups == 2 ? philox2 : philox1)(u, (uint32_t)f / 4, row, site, key); \
            m = n - f < groups * GROUP ? n - f : groups * GROUP;                                 \
            for (int k = 0; k < m; ++k) { /* a choice by bits: GCC may make no vectors of branches */ \
                const T kept = x[f + k] * scale;                                                 \
                I bits;                                                                          \
                memcpy(&bits, &kept, sizeof(T));                                                 \
                bits &= -(I)(u[k] >= least);                                                     \
                memcpy(y + f + k, &bits, sizeof(T));                                             \
            }                                                                                    \
        }                                                                                        \
    }
DROPOUT(float, f, int32_t)
DROPOUT(double, , int64_t)
/* Dropout of single numbers of several rows, a lane each. */
#define DROPOUT_LANES(T, M, E, I)                                                                \
    static __attribute__((unused)) T dropout_##T(T x, const int64_t *rows, int64_t key, uint32_t site, double p) \
    {                                                                                            \
        enum { N = VECTOR_BYTES / sizeof(E), GROUPS = N / LANES_OF_WORDS };                      \
        const words none = {0};                                                                  \
        const uint64_t least = (uint64_t)ceil(p * 4294967296.0);                                 \
        words c0[GROUPS], c1[GROUPS], c2[GROUPS], c3[GROUPS];                                    \
        UNROLL for (int q = 0; q < GROUPS; ++q) {                                                \
            const words row = LOAD(words, rows + q * LANES_OF_WORDS);                            \
            c0[q] = none;                                                                        \
            c1[q] = row & (none + 0xFFFFFFFFu);                                                  \
            c2[q] = row >> 32;                                                                   \
            c3[q] = none + site;                                                                 \
        }                                                                                        \
        philox_rounds(GROUPS, c0, c1, c2, c3, key);                                              \
        M kept;                                                                                  \
        for (int l = 0; l < (int)N; ++l) kept[l] = -(I)(c0[l / LANES_OF_WORDS][l % LANES_OF_WORDS] >= least); \
        return SELECT(T, M, kept, x * (E)(1.0 / (1.0 - p)), (T){0});                             \
    }
#if VECTOR_BYTES == 64
DROPOUT_LANES(f32x16, m32x16, float, int32_t)
DROPOUT_LANES(f64x8, m64x8, double, int64_t)
#elif VECTOR_BYTES == 32
DROPOUT_LANES(f32x8, m32x8, float, int32_t)
DROPOUT_LANES(f64x4, m64x4, double, int64_t)
#else
DROPOUT_LANES(f32x4, m32x4, float, int32_t)
DROPOUT_LANES(f64x2, m64x2, double, int64_t)
#endif
/* The word of one entry. */
INLINE uint32_t philox_at(uint32_t column, int64_t row, uint32_t site, int64_t key)
{
    uint32_t c0 = column / 4, c1 = (uint32_t)row, c2 = (uint32_t)((uint64_t)row >> 32), c3 = site;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)((uint64_t)key >> 32);
    UNROLL for (int round = 0; round < 10; ++round) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    /* choices by bits, as above */
    const uint32_t odd = -(column & 1), late = -(column >> 1 & 1);
    const uint32_t low = c0 ^ ((c0 ^ c1) & odd), high = c2 ^ ((c2 ^ c3) & odd);
    return low ^ ((low ^ high) & late);
}
#define DROPOUT_AT(T, s, I)                                                                      \
    INLINE T dropout_at##s(T x, int64_t key, uint32_t site, int64_t row, int64_t column, double p) \
    {                                                                                            \
        const uint64_t least = (uint64_t)ceil(p * 4294967296.0);                                 \
        T kept = x * (T)(1.0 / (1.0 - p));                                                       \
        I bits;                                                                                  \
        memcpy(&bits, &kept, sizeof(T));                                                         \
        bits &= -(I)(philox_at((uint32_t)column, row, site, key) >= least);                      \
        memcpy(&kept, &bits, sizeof(T));                                                         \
        return kept;                                                                             \
    }
DROPOUT_AT(float, f, int32_t)
DROPOUT_AT(double, , int64_t)
