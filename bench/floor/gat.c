/* One training step of a GAT by hand: the mean cross-entropy over all nodes and the gradients of all parameters.

   FEATURES, HEADS, HIDDEN (of all heads), CLASSES and LAYERS (two or more) are defined in front of this text, tiles.h
   and rows.h; the last layer has one head. Nothing is kept from one step to the next but the graph.

   Columns are numbered with the head last, d * HEADS + h, so that one vector of weights multiplies all columns of an
   edge. A layer's scores, a_src . z and a_dst . z of each head, are columns of the product behind those of z. With the
   score t = s_src + s_dst of an edge, e = exp(leaky(t) - m), S = sum e and alpha = e / S, forward keeps two sums a row:
   o = sum alpha z and p = sum alpha leaky'(t) z. For the gradient G of o, the gradient of a score s_dst is then
   G . p - (G . o) sum alpha leaky'(t), without a look at the edges, and those of z and s_src are sum alpha G and
   z . (sum alpha leaky'(t) G) - sum alpha leaky'(t) (G . o) over the edges that leave a node: no product of two rows
   is taken for an edge, and nothing is kept for one. */

enum {
    H = PADDED(HIDDEN),
    WIDEST = H > C ? H : C,
    STATE = PADDED(3 * HEADS), /* of a node in an inner layer: m, 1 / S and sum alpha leaky'(t) of each head */
};
#define Z_PITCH(heads, width) PADDED((width) + 2 * (heads)) /* z, s_src, s_dst */
#define G_PITCH(heads, width) PADDED((width) + 4 * (heads)) /* G / S, s_dst, m, (G . o) / S, gradient of s_dst */
#define GROUP(heads) ((heads) > LANES ? (heads) / LANES : 1) /* vectors after which the heads of lanes repeat */
enum {
    ZH = Z_PITCH(HEADS, HIDDEN),
    ZC = Z_PITCH(1, CLASSES),
    GH = G_PITCH(HEADS, HIDDEN),
    GC = G_PITCH(1, CLASSES),
    Z_WIDEST = ZH > ZC ? ZH : ZC,
    TRANSPOSED = Z_WIDEST * H, /* a transposed matrix of a later layer */
    PARAMETERS = FEATURES * ZH + H + (LAYERS - 2) * (HIDDEN * ZH + H) + HIDDEN * ZC + C,
};
static const float SLOPE = 0.2f, NEVER = -1e30f;

typedef struct {
    graph graph;
    const float *x;
    const int64_t *labels;
    float *z[LAYERS], *mean[LAYERS - 1], *sloped[LAYERS - 1], *state[LAYERS - 1];
    float *one, *two;           /* rows of G_PITCH: gradients on their way down */
    float *packed, *transposed; /* the weights: PARAMETERS, and TRANSPOSED for each later layer */
    float *sums;                /* gradients of each thread, and of its present chunk: threads x 2 x PARAMETERS */
    float *buffers;             /* numbers of the edges of one row: threads x BUFFERS x buffer */
    int64_t buffer;
} gat;
enum { BUFFERS = 3, GROUPS = GROUP(HEADS) };

/* ---------------------------------------------------------------- vectors of heads */

/* Vector q of a row of columns, each with the number of its head */
INLINE vec by_head(int heads, const float *p, int q)
{
    if (heads >= LANES) return CVEC(p + q * LANES % heads);
#if defined(__AVX512F__) && VECTOR_BYTES == 64
    if (heads == 8) return (vec)_mm512_broadcast_f64x4(_mm256_loadu_pd((const double *)p));
#endif
    if (heads == 1) return splat(*p);
    vec v;
    for (int l = 0; l < LANES; ++l) v[l] = p[l % heads];
    return v;
}

INLINE vec head_max(int heads, vec v)
{
    UNROLL for (int by = LANES / 2; by >= heads; by /= 2) v = greater(v, turned(v, by));
    return v;
}
INLINE vec head_sum(int heads, vec v)
{
    UNROLL for (int by = LANES / 2; by >= heads; by /= 2) v += turned(v, by);
    return v;
}

