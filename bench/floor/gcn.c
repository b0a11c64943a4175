/* One training step of a GCN by hand: the mean cross-entropy over all nodes and the gradients of all weights.

   FEATURES, HIDDEN, CLASSES and LAYERS (two or more) are defined in front of this text, and tiles.h. Nothing is kept
   from one step to the next but the graph. Written for FEATURES of at least 2 * HIDDEN: the first product comes before
   its sum.

   A layer is Z = d (A + I) d H W + b with d = degree^-1/2. Stored are scaled rows H' = d H, so that the sum over the
   neighbours needs no weights, and the loop of each node is what the sum starts from. The gradient of H' is
   S W^T with S = (A + I)^T d dZ, and that of W is H'^T S: backward sums each layer's narrow rows once. */

/* Rows in memory are padded to whole vectors; the padding is 0 all the way, but for the logits'. */
enum {
    H = PADDED(HIDDEN),
    C = PADDED(CLASSES),
    TRANSPOSED = (C > H ? C : H) * H, /* a transposed matrix of a later layer */
    BLOCK = 48, /* rows that pass through a layer together and stay in the first-level cache */
    AHEAD = 32, /* neighbours whose rows are fetched ahead; the tables are padded by as many */
    PARAMETERS = FEATURES * H + H + (LAYERS - 2) * (H * H + H) + H * C + C,
};

typedef struct {
    int64_t nodes;
    int32_t chunks, threads;
    /* neighbours by destination and by source, cut into chunks of about equal work */
    const int64_t *in_offsets, *out_offsets, *in_chunks, *out_chunks;
    const int32_t *in_rows, *out_rows;
    const float *scale, *x;
    const int64_t *labels;
    float *hidden[LAYERS - 1];  /* H' of each layer but the last, nodes x H */
    float *one, *two;           /* nodes x H: T, and the gradients on their way down */
    float *packed, *transposed; /* the weights: PARAMETERS, and TRANSPOSED for each later layer */
    float *sums; /* gradients of each thread, and of its present chunk: threads x 2 x PARAMETERS */
} gcn;

/* ---------------------------------------------------------------- sums over neighbours */

enum { GATHER_VECTORS = 8 };

/* S[rows][nv vectors]: rows first .. first + rows of (A + I) X, the vectors from column `at` on.
   Meanwhile `stream` bytes of each row of `next` are fetched, for the product that follows. */
INLINE void gather_columns(
    int nv, int at, int64_t first, int rows, const int64_t *offsets, const int32_t *neighbours, const float *X,
    float *S, const float *next, int stream)
{
    for (int r = 0; r < rows; ++r) {
        for (int b = 0; b < stream; b += 64) __builtin_prefetch((const char *)next + (int64_t)r * stream + b);
        vec sum[GATHER_VECTORS];
        UNROLL for (int q = 0; q < nv; ++q) sum[q] = CVEC(X + (first + r) * H + at + q * LANES);
        for (int64_t e = offsets[first + r]; e < offsets[first + r + 1]; ++e) {
            const float *later = X + (int64_t)neighbours[e + AHEAD] * H + at;
            UNROLL for (int b = 0; b < nv * VECTOR_BYTES; b += 64) __builtin_prefetch((const char *)later + b);
            const float *row = X + (int64_t)neighbours[e] * H + at;
            UNROLL for (int q = 0; q < nv; ++q) sum[q] += CVEC(row + q * LANES);
        }
        UNROLL for (int q = 0; q < nv; ++q) VEC(S + r * H + at + q * LANES) = sum[q];
    }
}

INLINE void gather(
    int64_t first, int rows, const int64_t *offsets, const int32_t *neighbours, const float *X, float *S,
    const float *next, int stream)
{
    const int rest = H / LANES % GATHER_VECTORS;
    int at = 0;
    for (; at + GATHER_VECTORS * LANES <= H; at += GATHER_VECTORS * LANES)
        gather_columns(GATHER_VECTORS, at, first, rows, offsets, neighbours, X, S, next, at ? 0 : stream);
    if (rest) gather_columns(rest, at, first, rows, offsets, neighbours, X, S, next, at ? 0 : stream);
}

/* ---------------------------------------------------------------- row steps */

