/* One training step of a GCN by hand: the mean cross-entropy over all nodes and the gradients of all weights.

   FEATURES, HIDDEN, CLASSES and LAYERS (two or more) are defined in front of this text, tiles.h and rows.h. Nothing is
   kept from one step to the next but the graph. Written for FEATURES of at least 2 * HIDDEN: the first product comes
   before its sum.

   A layer is Z = d (A + I) d H W + b with d = degree^-1/2. Stored are scaled rows H' = d H, so that the sum over the
   neighbours needs no weights, and the loop of each node is what the sum starts from. The gradient of H' is
   S W^T with S = (A + I)^T d dZ, and that of W is H'^T S: backward sums each layer's narrow rows once. */

/* The padding of rows is 0 all the way, but for the logits'. */
enum {
    H = PADDED(HIDDEN),
    TRANSPOSED = (C > H ? C : H) * H, /* a transposed matrix of a later layer */
    PARAMETERS = FEATURES * H + H + (LAYERS - 2) * (H * H + H) + H * C + C,
};

typedef struct {
    graph graph; /* without loops */
    const float *scale, *x;
    const int64_t *labels;
    float *hidden[LAYERS - 1];  /* H' of each layer but the last, nodes x H */
    float *one, *two;           /* nodes x H: T, and the gradients on their way down */
    float *packed, *transposed; /* the weights: PARAMETERS, and TRANSPOSED for each later layer */
    float *sums;                /* see `thread_sums` */
} net;

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
static void pack(const float *const *given, float *packed, float *transposed)
{
    memset(packed, 0, sizeof(float) * PARAMETERS);
    memset(transposed, 0, sizeof(float) * (LAYERS - 1) * TRANSPOSED);
    for (int l = 0; l < LAYERS; ++l) {
        float *w = packed + weight_at(l), *b = packed + bias_at(l);
        float *t = transposed + (l > 0 ? l - 1 : 0) * (int64_t)TRANSPOSED;
        for (int o = 0; o < outputs(l); ++o) {
            b[o] = given[2 * l + 1][o];
            for (int i = 0; i < inputs(l); ++i) {
                w[(int64_t)i * pitch(l) + o] = given[2 * l][(int64_t)o * inputs(l) + i];
                if (l > 0) t[(int64_t)o * H + i] = given[2 * l][(int64_t)o * inputs(l) + i];
            }
        }
        if (l == LAYERS - 1)
            for (int o = CLASSES; o < C; ++o) b[o] = -1e30f;
    }
}

/* The sum of the threads' gradients in torch's shapes. */
static void unpack(const net *g, float *const *made)
{
    float *sum = g->sums;
    add_threads(g->graph.threads, PARAMETERS, sum);
    for (int l = 0; l < LAYERS; ++l) {
        const float *w = sum + weight_at(l), *b = sum + bias_at(l);
        for (int o = 0; o < outputs(l); ++o) {
            made[2 * l + 1][o] = b[o];
            for (int i = 0; i < inputs(l); ++i) made[2 * l][(int64_t)o * inputs(l) + i] = w[(int64_t)i * pitch(l) + o];
        }
    }
}

/* ---------------------------------------------------------------- passes over the graph, by all threads together */

static int64_t layer_floats(int layer) { return weight_at(layer + 1) - weight_at(layer); }

/* T = d X W */
static void first_product(const net *g)
{
    CHUNKS(&g->graph) BLOCKS(g->graph.in.chunks, i, rows) {
        product(rows, FEATURES, H, g->x + i * FEATURES, FEATURES, g->packed, g->one + i * H, 1);
        scaled(rows, g->scale + i, g->one + i * H);
    }
}

static void first_sum(const net *g)
{
    ROWS(S, H);
    CHUNKS(&g->graph) BLOCKS(g->graph.in.chunks, i, rows) {
        gather(H, 1, i, rows, &g->graph.in, g->one, S, NULL, 0);
        activate(rows, g->scale + i, S, g->packed + bias_at(0), g->hidden[0] + i * H);
    }
}

static void later_layer(const net *g, int l)
{
    ROWS(S, H);
    ROWS(Z, H);
    CHUNKS(&g->graph) BLOCKS(g->graph.in.chunks, i, rows) {
        gather(H, 1, i, rows, &g->graph.in, g->hidden[l - 1], S, NULL, 0);
        product(rows, H, H, S, H, g->packed + weight_at(l), Z, 0);
        activate(rows, g->scale + i, Z, g->packed + bias_at(l), g->hidden[l] + i * H);
    }
}