/* The first `heads` lanes of a group */
INLINE void put(int heads, float *p, const vec *group)
{
    UNROLL for (int h = 0; h < heads; h += LANES) {
        const vec v = group[h / LANES];
        memcpy(p + h, &v, sizeof(float) * (heads < LANES ? heads : LANES));
    }
}

/* All ones in the lanes of vector q that are columns */
INLINE ints columns(int width, int q)
{
    ints lane;
    UNROLL for (int l = 0; l < LANES; ++l) lane[l] = q * LANES + l < width ? -1 : 0;
    return lane;
}

/* sum of a . b over the columns of each head */
INLINE void dots(int heads, int width, const float *a, const float *b, vec *group)
{
    UNROLL for (int g = 0; g < GROUP(heads); ++g) group[g] = (vec){0};
    UNROLL for (int q = 0; q < PADDED(width) / LANES; ++q) {
        vec x = CVEC(a + q * LANES) * CVEC(b + q * LANES);
        if ((q + 1) * LANES > width) x = where(columns(width, q), x);
        group[q % GROUP(heads)] += x;
    }
    UNROLL for (int g = 0; g < GROUP(heads); ++g) group[g] = head_sum(heads, group[g]);
}

/* ---------------------------------------------------------------- the edges of one row */

/* Copies `heads` numbers of each neighbour's row; `rest` follows up to a whole group. */
INLINE void collect(int heads, int edges, const int32_t *rows, const float *X, int pitch, int at, float rest, float *to)
{
    for (int e = 0; e < edges; ++e) memcpy(to + e * heads, X + (int64_t)rows[e] * pitch + at, sizeof(float) * heads);
    UNROLL for (int g = 0; g < GROUP(heads); ++g) VEC(to + edges * heads + g * LANES) = splat(rest);
}

INLINE void fetch_ahead(int edges, const int32_t *rows, const float *X, int pitch)
{
    for (int e = 0; e < edges; ++e)
        UNROLL for (int b = 0; b < pitch; b += 16) __builtin_prefetch(X + (int64_t)rows[e + AHEAD] * pitch + b);
}

/* A and B: the rows of the neighbours added up by weights and by sloped weights */
INLINE void add_columns(
    int heads, int nv, int at, int edges, const int32_t *rows, const float *X, int pitch, const float *weights,
    const float *sloped, float *A, float *B)
{
    vec a[GATHER_VECTORS], b[GATHER_VECTORS];
    UNROLL for (int q = 0; q < nv; ++q) a[q] = b[q] = (vec){0};
    for (int e = 0; e < edges; ++e) {
        const float *row = X + (int64_t)rows[e] * pitch + at;
        UNROLL for (int q = 0; q < nv; ++q) {
            const vec x = CVEC(row + q * LANES);
            a[q] += by_head(heads, weights + e * heads, at / LANES + q) * x;
            b[q] += by_head(heads, sloped + e * heads, at / LANES + q) * x;
        }
    }
    UNROLL for (int q = 0; q < nv; ++q) {
        VEC(A + at + q * LANES) = a[q];
        VEC(B + at + q * LANES) = b[q];
    }
}
INLINE void add_rows(
    int heads, int width, int edges, const int32_t *rows, const float *X, int pitch, const float *weights,
    const float *sloped, float *A, float *B)
{
    const int padded = PADDED(width), rest = padded / LANES % GATHER_VECTORS;
    int at = 0;
    for (; at + GATHER_VECTORS * LANES <= padded; at += GATHER_VECTORS * LANES)
        add_columns(heads, GATHER_VECTORS, at, edges, rows, X, pitch, weights, sloped, A, B);
    if (rest) add_columns(heads, rest, at, edges, rows, X, pitch, weights, sloped, A, B);
}

