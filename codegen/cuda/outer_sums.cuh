/* Sums of outer products of rows: gradients of weights. One tile of rows after the other is added. */

namespace tiles {
/* How the B x K x F sums of a block lie in registers: micro tiles of tk x tf, `count` a thread. */
struct MicroTiles {
    int tk, tf, count;
};
template <class T>
static constexpr __host__ __device__ MicroTiles micro_tiles(int threads, int b, int k, int f)
{
    MicroTiles best = {0, 0, 0};
    for (int tk = 8; tk; tk /= 2) {
        for (int tf = 4; tf; tf /= 2) {
            const int count = parts(b * parts(k, tk) * parts(f, tf), threads);
            const int cost = count * (tk * tf + tk + tf);
            const int best_cost = best.count * (best.tk * best.tf + best.tk + best.tf);
            if (count * tk * tf <= Slab<T>::SUMS && (!best.count || cost < best_cost))
                best = {tk, tf, count};
        }
    }
    return best;
}

/* sums[i][j] += a[i] c[j] of `rows` rows of a slab. */
template <int TK, int TF, class T>
static __device__ __forceinline__ void
add_outer(T (&sums)[TK][TF], const T *a, int a_pitch, const T *c, int c_pitch, int rows)
{
#pragma unroll 4
    for (int m = 0; m < rows; ++m) {
        T as[TK], cs[TF];
        load(as, a + m * a_pitch);
        load(cs, c + m * c_pitch);
#pragma unroll
        for (int i = 0; i < TK; ++i)
#pragma unroll
            for (int j = 0; j < TF; ++j) sums[i][j] += as[i] * cs[j];
    }
}

/* sum[b SB + k SK + f SF] of all a[r][l][b][k] c[r][l][b][f] that `add` got, for one block: clear,
   add tile after tile, store. Each sum belongs to one thread. Sums are in registers where a thread
   has 192 bytes of them or less, else in `far`, B K F numbers of this block that lie [b][k][f].
   Rows of a are AP numbers apart, of c CP; they may lie anywhere. The caller has a barrier between
   the writes of a and c and `add`; the slab is free after `add`. */
template <class T, int THREADS, int ROWS, int L, int B, int K, int F, int AP, int CP,
          bool FAR = ((long long)B * K * F > Slab<T>::SUMS * THREADS)>
struct OuterTile;

template <class T, int THREADS, int ROWS, int L, int B, int K, int F, int AP, int CP>
struct OuterTile<T, THREADS, ROWS, L, B, K, F, AP, CP, false> {
    static constexpr MicroTiles MICRO = micro_tiles<T>(THREADS, B, K, F);
    static constexpr int TK = MICRO.tk, TF = MICRO.tf, COUNT = MICRO.count;
    static constexpr int NK = parts(K, TK), NF = parts(F, TF), A = B * NK * TK, C = B * NF * TF;
    /* Rows of the slab. So long ones that it has none are read where they lie. */
    static constexpr int DEPTH = least(ROWS * L, (Slab<T>::NUMBERS - Slab<T>::PACK) / (A + C));
    static constexpr bool STAGED = DEPTH >= least(ROWS * L, 4);
    static constexpr int LEFT = rounded(DEPTH * A, Slab<T>::PACK);
    static constexpr int SLAB = STAGED ? LEFT + DEPTH * C : 0, FAR_NUMBERS = 0;
    T sums[COUNT][TK][TF];