/* The last layer, the loss, and back to d dP, where P = d (A + I) H' goes into the last product: no logits are kept. */
static double last_layer(const net *g, float *total, float *chunk)
{
    const int l = LAYERS - 1;
    double loss = 0;
    ROWS(P, H);
    ROWS(L, C);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.in.chunks, i, rows) {
            gather(H, 1, i, rows, &g->graph.in, g->hidden[l - 1], P, NULL, 0);
            scaled(rows, g->scale + i, P);
            product(rows, H, C, P, H, g->packed + weight_at(l), L, 0);
            loss += losses(rows, L, g->packed + bias_at(l), g->labels + i, 1.0f / g->graph.nodes, chunk + bias_at(l));
            outer(H, C, rows, P, H, L, chunk + weight_at(l));
            product(rows, CLASSES, H, L, C, g->transposed + (l - 1) * (int64_t)TRANSPOSED, g->one + i * H, 0);
            scaled(rows, g->scale + i, g->one + i * H);
        }
        add_chunk(total, chunk, weight_at(l), layer_floats(l));
    }
    return loss;
}

/* From d dP, in `one`, to d dZ of the layer below, in `two`. */
static void below_last(const net *g, float *total, float *chunk)
{
    const int l = LAYERS - 2;
    ROWS(G, H);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.out.chunks, i, rows) {
            gather(H, 1, i, rows, &g->graph.out, g->one, G, g->hidden[l] + i * H, H * 4);
            deactivate(rows, g->scale + i, G, g->hidden[l] + i * H, g->two + i * H, chunk + bias_at(l));
        }
        add_chunk(total, chunk, weight_at(l), layer_floats(l));
    }
}

/* From d dZ of layer l, in `from`, to the gradient of its matrix and to d dZ of the layer below, in `to`. */
static void backward_layer(const net *g, int l, const float *from, float *to, float *total, float *chunk)
{
    ROWS(S, H);
    ROWS(G, H);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.out.chunks, i, rows) {
            const float *hidden = g->hidden[l - 1] + i * H;
            gather(H, 1, i, rows, &g->graph.out, from, S, hidden, H * 4);
            outer(H, H, rows, hidden, H, S, chunk + weight_at(l));
            product(rows, H, H, S, H, g->transposed + (l - 1) * (int64_t)TRANSPOSED, G, 0);
            deactivate(rows, g->scale + i, G, hidden, to + i * H, chunk + bias_at(l - 1));
        }
        add_chunk(total, chunk, weight_at(l - 1), layer_floats(l - 1));
        add_chunk(total, chunk, weight_at(l), layer_floats(l));
    }
}

static void first_backward(const net *g, const float *from, float *total, float *chunk)
{
    ROWS(S, H);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.out.chunks, i, rows) {
            const float *x = g->x + i * FEATURES;
            gather(H, 1, i, rows, &g->graph.out, from, S, x, FEATURES * 4);
            scaled(rows, g->scale + i, S);
            outer(FEATURES, H, rows, x, FEATURES, S, chunk + weight_at(0));
        }
        add_chunk(total, chunk, weight_at(0), layer_floats(0));
    }
}

/* Floats that a step needs besides its arguments; `step` cuts them up. */
int64_t workspace_floats(int64_t nodes, int threads, const void *const *tables)
{
    (void)tables;
    const int64_t weights = PADDED(PARAMETERS) + (LAYERS - 1) * (int64_t)TRANSPOSED;
    return (LAYERS + 1) * nodes * H + weights + 2 * (int64_t)threads * PADDED(PARAMETERS);
}

/* `tables` are those of rows.h and d; `given` are weight and bias of each layer. */
static net net_of(
    int64_t nodes, int chunks, int threads, const void *const *tables, const float *x, const int64_t *labels,
    const float *const *given, float *workspace)
{
    net g = {
        .graph = graph_of(nodes, chunks, threads, tables), .scale = tables[GRAPH_TABLES], .x = x, .labels = labels,
    };
    for (int l = 0; l < LAYERS - 1; ++l) g.hidden[l] = cut(&workspace, nodes * H);
    g.one = cut(&workspace, nodes * H);
    g.two = cut(&workspace, nodes * H);
    g.packed = cut(&workspace, PADDED(PARAMETERS));
    g.transposed = cut(&workspace, (LAYERS - 1) * (int64_t)TRANSPOSED);
    g.sums = workspace;
    pack(given, g.packed, g.transposed);
    return g;
}
