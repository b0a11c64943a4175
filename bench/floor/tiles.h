/* What programs written by hand share: vectors of VECTOR_BYTES, products in register tiles, and exp. VECTOR_BYTES is
   defined in front of this text. */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE__
#include <immintrin.h>
#endif

/* gnnc compiles without, for its own code says where it wants a product and a sum in one instruction */
#pragma GCC optimize("fp-contract=fast")

typedef float vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
enum { LANES = VECTOR_BYTES / 4 };

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")
#define VEC(p) (*(vec *)(p))
#define CVEC(p) (*(const vec *)(p))
#define PADDED(n) (((n) + LANES - 1) / LANES * LANES)

enum {
    PANEL = 4, /* vectors of a row of the result that one register tile holds */
    TILE_VECTORS = VECTOR_BYTES == 64 ? 24 : 12,
};

/* ---------------------------------------------------------------- single vectors */

INLINE vec splat(float x) { return x - (vec){0}; }
INLINE vec choice(ints mask, vec a, vec b) { return (vec)(((ints)a & mask) | ((ints)b & ~mask)); }
INLINE vec where(ints mask, vec a) { return (vec)((ints)a & mask); }
/* one instruction, which GCC does not make of a choice */
#if defined(__AVX512F__) && VECTOR_BYTES == 64
INLINE vec greater(vec a, vec b) { return _mm512_max_ps(a, b); }
INLINE vec lesser(vec a, vec b) { return _mm512_min_ps(a, b); }
#else
INLINE vec greater(vec a, vec b) { return choice(a > b, a, b); }
INLINE vec lesser(vec a, vec b) { return choice(a < b, a, b); }
#endif

/* exp for x <= 0: 2^n times the series of exp on [-ln 2 / 2, ln 2 / 2], which its eighth term leaves 5e-9 off */
INLINE vec exponential(vec x)
{
    const vec least = splat(-87.0f), round = splat(12582912.0f); /* 3 * 2^22: adding it leaves an integer */
    x = greater(x, least);
    const vec shifted = x * 1.44269504f + round, n = shifted - round;
    const vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f; /* ln 2 in two parts */
    vec p = splat(1.0f / 5040);
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return (vec)((ints)p + (((ints)shifted - (ints)round) << 23));
}

/* v with its lanes moved round by a constant */
INLINE vec turned(vec v, int by)
{
    ints lane;
    UNROLL for (int l = 0; l < LANES; ++l) lane[l] = (l + by) % LANES;
    return __builtin_shuffle(v, lane);
}

INLINE float lanes_max(vec v)
{
    UNROLL for (int by = LANES / 2; by > 0; by /= 2) v = greater(v, turned(v, by));
    return v[0];
}

INLINE float lanes_sum(vec v)
{
    UNROLL for (int by = LANES / 2; by > 0; by /= 2) v += turned(v, by);
    return v[0];
}

/* ---------------------------------------------------------------- register tiles */

/* Y[rows][nv vectors] = X[rows][k] . W[k][ldw]; R rows at a time, nv is a constant of at most PANEL. Where `ahead`,
   rows of X further down are fetched meanwhile: a first product reads them from memory. */
INLINE void product_rows(
    int R, int nv, int k, const float *X, int ldx, const float *W, int ldw, float *Y, int ldy, int ahead)
{
    vec sum[12][PANEL];
    UNROLL for (int r = 0; r < R; ++r) UNROLL for (int q = 0; q < nv; ++q) sum[r][q] = (vec){0};
    for (int line = 0; line < k; line += 16) {
        if (ahead) UNROLL for (int r = 0; r < R; ++r) __builtin_prefetch(X + (int64_t)(r + 2 * R) * ldx + line);
        for (int j = line; j < line + 16 && j < k; ++j) {
            vec w[PANEL];
            UNROLL for (int q = 0; q < nv; ++q) w[q] = CVEC(W + (int64_t)j * ldw + q * LANES);
            UNROLL for (int r = 0; r < R; ++r) {
                const float x = X[(int64_t)r * ldx + j];
                UNROLL for (int q = 0; q < nv; ++q) sum[r][q] += x * w[q];
            }
        }
    }
    UNROLL for (int r = 0; r < R; ++r)
        UNROLL for (int q = 0; q < nv; ++q) VEC(Y + (int64_t)r * ldy + q * LANES) = sum[r][q];
}