/* A row's scores become e and leaky'(t) e; `own` are its s_dst, and m, 1 / S and sum alpha leaky'(t) go to `state`. */
INLINE void softmax(int heads, int edges, const float *own, float *weights, float *sloped, float *state)
{
    vec target[GROUPS], top[GROUPS], sum[GROUPS], sloped_sum[GROUPS];
    UNROLL for (int g = 0; g < GROUP(heads); ++g) {
        target[g] = by_head(heads, own, g);
        top[g] = splat(NEVER);
        sum[g] = sloped_sum[g] = (vec){0};
    }
    for (int at = 0; at < edges * heads; at += GROUP(heads) * LANES)
        UNROLL for (int g = 0; g < GROUP(heads); ++g) top[g] = greater(CVEC(weights + at + g * LANES), top[g]);
    UNROLL for (int g = 0; g < GROUP(heads); ++g) {
        const vec t = head_max(heads, top[g]) + target[g];
        top[g] = greater(t, SLOPE * t);
    }
    for (int at = 0; at < edges * heads; at += GROUP(heads) * LANES)
        UNROLL for (int g = 0; g < GROUP(heads); ++g) {
            const vec t = CVEC(weights + at + g * LANES) + target[g];
            const vec e = exponential(greater(t, SLOPE * t) - top[g]);
            const vec s = choice(t > (vec){0}, e, SLOPE * e);
            VEC(weights + at + g * LANES) = e;
            VEC(sloped + at + g * LANES) = s;
            sum[g] += e;
            sloped_sum[g] += s;
        }
    UNROLL for (int g = 0; g < GROUP(heads); ++g) {
        sum[g] = 1.0f / head_sum(heads, sum[g]);
        sloped_sum[g] = sum[g] * head_sum(heads, sloped_sum[g]);
    }
    put(heads, state, top);
    put(heads, state + heads, sum);
    put(heads, state + 2 * heads, sloped_sum);
}

/* The softmax of row i and what it adds up: o, p, and in `state` m, 1 / S and sum alpha leaky'(t). */
INLINE void attend(
    int heads, int width, int64_t i, const neighbours *by, const float *Z, float *const *buffers, float *o, float *p,
    float *state)
{
    const int pitch = Z_PITCH(heads, width), edges = (int)(by->offsets[i + 1] - by->offsets[i]);
    const int32_t *rows = by->rows + by->offsets[i];
    fetch_ahead(edges, rows, Z, pitch);
    collect(heads, edges, rows, Z, pitch, width, NEVER, buffers[0]);
    softmax(heads, edges, Z + i * pitch + width + heads, buffers[0], buffers[1], state);
    add_rows(heads, width, edges, rows, Z, pitch, buffers[0], buffers[1], o, p);
    UNROLL for (int q = 0; q < PADDED(width) / LANES; ++q) {
        const vec share = by_head(heads, state + heads, q);
        VEC(o + q * LANES) *= share;
        VEC(p + q * LANES) *= share;
    }
}

/* From the gradient of o, in `gradient`, to the row of G; o, p and `state` are those of `attend`. */
INLINE void send(
    int heads, int width, const float *gradient, const float *o, const float *p, const float *state, const float *z,
    float *G)
{
    vec inner[GROUPS], sloped[GROUPS];
    dots(heads, width, gradient, o, inner);
    dots(heads, width, gradient, p, sloped);
    UNROLL for (int q = 0; q < PADDED(width) / LANES; ++q)
        VEC(G + q * LANES) = CVEC(gradient + q * LANES) * by_head(heads, state + heads, q);
    UNROLL for (int g = 0; g < GROUP(heads); ++g) {
        sloped[g] -= inner[g] * by_head(heads, state + 2 * heads, g);
        inner[g] *= by_head(heads, state + heads, g);
    }
    memcpy(G + width, z + width + heads, sizeof(float) * heads);
    memcpy(G + width + heads, state, sizeof(float) * heads);
    put(heads, G + width + 2 * heads, inner);
    put(heads, G + width + 3 * heads, sloped);
}

