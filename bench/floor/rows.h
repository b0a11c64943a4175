/* What training steps by hand share beside tiles.h: rows in blocks and chunks, the graph, sums over neighbours, the
   loss, and gradients added up by threads. CLASSES is defined in front of this text. */
enum {
    C = PADDED(CLASSES), /* rows in memory are padded to whole vectors */
    BLOCK = 96, /* rows that pass through a layer together and stay in the first-level cache */
    AHEAD = 32, /* neighbours whose rows are fetched ahead; the tables are padded by as many */
    GATHER_VECTORS = 8,
};

/* ---------------------------------------------------------------- the graph */

/* The neighbours of each node, and nodes cut into chunks of about equal work */
typedef struct {
    const int64_t *offsets, *chunks;
    const int32_t *rows;
} neighbours;

typedef struct {
    int64_t nodes;
    int32_t chunks, threads;
    neighbours in, out; /* by destination and by source */
} graph;

enum { GRAPH_TABLES = 6 };

INLINE graph graph_of(int64_t nodes, int chunks, int threads, const void *const *tables)
{
    return (graph){
        .nodes = nodes, .chunks = chunks, .threads = threads,
        .in = {.offsets = tables[0], .chunks = tables[1], .rows = tables[2]},
        .out = {.offsets = tables[3], .chunks = tables[4], .rows = tables[5]},
    };
}

/* ---------------------------------------------------------------- loops */

static int block_rows(int64_t first, int64_t end) { return end - first < BLOCK ? (int)(end - first) : BLOCK; }

#define CHUNKS(g) _Pragma("omp for schedule(dynamic, 1)") for (int c = 0; c < (g)->chunks; ++c)
#define BLOCKS(cuts, first, rows)                                          \
    for (int64_t first = (cuts)[c]; first < (cuts)[c + 1]; first += BLOCK) \
        for (int rows = block_rows(first, (cuts)[c + 1]), once = 1; once; once = 0)
#define ROWS(name, width) float name[BLOCK * (width)] __attribute__((aligned(64)))

/* Denormal numbers count as 0: they are very slow. Returns what `restore_denormals` needs. */
INLINE unsigned flush_denormals(void)
{
#ifdef __SSE__
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8040);
    return mode;
#else
    return 0;
#endif
}
INLINE void restore_denormals(unsigned mode)
{
#ifdef __SSE__
    _mm_setcsr(mode);
#endif
    (void)mode;
}

/* The next `floats` of memory */
INLINE float *cut(float **memory, int64_t floats)
{
    float *start = *memory;
    *memory += floats;
    return start;
}

/* ---------------------------------------------------------------- sums over neighbours */

/* S[rows][nv vectors]: rows first .. first + rows of A X, and of X itself where `loops`, the vectors from column `at`
   on. Meanwhile `stream` bytes of each row of `next` are fetched, for the product that follows. */
INLINE void gather_columns(
    int width, int loops, int nv, int at, int64_t first, int rows, const neighbours *by, const float *X, float *S,
    const float *next, int stream)
{
    for (int r = 0; r < rows; ++r) {
        for (int b = 0; b < stream; b += 64) __builtin_prefetch((const char *)next + (int64_t)r * stream + b);
        vec sum[GATHER_VECTORS];
        UNROLL for (int q = 0; q < nv; ++q)
            sum[q] = loops ? CVEC(X + (first + r) * width + at + q * LANES) : (vec){0};
        for (int64_t e = by->offsets[first + r]; e < by->offsets[first + r + 1]; ++e) {
            const float *later = X + (int64_t)by->rows[e + AHEAD] * width + at;
            UNROLL for (int b = 0; b < nv * VECTOR_BYTES; b += 64) __builtin_prefetch((const char *)later + b);
            const float *row = X + (int64_t)by->rows[e] * width + at;
            UNROLL for (int q = 0; q < nv; ++q) sum[q] += CVEC(row + q * LANES);
        }
        UNROLL for (int q = 0; q < nv; ++q) VEC(S + r * width + at + q * LANES) = sum[q];
    }
}

INLINE void gather(
    int width, int loops, int64_t first, int rows, const neighbours *by, const float *X, float *S, const float *next,
    int stream)
{
    const int rest = width / LANES % GATHER_VECTORS;
    int at = 0;
    for (; at + GATHER_VECTORS * LANES <= width; at += GATHER_VECTORS * LANES)
        gather_columns(width, loops, GATHER_VECTORS, at, first, rows, by, X, S, next, at ? 0 : stream);
    if (rest) gather_columns(width, loops, rest, at, first, rows, by, X, S, next, at ? 0 : stream);
}

/* ---------------------------------------------------------------- row steps */

INLINE void scale_rows(int width, int rows, const float *scale, float *X)
{
    for (int r = 0; r < rows; ++r) UNROLL for (int q = 0; q < width; q += LANES) VEC(X + r * width + q) *= scale[r];
}