INLINE void product_panel(
    int rows, int nv, int k, const float *X, int ldx, const float *W, int ldw, float *Y, int ldy, int ahead)
{
    const int R = TILE_VECTORS / nv > 12 ? 12 : TILE_VECTORS / nv;
    int r = 0;
    for (; r + R <= rows; r += R)
        product_rows(R, nv, k, X + (int64_t)r * ldx, ldx, W, ldw, Y + (int64_t)r * ldy, ldy, ahead);
    for (; r < rows; ++r) product_rows(1, nv, k, X + (int64_t)r * ldx, ldx, W, ldw, Y + (int64_t)r * ldy, ldy, 0);
}

/* Y[rows][width] = X[rows][k] . W[k][width]; width is a constant, a multiple of LANES */
INLINE void product(int rows, int k, int width, const float *X, int ldx, const float *W, float *Y, int ahead)
{
    const int vectors = width / LANES, rest = vectors % PANEL;
    int q = 0;
    for (; q + PANEL <= vectors; q += PANEL)
        product_panel(rows, PANEL, k, X, ldx, W + q * LANES, width, Y + q * LANES, width, ahead && q == 0);
    if (rest) product_panel(rows, rest, k, X, ldx, W + q * LANES, width, Y + q * LANES, width, ahead && q == 0);
}

/* D[M rows][nv vectors] += X[rows][M]^T . G[rows][nv vectors] */
INLINE void outer_rows(int M, int nv, int rows, const float *X, int ldx, const float *G, int ldg, float *D)
{
    vec sum[8][PANEL];
    UNROLL for (int m = 0; m < M; ++m) UNROLL for (int q = 0; q < nv; ++q) sum[m][q] = CVEC(D + m * ldg + q * LANES);
    for (int r = 0; r < rows; ++r) {
        vec g[PANEL];
        UNROLL for (int q = 0; q < nv; ++q) g[q] = CVEC(G + (int64_t)r * ldg + q * LANES);
        UNROLL for (int m = 0; m < M; ++m) {
            const float x = X[(int64_t)r * ldx + m];
            UNROLL for (int q = 0; q < nv; ++q) sum[m][q] += x * g[q];
        }
    }
    UNROLL for (int m = 0; m < M; ++m) UNROLL for (int q = 0; q < nv; ++q) VEC(D + m * ldg + q * LANES) = sum[m][q];
}

INLINE void outer_panel(int k, int nv, int rows, const float *X, int ldx, const float *G, int ldg, float *D)
{
    const int most = TILE_VECTORS / nv > 8 ? 8 : TILE_VECTORS / nv;
    const int M = k % most && k % 4 == 0 && most > 4 ? 4 : most; /* four and no rest: it is slow */
    int m = 0;
    for (; m + M <= k; m += M) outer_rows(M, nv, rows, X + m, ldx, G, ldg, D + m * ldg);
    for (; m < k; ++m) outer_rows(1, nv, rows, X + m, ldx, G, ldg, D + m * ldg);
}

/* D[k][width] += X[rows][k]^T . G[rows][width] */
INLINE void outer(int k, int width, int rows, const float *X, int ldx, const float *G, float *D)
{
    const int vectors = width / LANES, rest = vectors % PANEL;
    int q = 0;
    for (; q + PANEL <= vectors; q += PANEL)
        outer_panel(k, PANEL, rows, X, ldx, G + q * LANES, width, D + q * LANES);
    if (rest) outer_panel(k, rest, rows, X, ldx, G + q * LANES, width, D + q * LANES);
}