/* A row's e and leaky'(t) e again, in the place of s_dst and m; returns the sums of the latter times (G . o) / S. */
INLINE void again(int heads, int edges, const float *own, float *weights, float *sloped, const float *inner, vec *sums)
{
    vec source[GROUPS];
    UNROLL for (int g = 0; g < GROUP(heads); ++g) {
        source[g] = by_head(heads, own, g);
        sums[g] = (vec){0};
    }
    for (int at = 0; at < edges * heads; at += GROUP(heads) * LANES)
        UNROLL for (int g = 0; g < GROUP(heads); ++g) {
            const vec t = CVEC(weights + at + g * LANES) + source[g];
            const vec e = exponential(greater(t, SLOPE * t) - CVEC(sloped + at + g * LANES));
            const vec s = choice(t > (vec){0}, e, SLOPE * e);
            VEC(weights + at + g * LANES) = e;
            VEC(sloped + at + g * LANES) = s;
            sums[g] += s * CVEC(inner + at + g * LANES);
        }
    UNROLL for (int g = 0; g < GROUP(heads); ++g) sums[g] = head_sum(heads, sums[g]);
}

/* The gradients of row i of z and of its two scores, from the rows of G that its edges lead to */
INLINE void receive(
    int heads, int width, int64_t i, const neighbours *by, const float *G, const float *z, float *const *buffers,
    float *gradient)
{
    const int pitch = G_PITCH(heads, width), edges = (int)(by->offsets[i + 1] - by->offsets[i]);
    const int32_t *rows = by->rows + by->offsets[i];
    float S[WIDEST] __attribute__((aligned(64)));
    vec sums[GROUPS], product[GROUPS];
    fetch_ahead(edges, rows, G, pitch);
    for (int b = 0; b < 3; ++b)
        collect(heads, edges, rows, G, pitch, width + b * heads, b == 0 ? NEVER : 0, buffers[b]);
    again(heads, edges, z + width, buffers[0], buffers[1], buffers[2], sums);
    add_rows(heads, width, edges, rows, G, pitch, buffers[0], buffers[1], gradient, S);
    dots(heads, width, z, S, product);
    UNROLL for (int g = 0; g < GROUP(heads); ++g) product[g] -= sums[g];
    put(heads, gradient + width, product);
    memcpy(gradient + width + heads, G + i * pitch + width + 3 * heads, sizeof(float) * heads);
}

/* ---------------------------------------------------------------- row steps */

INLINE void elu(int rows, const float *X, const float *bias, float *out)
{
    for (int r = 0; r < rows; ++r) UNROLL for (int q = 0; q < H; q += LANES) {
        const vec z = CVEC(X + r * H + q) + CVEC(bias + q);
        VEC(out + r * H + q) = choice(z > (vec){0}, z, exponential(lesser(z, (vec){0})) - 1.0f);
    }
}

/* The gradient of elu's argument, in the place of that of its result `hidden` */
INLINE void elu_gradient(int rows, const float *hidden, float *gradient, float *bias)
{
    vec sum[H / LANES] = {{0}};
    for (int r = 0; r < rows; ++r) UNROLL for (int q = 0; q < H / LANES; ++q) {
        const vec h = CVEC(hidden + r * H + q * LANES), g = CVEC(gradient + r * H + q * LANES);
        const vec z = choice(h > (vec){0}, g, g * (h + 1.0f));
        VEC(gradient + r * H + q * LANES) = z;
        sum[q] += z;
    }
    for (int q = 0; q < H / LANES; ++q) VEC(bias + q * LANES) += sum[q];
}

/* ---------------------------------------------------------------- parameters */