    /* Calls body(b, k, f, sum) for each sum of this thread. */
    template <class Body> __device__ __forceinline__ void each(Body body)
    {
#pragma unroll
        for (int q = 0; q < COUNT; ++q) {
            const int tile = threadIdx.x + q * THREADS;
            const int b = tile / (NK * NF), k = tile / NF % NK * TK, f = tile % NF * TF;
#pragma unroll
            for (int i = 0; i < TK; ++i)
#pragma unroll
                for (int j = 0; j < TF; ++j)
                    if (b < B && k + i < K && f + j < F) body(b, k + i, f + j, sums[q][i][j]);
        }
    }
    __device__ __forceinline__ void clear(T *)
    {
#pragma unroll
        for (int q = 0; q < COUNT; ++q)
#pragma unroll
            for (int i = 0; i < TK; ++i)
#pragma unroll
                for (int j = 0; j < TF; ++j) sums[q][i][j] = 0;
    }
    __device__ __forceinline__ void add(int rows, const T *a, const T *c, T *slab, T *)
    {
        if constexpr (STAGED) add_staged(rows * L, a, c, slab);
        else add_rows(rows * L, a, c);
    }
    __device__ __forceinline__ void add_staged(int end, const T *a, const T *c, T *slab)
    {
#pragma unroll 1
        for (int m0 = 0; m0 < end; m0 += DEPTH) {
            stage_rows<THREADS, DEPTH, A, A, NK * TK, K, L, B * K, AP>(slab, a, m0, end, 0, K);
            T *const right = slab + LEFT;
            stage_rows<THREADS, DEPTH, C, C, NF * TF, F, L, B * F, CP>(right, c, m0, end, 0, F);
            __syncthreads();
#pragma unroll
            for (int q = 0; q < COUNT; ++q) {
                const int tile = threadIdx.x + q * THREADS;
                const int row = tile / NF, b = row / NK; /* row: b NK + k / TK */
                const T *const as = slab + row * TK, *const cs = right + (b * NF + tile % NF) * TF;
                if (b < B) add_outer(sums[q], as, A, cs, C, least(DEPTH, end - m0));
            }
            __syncthreads();
        }
    }
    __device__ __forceinline__ void add_rows(int end, const T *a, const T *c)
    {
#pragma unroll 1
        for (int m = 0; m < end; ++m) {
            const T *const as = a + m / L * AP + m % L * B * K;
            const T *const cs = c + m / L * CP + m % L * B * F;
            each([&](int b, int k, int f, T &sum) { sum += as[b * K + k] * cs[b * F + f]; });
        }
    }
    template <int SB, int SK, int SF> __device__ __forceinline__ void store(T *to, const T *)
    {
        each([&](int b, int k, int f, T &sum) { to[b * SB + k * SK + f * SF] = sum; });
    }
};

template <class T, int THREADS, int ROWS, int L, int B, int K, int F, int AP, int CP>
struct OuterTile<T, THREADS, ROWS, L, B, K, F, AP, CP, true> {
    static constexpr Cut CUT = best_cut<T>(THREADS, K, F, ROWS * L);
    static constexpr int TK = CUT.tm, TF = CUT.tn, TY = CUT.ty, TX = CUT.tx;
    static constexpr int BK = TY * TK, BF = TX * TF, NK = parts(K, BK), NF = parts(F, BF);
    static constexpr int DEPTH = least(ROWS * L, (Slab<T>::NUMBERS - Slab<T>::PACK) / (BK + BF));
    static constexpr int LEFT = rounded(DEPTH * BK, Slab<T>::PACK);
    static constexpr int SLAB = LEFT + DEPTH * BF, FAR_NUMBERS = B * K * F;

    /* Calls body(b, k, f, far number) for each sum of this thread in a tile. */
    template <class Body>
    static __device__ __forceinline__ void each_of(int tile, T *far, Body body)
    {
        const int b = tile / (NK * NF), ty = threadIdx.x / TX;
        const int k = tile / NF % NK * BK + ty * TK, f = tile % NF * BF + threadIdx.x % TX * TF;
        if (ty >= TY) return;
#pragma unroll
        for (int i = 0; i < TK; ++i)
#pragma unroll
            for (int j = 0; j < TF; ++j)
                if (k + i < K && f + j < F)
                    body(b, i, j, k + i, f + j, far[((size_t)b * K + k + i) * F + f + j]);
    }
    __device__ __forceinline__ void clear(T *far)
    {
#pragma unroll 1
        for (int tile = 0; tile < B * NK * NF; ++tile)
            each_of(tile, far, [](int, int, int, int, int, T &sum) { sum = 0; });
    }
    __device__ __forceinline__ void add(int rows, const T *a, const T *c, T *slab, T *far)
    {
        const int end = rows * L, ty = threadIdx.x / TX, tx = threadIdx.x % TX;
        T *const right = slab + LEFT;
#pragma unroll 1
        for (int tile = 0; tile < B * NK * NF; ++tile) {
            const int b = tile / (NK * NF), k0 = tile / NF % NK * BK, f0 = tile % NF * BF;
            T sums[TK][TF] = {};
#pragma unroll 1
            for (int m0 = 0; m0 < end; m0 += DEPTH) {
                stage_rows<THREADS, DEPTH, BK, BK, BK, 0, L, B * K, AP>(
                    slab, a, m0, end, b * K + k0, K - k0);
                stage_rows<THREADS, DEPTH, BF, BF, BF, 0, L, B * F, CP>(
                    right, c, m0, end, b * F + f0, F - f0);
                __syncthreads();
                if (ty < TY)
                    add_outer(sums, slab + ty * TK, BK, right + tx * TF, BF, least(DEPTH, end - m0));
                __syncthreads();
            }
            each_of(tile, far, [&](int, int i, int j, int, int, T &sum) { sum += sums[i][j]; });
        }
    }
    template <int SB, int SK, int SF> __device__ __forceinline__ void store(T *to, T *far)
    {
#pragma unroll 1
        for (int tile = 0; tile < B * NK * NF; ++tile)
            each_of(tile, far, [&](int b, int, int, int k, int f, T &sum) {
                to[(size_t)b * SB + (size_t)k * SK + (size_t)f * SF] = sum;
            });
    }
};
} // namespace tiles
using tiles::OuterTile;
