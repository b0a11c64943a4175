/* Random numbers as a function of what they are for: Philox4x32-10 (J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy
 * as 1, 2, 3", SC 2011), a block cipher on a counter of four words under a key of two. Nothing is drawn in turns, so the number of threads and
 * the order in which nodes are visited change no number.
 *
 * The key of a stream is made of (seed, epoch, step, layer, use) by one block; within a stream the counter is (block of draws, node, root,
 * attempt), and a block serves four draws. `root` is 0 where a node has one set of draws a layer, else 1 + the node whose own graph it is in. */
#include <math.h>
#include <stdint.h>

typedef struct {
    uint32_t k0, k1;
} stream;

#define PHILOX_ROUND(a, b, c, d, k0, k1)                                   \
    do {                                                                   \
        uint64_t p_ = (uint64_t)0xD2511F53u * a, q_ = (uint64_t)0xCD9E8D57u * c; \
        a = (uint32_t)(q_ >> 32) ^ b ^ k0;                                 \
        b = (uint32_t)q_;                                                  \
        c = (uint32_t)(p_ >> 32) ^ d ^ k1;                                 \
        d = (uint32_t)p_;                                                  \
        k0 += 0x9E3779B9u;                                                 \
        k1 += 0xBB67AE85u;                                                 \
    } while (0)
/* Spelled out, for the compiler computes several blocks at once only where it sees no inner loop. */
#define PHILOX(a, b, c, d, k0, k1)          \
    do {                                    \
        PHILOX_ROUND(a, b, c, d, k0, k1);   \
        PHILOX_ROUND(a, b, c, d, k0, k1);   \
        PHILOX_ROUND(a, b, c, d, k0, k1);   \
        PHILOX_ROUND(a, b, c, d, k0, k1);   \
        PHILOX_ROUND(a, b, c, d, k0, k1);   \
        PHILOX_ROUND(a, b, c, d, k0, k1);   \
        PHILOX_ROUND(a, b, c, d, k0, k1);   \
        PHILOX_ROUND(a, b, c, d, k0, k1);   \
        PHILOX_ROUND(a, b, c, d, k0, k1);   \
        PHILOX_ROUND(a, b, c, d, k0, k1);   \
    } while (0)

/* One block, in place. */
static void philox(stream s, uint32_t c[4]) {
    uint32_t a = c[0], b = c[1], e = c[2], f = c[3];
    PHILOX(a, b, e, f, s.k0, s.k1);
    c[0] = a, c[1] = b, c[2] = e, c[3] = f;
}

/* n blocks with counters (c0[i], c1[i], c2[i], 0); word w of block i goes to out[w * n + i]. */
static void philox_many(stream s, const uint32_t *restrict c0, const uint32_t *restrict c1, const uint32_t *restrict c2, int64_t n,
                        uint32_t *restrict out) {
    uint32_t *restrict o0 = out, *restrict o1 = out + n, *restrict o2 = out + 2 * n, *restrict o3 = out + 3 * n;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        uint32_t a = c0[i], b = c1[i], c = c2[i], d = 0, k0 = s.k0, k1 = s.k1;
        PHILOX(a, b, c, d, k0, k1);
        o0[i] = a, o1[i] = b, o2[i] = c, o3[i] = d;
    }
}

/* What a stream is for; streams of one layer differ in it. Relations of a graph count on from FIRST_RELATION. */
enum { USE_WALK = 1, USE_NEGATIVE = 2, USE_LABOR = 3, FIRST_RELATION = 16 };

static stream stream_of(uint64_t seed, uint32_t epoch, uint64_t step, uint32_t layer, uint32_t use) {
    stream s = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t c[4] = {(uint32_t)step, (uint32_t)(step >> 32), epoch, layer << 20 | use};
    philox(s, c);
    return (stream){c[0], c[1]};
}

/* The word of draw t, again, after `attempt` that were of no use. */
static uint32_t redraw(stream s, uint32_t t, uint32_t node, uint32_t root, uint32_t attempt) {
    uint32_t c[4] = {t >> 2, node, root, attempt};
    philox(s, c);
    return c[t & 3];
}

/* An integer in [0, n), n > 0, each with exactly the same probability, of draw t, whose first word is `word` (D. Lemire, "Fast random integer
 * generation in an interval", 2019: of the products word * n those are refused that would make some results more frequent). */
static inline uint32_t below(uint32_t n, uint32_t word, stream s, uint32_t t, uint32_t node, uint32_t root) {
    uint64_t product = (uint64_t)word * n;
    if (__builtin_expect((uint32_t)product < n, 0)) {
        uint32_t refused = -n % n;
        for (uint32_t attempt = 1; (uint32_t)product < refused; attempt++) product = (uint64_t)redraw(s, t, node, root, attempt) * n;
    }
    return (uint32_t)(product >> 32);
}

/* A number in (0, 1) of two words, a multiple of 2^-53 and a half. */
static inline double unit(uint32_t high, uint32_t low) {
    uint64_t bits = ((uint64_t)high << 32 | low) >> 12;
    return ((double)bits + 0.5) * 0x1p-52;
}