/* Where the matrices (inputs x pitch) and biases of a layer lie in one array of PARAMETERS. */
static int inputs(int layer) { return layer == 0 ? FEATURES : HIDDEN; }
static int outputs(int layer) { return layer == LAYERS - 1 ? CLASSES : HIDDEN; }
static int heads_of(int layer) { return layer == LAYERS - 1 ? 1 : HEADS; }
static int z_pitch(int layer) { return layer == LAYERS - 1 ? ZC : ZH; }
static int64_t weight_at(int layer)
{
    int64_t at = 0;
    for (int l = 0; l < layer; ++l) at += (int64_t)inputs(l) * z_pitch(l) + (l == LAYERS - 1 ? C : H);
    return at;
}
static int64_t bias_at(int layer) { return weight_at(layer) + (int64_t)inputs(layer) * z_pitch(layer); }
/* Column o of torch's rows, head by head, in ours */
static int column(int heads, int width, int o) { return o % (width / heads) * heads + o / (width / heads); }

enum { WEIGHT, SOURCE, TARGET, BIAS, PER_LAYER };

static void pack(const float *const *given, float *packed, float *transposed)
{
    memset(packed, 0, sizeof(float) * PARAMETERS);
    memset(transposed, 0, sizeof(float) * (LAYERS - 1) * TRANSPOSED);
    for (int l = 0; l < LAYERS; ++l, given += PER_LAYER) {
        const int heads = heads_of(l), width = outputs(l), in = inputs(l), pitch = z_pitch(l);
        float *w = packed + weight_at(l), *b = packed + bias_at(l);
        for (int o = 0; o < width; ++o) {
            const int to = column(heads, width, o), head = o / (width / heads);
            b[to] = given[BIAS][o];
            for (int i = 0; i < in; ++i) {
                const float x = given[WEIGHT][(int64_t)o * in + i];
                float *row = w + (int64_t)(l == 0 ? i : column(HEADS, in, i)) * pitch;
                row[to] = x;
                row[width + head] += x * given[SOURCE][o];
                row[width + heads + head] += x * given[TARGET][o];
            }
        }
        if (l == LAYERS - 1)
            for (int o = CLASSES; o < C; ++o) b[o] = NEVER; /* a logit that is no class has no part in the softmax */
        if (l == 0) continue;
        for (int i = 0; i < in; ++i)
            for (int o = 0; o < width + 2 * heads; ++o)
                transposed[(l - 1) * (int64_t)TRANSPOSED + (int64_t)o * H + i] = w[(int64_t)i * pitch + o];
    }
}

/* The sum of the threads' gradients in torch's shapes: a score's column is one of z's by its vector. */
static void unpack(const gat *g, const float *const *given, float *const *made)
{
    float *sum = g->sums;
    add_threads(g->graph.threads, PARAMETERS, sum);
    for (int l = 0; l < LAYERS; ++l, given += PER_LAYER, made += PER_LAYER) {
        const int heads = heads_of(l), width = outputs(l), in = inputs(l), pitch = z_pitch(l);
        const float *w = sum + weight_at(l), *b = sum + bias_at(l);
        for (int o = 0; o < width; ++o) {
            const int from = column(heads, width, o), head = o / (width / heads);
            const float source = given[SOURCE][o], target = given[TARGET][o];
            float source_gradient = 0, target_gradient = 0;
            made[BIAS][o] = b[from];
            for (int i = 0; i < in; ++i) {
                const float *row = w + (int64_t)(l == 0 ? i : column(HEADS, in, i)) * pitch;
                const float x = given[WEIGHT][(int64_t)o * in + i];
                const float to_source = row[width + head], to_target = row[width + heads + head];
                made[WEIGHT][(int64_t)o * in + i] = row[from] + to_source * source + to_target * target;
                source_gradient += x * to_source;
                target_gradient += x * to_target;
            }
            made[SOURCE][o] = source_gradient;
            made[TARGET][o] = target_gradient;
        }
    }
}

/* ---------------------------------------------------------------- passes over the graph, by all threads together */