/* H'[r] = d relu(d Z[r] + b) */
INLINE void activate(int rows, const float *scale, const float *Z, const float *bias, float *out)
{
    for (int r = 0; r < rows; ++r) UNROLL for (int q = 0; q < H; q += LANES) {
        const vec z = scale[r] * CVEC(Z + r * H + q) + CVEC(bias + q);
        VEC(out + r * H + q) = where(z > (vec){0}, scale[r] * z);
    }
}

/* From the gradient G of H': dZ = d G where H' > 0; d dZ goes to `out`, and dZ to the bias gradient. */
INLINE void deactivate(int rows, const float *scale, const float *G, const float *hidden, float *out, float *bias)
{
    vec sum[H / LANES] = {{0}};
    for (int r = 0; r < rows; ++r) UNROLL for (int q = 0; q < H / LANES; ++q) {
        const int64_t at = r * H + q * LANES;
        const vec z = where(CVEC(hidden + at) > (vec){0}, scale[r] * CVEC(G + at));
        sum[q] += z;
        VEC(out + at) = scale[r] * z;
    }
    for (int q = 0; q < H / LANES; ++q) VEC(bias + q * LANES) += sum[q];
}

INLINE void scaled(int rows, const float *scale, float *X)
{
    for (int r = 0; r < rows; ++r) UNROLL for (int q = 0; q < H; q += LANES) VEC(X + r * H + q) *= scale[r];
}

/* Logits without bias become their gradients; returns the sum of the rows' losses. `share` is 1 / nodes. */
INLINE double losses(int rows, float *L, const float *bias, const int64_t *labels, float share, float *bias_gradient)
{
    double total = 0;
    float sums[BLOCK];
    vec gradient[C / LANES] = {{0}};
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
    for (int q = 0; q < C / LANES; ++q) VEC(bias_gradient + q * LANES) += gradient[q];
    for (int r = 0; r < rows; ++r) total += logf(sums[r]); /* apart: a call would empty all registers */
    return total;
}

/* ---------------------------------------------------------------- parameters */

/* Where the padded matrices (in x out) and biases of a layer lie in one array of PARAMETERS. */
static int inputs(int layer) { return layer == 0 ? FEATURES : HIDDEN; }
static int padded_inputs(int layer) { return layer == 0 ? FEATURES : H; }
static int outputs(int layer) { return layer == LAYERS - 1 ? CLASSES : HIDDEN; }
static int pitch(int layer) { return layer == LAYERS - 1 ? C : H; }
static int64_t weight_at(int layer)
{
    int64_t at = 0;
    for (int l = 0; l < layer; ++l) at += (int64_t)(padded_inputs(l) + 1) * pitch(l);
    return at;
}
static int64_t bias_at(int layer) { return weight_at(layer) + (int64_t)padded_inputs(layer) * pitch(layer); }

/* torch's weights (out x in) into padded ones (in x out) and their transposes (out x padded in). A
   logit that is no class has a bias so low that it has no part in the softmax. */
static void pack(const float *const *weights, const float *const *biases, float *packed, float *transposed)
{
    memset(packed, 0, sizeof(float) * PARAMETERS);
    memset(transposed, 0, sizeof(float) * (LAYERS - 1) * TRANSPOSED);
    for (int l = 0; l < LAYERS; ++l) {
        float *w = packed + weight_at(l), *b = packed + bias_at(l);
        float *t = transposed + (l > 0 ? l - 1 : 0) * (int64_t)TRANSPOSED;
        for (int o = 0; o < outputs(l); ++o) {
            b[o] = biases[l][o];
            for (int i = 0; i < inputs(l); ++i) {
                w[(int64_t)i * pitch(l) + o] = weights[l][(int64_t)o * inputs(l) + i];
                if (l > 0) t[(int64_t)o * H + i] = weights[l][(int64_t)o * inputs(l) + i];
            }
        }
        if (l == LAYERS - 1)
            for (int o = CLASSES; o < C; ++o) b[o] = -1e30f;
    }
}

/* The sum of the threads' gradients in torch's shapes. */
static void unpack(const gcn *g, float *const *weights, float *const *biases)
{
    float *sum = g->sums;
    for (int t = 1; t < g->threads; ++t)
        for (int64_t i = 0; i < PARAMETERS; ++i) sum[i] += g->sums[2 * t * (int64_t)PARAMETERS + i];
    for (int l = 0; l < LAYERS; ++l) {
        const float *w = sum + weight_at(l), *b = sum + bias_at(l);
        for (int o = 0; o < outputs(l); ++o) {
            biases[l][o] = b[o];
            for (int i = 0; i < inputs(l); ++i) weights[l][(int64_t)o * inputs(l) + i] = w[(int64_t)i * pitch(l) + o];
        }
    }
}

