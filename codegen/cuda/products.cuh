/* Products of tiles of a block, for kernels whose threads are all in .x. All threads call these with
   equal arguments. Sums run in order and each belongs to one thread: the result does not depend on
   when threads run. Operands go through a slab of shared memory (16 KB or less, 16-byte aligned),
   zeros in the place of what lies beyond their ends; each thread sums a micro tile in registers. */

namespace tiles {
template <class T, int N> struct alignas(N * sizeof(T)) Pack { /* numbers that move together */
    T v[N];
};
template <class T> struct Slab {
    static constexpr int PACK = 16 / sizeof(T), NUMBERS = 16384 / sizeof(T);
    static constexpr int SUMS = 192 / sizeof(T); /* of a thread, in registers */
};

static constexpr __host__ __device__ int least(int a, int b) { return a < b ? a : b; }
static constexpr __host__ __device__ int most(int a, int b) { return a > b ? a : b; }
static constexpr __host__ __device__ int parts(int n, int size) { return (n + size - 1) / size; }
static constexpr __host__ __device__ int rounded(int n, int step) { return parts(n, step) * step; }
static constexpr __host__ __device__ int power_above(int n)
{
    int p = 1;
    while (p < n) p *= 2;
    return p;
}

/* N numbers from a place that is aligned for the packs that they are. */
template <int N, class T> static __device__ __forceinline__ void load(T (&to)[N], const T *from)
{
    constexpr int P = least(N, Slab<T>::PACK);
#pragma unroll
    for (int i = 0; i < N; i += P) {
        const Pack<T, P> pack = *(const Pack<T, P> *)(from + i);
#pragma unroll
        for (int j = 0; j < P; ++j) to[i + j] = pack.v[j];
    }
}

/* ---- How M x N sums of products are cut: micro tiles of tm x tn, ty x tx of them at once. */
struct Cut {
    int tm, tn, ty, tx, depth; /* products that a slab holds for each of the ty tm x tx tn sums */
};

/* Numbers from a row of the left operand to the next, in a slab: their banks are different. */
template <class T> static constexpr __host__ __device__ int row_pitch(int depth)
{
    return depth > Slab<T>::PACK ? depth + Slab<T>::PACK : depth;
}
/* The greatest depth with which rows x columns fit, 0 if none does. */
template <class T>
static constexpr __host__ __device__ int slab_depth(int rows, int columns, int products)
{
    int depth = least(32, power_above(products));
    const int enough = least(power_above(products), 32 / (int)sizeof(T));
    while (depth >= enough) {
        const int left = rounded(rows * row_pitch<T>(depth), Slab<T>::PACK);
        /* the right operand's rows may be a pack longer (matmul_tile) */
        if (left + depth * (columns + Slab<T>::PACK) <= Slab<T>::NUMBERS) return depth;
        depth /= 2;
    }
    return 0;
}
/* The cut that takes the least of multiplications, reads of a slab, and numbers put there. */
template <class T>
static constexpr __host__ __device__ Cut best_cut(int threads, int m, int n, int products)
{
    Cut best = {0, 0, 0, 0, 0};
    long long least_cost = 0;
    for (int tm = 8; tm; tm /= 2) {
        for (int tn = 4; tn; tn /= 2) {
            if (tm * tn > 128 / (int)sizeof(T) || tm / 2 >= m || tn / 2 >= n) continue;
            const int across = parts(n, tn), down = parts(m, tm);
            const int first = parts(down, least(threads, 256 / tm));
            for (int ny = first; ny < first + 6 && ny <= down; ++ny) {
                const int ty = parts(down, ny), most_tx = least(threads / ty, 256 / tn);
                const int nx = parts(across, most_tx), tx = parts(across, nx);
                const int depth = slab_depth<T>(ty * tm, tx * tn, products);
                const long long computed = (long long)threads * (tm * tn + tm + tn);
                const long long cost = (computed + 8 * (ty * tm + tx * tn)) * ny * nx;
                if (depth && (!best.tm || cost < least_cost)) {
                    best = {tm, tn, ty, tx, depth};
                    least_cost = cost;
                }
            }
        }
    }
    return best;
}

/* to[place(j)] = number(j) for each j < COUNT. A thread reads several before it writes the first:
   `to` may be where they come from, as far as the compiler knows, and would wait for each. */
template <int THREADS, int COUNT, class T, class Place, class Number>
static __device__ __forceinline__ void copy_all(T *to, Place place, Number number)
{
    constexpr int TOGETHER = least(parts(COUNT, THREADS), 8);
#pragma unroll 1
    for (unsigned first = threadIdx.x; first < COUNT; first += TOGETHER * THREADS) {
        T read[TOGETHER];
#pragma unroll
        for (unsigned q = 0; q < TOGETHER; ++q)
            if (first + q * THREADS < COUNT) read[q] = number(first + q * THREADS);
#pragma unroll
        for (unsigned q = 0; q < TOGETHER; ++q)
            if (first + q * THREADS < COUNT) to[place(first + q * THREADS)] = read[q];
    }
}

/* to[m * PITCH + i] of `M` rows from `first` on, those from `end` on zero. Each has N numbers: groups
   of TAKEN that lie GROUP apart, of which `count` are, and the others zero, `start` numbers into a
   row. Rows are L pieces of INNER numbers, XP apart. */
template <int THREADS, int M, int N, int PITCH, int TAKEN, int GROUP, int L, int INNER, int XP, class T>
static __device__ __forceinline__ void
stage_rows(T *to, const T *from, int first, int end, int start, int count)
{
    copy_all<THREADS, M * N>(
        to, [](unsigned j) { return j / N * PITCH + j % N; }, /* unsigned: quotients are short */
        [=](unsigned j) {
            const unsigned row = first + j / N, i = j % N, k = i % TAKEN;
            const unsigned at = row / L * XP + row % L * INNER + start + i / TAKEN * GROUP + k;
            return (int)row < end && (int)k < count ? from[at] : (T)0;
        });
}

/* ---- y[r][l][b][f] = sum over k of x[r][l][b][k] w[b, k, f] */
template <class T, int THREADS, int ROWS, int L, int K, int F> struct Matmul {
    static constexpr Cut CUT = best_cut<T>(THREADS, ROWS * L, F, K);
    static constexpr int TM = CUT.tm, TF = CUT.tn, TY = CUT.ty, TX = CUT.tx, DEPTH = CUT.depth;
    static_assert(TM > 0 && TY * TX <= THREADS, "no cut of this product");
    static constexpr int KP = least(DEPTH, Slab<T>::PACK); /* of x, read as one pack */
    static constexpr int BM = TY * TM, BF = TX * TF, PITCH = row_pitch<T>(DEPTH);
    static constexpr int LEFT = rounded(BM * PITCH, Slab<T>::PACK);
};

/* Part of w: slab[k * PITCH + f] of DEPTH x BF numbers. Neighbouring threads read what is near. */
template <int THREADS, int DEPTH, int BF, int PITCH, int SK, int SF, class T>
static __device__ __forceinline__ void stage_weight(T *to, const T *w, int k_count, int f_count)
{
    constexpr unsigned NEAR = SK < SF ? least(DEPTH, 8) : 1; /* so many k before the next f */
    const auto row = [](unsigned j) { return j / (NEAR * BF) * NEAR + j % NEAR; };
    const auto column = [](unsigned j) { return j / NEAR % BF; };
    copy_all<THREADS, DEPTH * BF>(
        to, [=](unsigned j) { return row(j) * PITCH + column(j); },
        [=](unsigned j) {
            const int k = row(j), f = column(j);
            return k < k_count && f < f_count ? w[k * SK + f * SF] : (T)0;
        });
}

/* sums += x w of the staged parts; this thread's rows are TY apart, its columns neighbours. */
template <class M, int WP, int TM, int TF, class T>
static __device__ __forceinline__ void
add_products(T (&sums)[TM][TF], const T *x, const T *w, int k_count)
{
#pragma unroll 2
    for (int k = 0; k < k_count; k += M::KP) {
        T xs[TM][M::KP];
#pragma unroll
        for (int m = 0; m < TM; ++m) load(xs[m], x + m * M::TY * M::PITCH + k);
#pragma unroll
        for (int i = 0; i < M::KP; ++i) {
            T ws[TF];
            load(ws, w + (k + i) * WP);
#pragma unroll
            for (int m = 0; m < TM; ++m)
#pragma unroll
                for (int f = 0; f < TF; ++f) sums[m][f] += xs[m][i] * ws[f];
        }
    }
}

/* Writes `count` of TF neighbours, in packs where PACKED says that all rows may be. */
template <bool PACKED, int TF, class T>
static __device__ __forceinline__ void store_sums(T *y, const T (&sums)[TF], int count)
{
    constexpr int P = least(TF, Slab<T>::PACK);
    if (PACKED && (unsigned long long)y % 16 == 0) { /* of packs, all or none are */
#pragma unroll
        for (int i = 0; i < TF; i += P) {
            Pack<T, P> pack;
#pragma unroll
            for (int j = 0; j < P; ++j) pack.v[j] = sums[i + j];
            if (i < count) *(Pack<T, P> *)(y + i) = pack;
        }
        return;
    }
#pragma unroll
    for (int f = 0; f < TF; ++f)
        if (f < count) y[f] = sums[f];
}

/* y[r][l][b][f] = sum over k of x[r][l][b][k] w[b SB + k SK + f SF] for r < rows <= ROWS; rows of x
   are XP numbers apart, of y YP. x, w and y may lie anywhere; y is neither x nor w. The caller has a
   barrier between the writes of x and this, and one between this and reads of y; the slab is free
   afterwards. */
template <class T, int THREADS, int ROWS, int L, int B, int K, int F, int SB, int SK, int SF, int XP, int YP>
static __device__ __forceinline__ void matmul_tile(int rows, const T *x, const T *w, T *y, T *slab)
{
    using M = Matmul<T, THREADS, ROWS, L, K, F>;
    constexpr int PACK = Slab<T>::PACK, WP = M::BF + (SK < SF ? PACK : 0);
    constexpr bool PACKED = M::TF >= PACK && F % PACK == 0 && YP % PACK == 0;
    const int ty = threadIdx.x / M::TX, tx = threadIdx.x % M::TX, end = rows * L;
    T *const right = slab + M::LEFT;
#pragma unroll 1
    for (int b = 0; b < B; ++b) {
#pragma unroll 1
        for (int tile = 0; tile < parts(end, M::BM) * parts(F, M::BF); ++tile) {
            const int m0 = tile / parts(F, M::BF) * M::BM, f0 = tile % parts(F, M::BF) * M::BF;
            T sums[M::TM][M::TF] = {};
#pragma unroll 1
            for (int k0 = 0; k0 < K; k0 += M::DEPTH) {
                const int count = least(M::DEPTH, K - k0);
                stage_rows<THREADS, M::BM, M::DEPTH, M::PITCH, M::DEPTH, 0, L, B * K, XP>(
                    slab, x, m0, end, b * K + k0, count);
                stage_weight<THREADS, M::DEPTH, M::BF, WP, SK, SF>(
                    right, w + b * SB + k0 * SK + f0 * SF, count, F - f0);
                __syncthreads();
                if (ty < M::TY)
                    add_products<M, WP>(sums, slab + ty * M::PITCH, right + tx * M::TF, count);
                __syncthreads();
            }
            const int f = f0 + tx * M::TF;
            if (ty >= M::TY) continue;
#pragma unroll
            for (int m = 0; m < M::TM; ++m) {
                const int row = m0 + m * M::TY + ty;
                T *const to = y + row / L * YP + (row % L * B + b) * F + f;
                if (row < end) store_sums<PACKED>(to, sums[m], F - f);
            }
        }
    }
}
/* Numbers of the slab that matmul_tile of these takes. */
template <class T, int THREADS, int ROWS, int L, int B, int K, int F, int SB, int SK, int SF, int XP, int YP>
static constexpr __host__ __device__ int matmul_slab()
{
    using M = Matmul<T, THREADS, ROWS, L, K, F>;
    return M::LEFT + M::DEPTH * (M::BF + (SK < SF ? Slab<T>::PACK : 0));
}
} // namespace tiles
using tiles::matmul_slab;
using tiles::matmul_tile;