INLINE void add_to(int width, int rows, const float *X, float *Y)
{
    for (int at = 0; at < rows * width; at += LANES) VEC(Y + at) += CVEC(X + at);
}

/* relu(Z + bias) */
INLINE void relu(int width, int rows, const float *Z, const float *bias, float *out)
{
    for (int r = 0; r < rows; ++r) UNROLL for (int q = 0; q < width; q += LANES)
        VEC(out + r * width + q) = greater(CVEC(Z + r * width + q) + CVEC(bias + q), (vec){0});
}

/* The gradient of relu's argument, from that of its result `kept`, and of the bias */
INLINE void relu_gradient(int width, int rows, const float *kept, const float *G, float *out, float *bias)
{
    UNROLL for (int q = 0; q < width; q += LANES) {
        vec sum = {0};
        for (int r = 0; r < rows; ++r) {
            const vec z = where(CVEC(kept + r * width + q) > (vec){0}, CVEC(G + r * width + q));
            sum += z;
            VEC(out + r * width + q) = z;
        }
        VEC(bias + q) += sum;
    }
}

/* ---------------------------------------------------------------- the loss */

/* Logits without bias, become their gradients; returns the sum of the rows' losses. `share` is 1 / nodes. */
INLINE double losses(
    int rows, float *L, const float *bias, const int64_t *labels, float share, float *bias_gradient)
{
    double total = 0;
    float sums[BLOCK];
    vec gradient[C / LANES];
    UNROLL for (int q = 0; q < C / LANES; ++q) gradient[q] = (vec){0};
    for (int r = 0; r < rows; ++r) {
        float *row = L + r * C;
        vec z[C / LANES], top = splat(-INFINITY), sum = {0};
        UNROLL for (int q = 0; q < C / LANES; ++q) {
            z[q] = CVEC(row + q * LANES) + CVEC(bias + q * LANES);
            VEC(row + q * LANES) = z[q];
            top = greater(z[q], top);
        }
        const float most = lanes_max(top), wanted = row[labels[r]];
        UNROLL for (int q = 0; q < C / LANES; ++q) {
            z[q] = exponential(z[q] - most);
            sum += z[q];
        }
        const float whole = lanes_sum(sum);
        sums[r] = whole;
        total += most - wanted;
        UNROLL for (int q = 0; q < C / LANES; ++q) {
            const vec g = (share / whole) * z[q];
            VEC(row + q * LANES) = g;
            gradient[q] += g;
        }
        row[labels[r]] -= share;
        bias_gradient[labels[r]] -= share;
    }
    UNROLL for (int q = 0; q < C / LANES; ++q) VEC(bias_gradient + q * LANES) += gradient[q];
    for (int r = 0; r < rows; ++r) total += logf(sums[r]); /* apart: a call would empty all registers */
    return total;
}

/* ---------------------------------------------------------------- gradients */

/* This thread's part of threads x 2 x `floats` gradients, set to 0: its total, and that of its present chunk */
INLINE float *thread_sums(float *sums, int64_t floats)
{
    float *mine = sums + 2 * omp_get_thread_num() * PADDED(floats);
    memset(mine, 0, sizeof(float) * 2 * PADDED(floats));
    return mine;
}

/* A chunk's part of the gradients goes to its thread's total: long sums of small numbers keep their precision. */
INLINE void add_chunk(float *total, float *chunk, int64_t from, int64_t floats)
{
    for (int64_t i = from; i < from + floats; ++i) {
        total[i] += chunk[i];
        chunk[i] = 0;
    }
}

/* The totals of all threads, in the place of the first */
INLINE void add_threads(int threads, int64_t floats, float *sums)
{
    for (int t = 1; t < threads; ++t)
        for (int64_t i = 0; i < floats; ++i) sums[i] += sums[2 * t * PADDED(floats) + i];
}

/* ---------------------------------------------------------------- matrices */

/* torch's matrix (out x in) padded as `w` (in x pitch), and transposed as `t` (out x padded in) unless that is NULL */
INLINE void pack_matrix(int in, int out, int pitch, const float *given, float *w, float *t)
{
    for (int o = 0; o < out; ++o)
        for (int i = 0; i < in; ++i) {
            w[(int64_t)i * pitch + o] = given[(int64_t)o * in + i];
            if (t) t[(int64_t)o * PADDED(in) + i] = given[(int64_t)o * in + i];
        }
}

INLINE void unpack_matrix(int in, int out, int pitch, const float *w, float *made)
{
    for (int o = 0; o < out; ++o)
        for (int i = 0; i < in; ++i) made[(int64_t)o * in + i] = w[(int64_t)i * pitch + o];
}

/* A bias of the logits; one that is no class is so low that it has no part in the softmax. */
INLINE void pack_logits_bias(const float *given, float *bias)
{
    for (int o = 0; o < C; ++o) bias[o] = o < CLASSES ? given[o] : -1e30f;
}