/* ---------------------------------------------------------------- passes over the graph, by all threads together */

/* A thread's sum over a chunk goes to its total, so that long sums of small numbers keep their precision. */
INLINE void add_chunk(float *total, float *chunk, int layer)
{
    const int64_t begin = weight_at(layer), end = weight_at(layer + 1);
    for (int64_t i = begin; i < end; ++i) {
        total[i] += chunk[i];
        chunk[i] = 0;
    }
}

static int block_rows(int64_t first, int64_t end) { return end - first < BLOCK ? (int)(end - first) : BLOCK; }

#define CHUNKS(g) _Pragma("omp for schedule(dynamic, 1)") for (int c = 0; c < (g)->chunks; ++c)
#define BLOCKS(cuts, first, rows)                                 \
    for (int64_t first = (cuts)[c]; first < (cuts)[c + 1]; first += BLOCK) \
        for (int rows = block_rows(first, (cuts)[c + 1]), once = 1; once; once = 0)
#define ROWS(name, width) float name[BLOCK * (width)] __attribute__((aligned(64)))

/* T = d X W */
static void first_product(const gcn *g)
{
    CHUNKS(g) BLOCKS(g->in_chunks, i, rows) {
        product(rows, FEATURES, H, g->x + i * FEATURES, FEATURES, g->packed, g->one + i * H);
        scaled(rows, g->scale + i, g->one + i * H);
    }
}

static void first_sum(const gcn *g)
{
    ROWS(S, H);
    CHUNKS(g) BLOCKS(g->in_chunks, i, rows) {
        gather(i, rows, g->in_offsets, g->in_rows, g->one, S, NULL, 0);
        activate(rows, g->scale + i, S, g->packed + bias_at(0), g->hidden[0] + i * H);
    }
}

static void later_layer(const gcn *g, int l)
{
    ROWS(S, H);
    ROWS(Z, H);
    CHUNKS(g) BLOCKS(g->in_chunks, i, rows) {
        gather(i, rows, g->in_offsets, g->in_rows, g->hidden[l - 1], S, NULL, 0);
        product(rows, H, H, S, H, g->packed + weight_at(l), Z);
        activate(rows, g->scale + i, Z, g->packed + bias_at(l), g->hidden[l] + i * H);
    }
}

/* The last layer, the loss, and back to d dP, where P = d (A + I) H' goes into the last product: no logits are kept. */
static double last_layer(const gcn *g, float *total, float *chunk)
{
    const int l = LAYERS - 1;
    double loss = 0;
    ROWS(P, H);
    ROWS(L, C);
    CHUNKS(g) {
        BLOCKS(g->in_chunks, i, rows) {
            gather(i, rows, g->in_offsets, g->in_rows, g->hidden[l - 1], P, NULL, 0);
            scaled(rows, g->scale + i, P);
            product(rows, H, C, P, H, g->packed + weight_at(l), L);
            loss += losses(rows, L, g->packed + bias_at(l), g->labels + i, 1.0f / g->nodes, chunk + bias_at(l));
            outer(H, C, rows, P, H, L, chunk + weight_at(l));
            product(rows, CLASSES, H, L, C, g->transposed + (l - 1) * (int64_t)TRANSPOSED, g->one + i * H);
            scaled(rows, g->scale + i, g->one + i * H);
        }
        add_chunk(total, chunk, l);
    }
    return loss;
}

/* From d dP, in `one`, to d dZ of the layer below, in `two`. */
static void below_last(const gcn *g, float *total, float *chunk)
{
    const int l = LAYERS - 2;
    ROWS(G, H);
    CHUNKS(g) {
        BLOCKS(g->out_chunks, i, rows) {
            gather(i, rows, g->out_offsets, g->out_rows, g->one, G, g->hidden[l] + i * H, H * 4);
            deactivate(rows, g->scale + i, G, g->hidden[l] + i * H, g->two + i * H, chunk + bias_at(l));
        }
        add_chunk(total, chunk, l);
    }
}