static void first_product(const gat *g)
{
    CHUNKS(&g->graph) BLOCKS(g->graph.in.chunks, i, rows)
        product(rows, FEATURES, ZH, g->x + i * FEATURES, FEATURES, g->packed, g->z[0] + i * ZH, 1);
}

/* From z of an inner layer to z of the next */
static void inner_layer(const gat *g, int l, float *const *buffers)
{
    ROWS(A, H);
    const float *w = g->packed + weight_at(l + 1);
    CHUNKS(&g->graph) BLOCKS(g->graph.in.chunks, i, rows) {
        float *o = g->mean[l] + i * H;
        for (int r = 0; r < rows; ++r)
            attend(
                HEADS, HIDDEN, i + r, &g->graph.in, g->z[l], buffers, o + r * H, g->sloped[l] + (i + r) * H,
                g->state[l] + (i + r) * STATE);
        elu(rows, o, g->packed + bias_at(l), A);
        if (l == LAYERS - 2) product(rows, HIDDEN, ZC, A, H, w, g->z[l + 1] + i * ZC, 0);
        else product(rows, HIDDEN, ZH, A, H, w, g->z[l + 1] + i * ZH, 0);
    }
}

/* The last layer, the loss, and the rows of G in `one` */
static double last_layer(const gat *g, float *const *buffers, float *total, float *chunk)
{
    const int l = LAYERS - 1;
    double loss = 0;
    ROWS(O, C);
    ROWS(P, C);
    ROWS(L, C);
    ROWS(state, 3);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.in.chunks, i, rows) {
            for (int r = 0; r < rows; ++r)
                attend(1, CLASSES, i + r, &g->graph.in, g->z[l], buffers, O + r * C, P + r * C, state + r * 3);
            memcpy(L, O, sizeof(float) * rows * C);
            loss += losses(
                rows, L, g->packed + bias_at(l), g->labels + i, 1.0f / g->graph.nodes, chunk + bias_at(l));
            for (int r = 0; r < rows; ++r)
                send(
                    1, CLASSES, L + r * C, O + r * C, P + r * C, state + r * 3, g->z[l] + (i + r) * ZC,
                    g->one + (i + r) * GC);
        }
        add_chunk(total, chunk, bias_at(l), C);
    }
    return loss;
}

/* From the rows of G of a later layer to the gradient of its matrix, and to those of G of the layer below. */
INLINE void backward_layer(
    const gat *g, int l, int heads, int width, const float *from, float *to, float *const *buffers, float *total,
    float *chunk)
{
    const int pitch = Z_PITCH(heads, width), below = l - 1;
    ROWS(D, Z_WIDEST);
    ROWS(A, H);
    ROWS(B, H);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.out.chunks, i, rows) {
            for (int r = 0; r < rows; ++r)
                receive(
                    heads, width, i + r, &g->graph.out, from, g->z[l] + (i + r) * pitch, buffers, D + r * pitch);
            elu(rows, g->mean[below] + i * H, g->packed + bias_at(below), A);
            outer(HIDDEN, pitch, rows, A, H, D, chunk + weight_at(l));
            product(rows, width + 2 * heads, H, D, pitch, g->transposed + below * (int64_t)TRANSPOSED, B, 0);
            elu_gradient(rows, A, B, chunk + bias_at(below));
            for (int r = 0; r < rows; ++r)
                send(
                    HEADS, HIDDEN, B + r * H, g->mean[below] + (i + r) * H, g->sloped[below] + (i + r) * H,
                    g->state[below] + (i + r) * STATE, g->z[below] + (i + r) * ZH, to + (i + r) * GH);
        }
        add_chunk(total, chunk, weight_at(l), HIDDEN * pitch);
        add_chunk(total, chunk, bias_at(below), H);
    }
}

static void first_backward(const gat *g, const float *from, float *const *buffers, float *total, float *chunk)
{
    ROWS(D, ZH);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.out.chunks, i, rows) {
            const float *x = g->x + i * FEATURES;
            for (int r = 0; r < rows; ++r) {
                for (int b = 0; b < FEATURES; b += 16) __builtin_prefetch(x + r * FEATURES + b);
                receive(HEADS, HIDDEN, i + r, &g->graph.out, from, g->z[0] + (i + r) * ZH, buffers, D + r * ZH);
            }
            outer(FEATURES, ZH, rows, x, FEATURES, D, chunk);
        }
        add_chunk(total, chunk, 0, FEATURES * ZH);
    }
}

/* The tables of rows.h, and the number of edges of the longest row */
static int64_t buffer_floats(const void *const *tables)
{
    return PADDED(*(const int64_t *)tables[GRAPH_TABLES] * HEADS) + GROUPS * LANES;
}

/* Floats that a step needs besides its arguments; `step` cuts them up. */
int64_t workspace_floats(int64_t nodes, int threads, const void *const *tables)
{
    const int64_t weights = PADDED(PARAMETERS) + (LAYERS - 1) * (int64_t)TRANSPOSED;
    const int64_t rows = (LAYERS - 1) * (ZH + 2 * H + STATE) + ZC + 2 * (GH > GC ? GH : GC);
    return nodes * rows + weights + threads * (2 * (int64_t)PADDED(PARAMETERS) + BUFFERS * buffer_floats(tables));
}

/* The loss; `given` and `made` are weight, a_src, a_dst and bias of each layer and their gradients, in torch's
   shapes. */
float step(
    int64_t nodes, int chunks, int threads, const void *const *tables, const float *x, const int64_t *labels,
    const float *const *given, float *const *made, float *workspace)
{
    gat g = {.graph = graph_of(nodes, chunks, threads, tables), .x = x, .labels = labels};
    const int gradients = GH > GC ? GH : GC;
    for (int l = 0; l < LAYERS; ++l) g.z[l] = cut(&workspace, nodes * (l == LAYERS - 1 ? ZC : ZH));
    for (int l = 0; l < LAYERS - 1; ++l) {
        g.mean[l] = cut(&workspace, nodes * H);
        g.sloped[l] = cut(&workspace, nodes * H);
        g.state[l] = cut(&workspace, nodes * STATE);
    }
    g.one = cut(&workspace, nodes * gradients);
    g.two = cut(&workspace, nodes * gradients);
    g.packed = cut(&workspace, PADDED(PARAMETERS));
    g.transposed = cut(&workspace, (LAYERS - 1) * (int64_t)TRANSPOSED);
    g.sums = cut(&workspace, threads * 2 * (int64_t)PADDED(PARAMETERS));
    g.buffer = buffer_floats(tables);
    g.buffers = workspace;
    pack(given, g.packed, g.transposed);
    double loss = 0;
#pragma omp parallel num_threads(threads) reduction(+ : loss)
    {
        const unsigned mode = flush_denormals();
        const int64_t thread = omp_get_thread_num();
        float *total = thread_sums(g.sums, PARAMETERS), *chunk = total + PADDED(PARAMETERS), *buffers[BUFFERS];
        for (int b = 0; b < BUFFERS; ++b) buffers[b] = g.buffers + (thread * BUFFERS + b) * g.buffer;
        first_product(&g);
        for (int l = 0; l < LAYERS - 1; ++l) inner_layer(&g, l, buffers);
        loss += last_layer(&g, buffers, total, chunk);
        backward_layer(&g, LAYERS - 1, 1, CLASSES, g.one, g.two, buffers, total, chunk);
        float *from = g.two, *to = g.one;
        for (int l = LAYERS - 2; l > 0; --l) {
            backward_layer(&g, l, HEADS, HIDDEN, from, to, buffers, total, chunk);
            float *swap = from;
            from = to, to = swap;
        }
        first_backward(&g, from, buffers, total, chunk);
        restore_denormals(mode);
    }
    unpack(&g, given, made);
    return (float)(loss / nodes);
}