/* From d dZ of layer l, in `from`, to the gradient of its matrix and to d dZ of the layer below, in `to`. */
static void backward_layer(const gcn *g, int l, const float *from, float *to, float *total, float *chunk)
{
    ROWS(S, H);
    ROWS(G, H);
    CHUNKS(g) {
        BLOCKS(g->out_chunks, i, rows) {
            const float *hidden = g->hidden[l - 1] + i * H;
            gather(i, rows, g->out_offsets, g->out_rows, from, S, hidden, H * 4);
            outer(H, H, rows, hidden, H, S, chunk + weight_at(l));
            product(rows, H, H, S, H, g->transposed + (l - 1) * (int64_t)TRANSPOSED, G);
            deactivate(rows, g->scale + i, G, hidden, to + i * H, chunk + bias_at(l - 1));
        }
        add_chunk(total, chunk, l - 1);
        add_chunk(total, chunk, l);
    }
}

static void first_backward(const gcn *g, const float *from, float *total, float *chunk)
{
    ROWS(S, H);
    CHUNKS(g) {
        BLOCKS(g->out_chunks, i, rows) {
            const float *x = g->x + i * FEATURES;
            gather(i, rows, g->out_offsets, g->out_rows, from, S, x, FEATURES * 4);
            scaled(rows, g->scale + i, S);
            outer(FEATURES, H, rows, x, FEATURES, S, chunk + weight_at(0));
        }
        add_chunk(total, chunk, 0);
    }
}

/* Floats that a step needs besides its arguments; `gcn_step` cuts them up. */
int64_t gcn_workspace(int64_t nodes, int threads)
{
    const int64_t weights = PARAMETERS + (LAYERS - 1) * (int64_t)TRANSPOSED;
    return (LAYERS + 1) * nodes * H + weights + 2 * (int64_t)threads * PARAMETERS;
}

/* The loss; gradients go to `weight_gradients` and `bias_gradients`, in torch's shapes. */
float gcn_step(
    int64_t nodes, int chunks, int threads, const int64_t *in_offsets, const int64_t *out_offsets,
    const int64_t *in_chunks, const int64_t *out_chunks, const int32_t *in_rows, const int32_t *out_rows,
    const float *scale, const float *x, const int64_t *labels, const float *const *weights, const float *const *biases,
    float *const *weight_gradients, float *const *bias_gradients, float *workspace)
{
    gcn g = {
        .nodes = nodes, .chunks = chunks, .threads = threads,
        .in_offsets = in_offsets, .out_offsets = out_offsets, .in_chunks = in_chunks, .out_chunks = out_chunks,
        .in_rows = in_rows, .out_rows = out_rows, .scale = scale, .x = x, .labels = labels,
    };
    for (int l = 0; l < LAYERS - 1; ++l, workspace += nodes * H) g.hidden[l] = workspace;
    g.one = workspace;
    g.two = g.one + nodes * H;
    g.packed = g.two + nodes * H;
    g.transposed = g.packed + PARAMETERS;
    g.sums = g.transposed + (LAYERS - 1) * (int64_t)TRANSPOSED;
    pack(weights, biases, g.packed, g.transposed);
    double loss = 0;
#pragma omp parallel num_threads(threads) reduction(+ : loss)
    {
#ifdef __SSE__
        const unsigned mode = _mm_getcsr();
        _mm_setcsr(mode | 0x8040); /* denormal numbers count as 0: they are very slow */
#endif
        float *total = g.sums + 2 * omp_get_thread_num() * (int64_t)PARAMETERS, *chunk = total + PARAMETERS;
        memset(total, 0, sizeof(float) * 2 * PARAMETERS);
        first_product(&g);
        first_sum(&g);
        for (int l = 1; l < LAYERS - 1; ++l) later_layer(&g, l);
        loss += last_layer(&g, total, chunk);
        below_last(&g, total, chunk);
        float *from = g.two, *to = g.one;
        for (int l = LAYERS - 2; l > 0; --l) {
            backward_layer(&g, l, from, to, total, chunk);
            float *swap = from;
            from = to, to = swap;
        }
        first_backward(&g, from, total, chunk);
#ifdef __SSE__
        _mm_setcsr(mode);
#endif
    }
    unpack(&g, weight_gradients, bias_gradients);
    return (float)(loss / nodes);
}
