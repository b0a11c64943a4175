/* One training step of a GIN by hand, with MLPs of two layers: the mean cross-entropy over all nodes and the gradients
   of all parameters.

   FEATURES, HIDDEN, CLASSES and LAYERS (two or more) are defined in front of this text, tiles.h and rows.h. Nothing is
   kept from one step to the next but the graph. Written for FEATURES of at least 2 * HIDDEN: the first product comes
   before its sum.

   A layer is U = relu((A + I) H W1 + b1), Z = U W2 + b2. With S = (A + I)^T dV for the gradient dV of relu's argument,
   those of W1 and H are H^T S and S W1^T: backward sums each layer's narrow rows once. */

enum {
    H = PADDED(HIDDEN),
    TRANSPOSED = (C > H ? C : H) * (C > H ? C : H),
    PARAMETERS = FEATURES * H + H * H + 2 * H + (LAYERS - 2) * (2 * H * H + 2 * H) + H * C + C * C + 2 * C,
};

typedef struct {
    graph graph; /* with its own loops: those of A */
    const float *x;
    const int64_t *labels;
    float *inner[LAYERS - 1], *hidden[LAYERS - 1]; /* U and relu(Z), nodes x H */
    float *one, *two;                              /* nodes x H: X W1, and the gradients on their way down */
    float *packed, *transposed;                    /* the weights: PARAMETERS, and 2 TRANSPOSED for each layer */
    float *sums;                                   /* see `thread_sums` */
} net;

/* ---------------------------------------------------------------- parameters */

enum { WEIGHT1, BIAS1, WEIGHT2, BIAS2, PER_LAYER }; /* as torch has them */

static int inputs(int layer) { return layer == 0 ? FEATURES : HIDDEN; }
static int outputs(int layer) { return layer == LAYERS - 1 ? CLASSES : HIDDEN; }
static int pitch(int layer) { return layer == LAYERS - 1 ? C : H; }
static int64_t one_floats(int layer) { return (int64_t)(layer == 0 ? FEATURES : H) * pitch(layer); }
static int64_t layer_floats(int layer)
{
    return one_floats(layer) + (int64_t)pitch(layer) * pitch(layer) + 2 * pitch(layer);
}
/* W1, b1, W2 and b2 follow one another. */
static int64_t w1_at(int layer)
{
    int64_t at = 0;
    for (int l = 0; l < layer; ++l) at += layer_floats(l);
    return at;
}
static int64_t b1_at(int layer) { return w1_at(layer) + one_floats(layer); }
static int64_t w2_at(int layer) { return b1_at(layer) + pitch(layer); }
static int64_t b2_at(int layer) { return w2_at(layer) + (int64_t)pitch(layer) * pitch(layer); }
static float *w1_transposed(const net *g, int layer) { return g->transposed + 2 * layer * (int64_t)TRANSPOSED; }
static float *w2_transposed(const net *g, int layer) { return w1_transposed(g, layer) + TRANSPOSED; }

static void pack(const net *g, const float *const *given)
{
    memset(g->packed, 0, sizeof(float) * PARAMETERS);
    memset(g->transposed, 0, sizeof(float) * 2 * LAYERS * TRANSPOSED);
    for (int l = 0; l < LAYERS; ++l, given += PER_LAYER) {
        float *t1 = l == 0 ? NULL : w1_transposed(g, l), *bias = g->packed + b2_at(l);
        pack_matrix(inputs(l), outputs(l), pitch(l), given[WEIGHT1], g->packed + w1_at(l), t1);
        pack_matrix(outputs(l), outputs(l), pitch(l), given[WEIGHT2], g->packed + w2_at(l), w2_transposed(g, l));
        memcpy(g->packed + b1_at(l), given[BIAS1], sizeof(float) * outputs(l));
        if (l == LAYERS - 1) pack_logits_bias(given[BIAS2], bias);
        else memcpy(bias, given[BIAS2], sizeof(float) * HIDDEN);
    }
}

static void unpack(const net *g, float *const *made)
{
    add_threads(g->graph.threads, PARAMETERS, g->sums);
    for (int l = 0; l < LAYERS; ++l, made += PER_LAYER) {
        unpack_matrix(inputs(l), outputs(l), pitch(l), g->sums + w1_at(l), made[WEIGHT1]);
        unpack_matrix(outputs(l), outputs(l), pitch(l), g->sums + w2_at(l), made[WEIGHT2]);
        memcpy(made[BIAS1], g->sums + b1_at(l), sizeof(float) * outputs(l));
        memcpy(made[BIAS2], g->sums + b2_at(l), sizeof(float) * outputs(l));
    }
}

/* ---------------------------------------------------------------- passes over the graph, by all threads together */

/* X W1 */
static void first_product(const net *g)
{
    CHUNKS(&g->graph) BLOCKS(g->graph.in.chunks, i, rows)
        product(rows, FEATURES, H, g->x + i * FEATURES, FEATURES, g->packed, g->one + i * H, 1);
}

/* From V without its bias to U and relu(Z) of an inner layer */
INLINE void mlp(const net *g, int l, int64_t i, int rows, const float *V)
{
    ROWS(Z, H);
    float *inner = g->inner[l] + i * H;
    relu(H, rows, V, g->packed + b1_at(l), inner);
    product(rows, H, H, inner, H, g->packed + w2_at(l), Z, 0);
    relu(H, rows, Z, g->packed + b2_at(l), g->hidden[l] + i * H);
}

static void first_sum(const net *g)
{
    ROWS(S, H);
    CHUNKS(&g->graph) BLOCKS(g->graph.in.chunks, i, rows) {
        gather(H, 1, i, rows, &g->graph.in, g->one, S, NULL, 0);
        mlp(g, 0, i, rows, S);
    }
}

static void later_layer(const net *g, int l)
{
    ROWS(S, H);
    ROWS(V, H);
    CHUNKS(&g->graph) BLOCKS(g->graph.in.chunks, i, rows) {
        gather(H, 1, i, rows, &g->graph.in, g->hidden[l - 1], S, NULL, 0);
        product(rows, H, H, S, H, g->packed + w1_at(l), V, 0);
        mlp(g, l, i, rows, V);
    }
}

/* The last layer, the loss, and back to the gradient of P = (A + I) H, in `one` */
static double last_layer(const net *g, float *total, float *chunk)
{
    const int l = LAYERS - 1;
    double loss = 0;
    ROWS(P, H);
    ROWS(U, C);
    ROWS(L, C);
    ROWS(D, C);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.in.chunks, i, rows) {
            gather(H, 1, i, rows, &g->graph.in, g->hidden[l - 1], P, NULL, 0);
            product(rows, H, C, P, H, g->packed + w1_at(l), U, 0);
            relu(C, rows, U, g->packed + b1_at(l), U);
            product(rows, CLASSES, C, U, C, g->packed + w2_at(l), L, 0);
            loss += losses(rows, L, g->packed + b2_at(l), g->labels + i, 1.0f / g->graph.nodes, chunk + b2_at(l));
            outer(C, C, rows, U, C, L, chunk + w2_at(l));
            product(rows, CLASSES, C, L, C, w2_transposed(g, l), D, 0);
            relu_gradient(C, rows, U, D, D, chunk + b1_at(l));
            outer(H, C, rows, P, H, D, chunk + w1_at(l));
            product(rows, CLASSES, H, D, C, w1_transposed(g, l), g->one + i * H, 0);
        }
        add_chunk(total, chunk, w1_at(l), layer_floats(l));
    }
    return loss;
}

/* From the gradient G of relu(Z) of layer l to dV, in `out`, with the gradients of b2, W2 and b1 */
INLINE void mlp_gradient(const net *g, int l, int64_t i, int rows, float *G, float *out, float *chunk)
{
    ROWS(D, H);
    const float *inner = g->inner[l] + i * H;
    relu_gradient(H, rows, g->hidden[l] + i * H, G, G, chunk + b2_at(l));
    outer(H, H, rows, inner, H, G, chunk + w2_at(l));
    product(rows, H, H, G, H, w2_transposed(g, l), D, 0);
    relu_gradient(H, rows, inner, D, out, chunk + b1_at(l));
}

/* From the gradient of P, in `one`, to dV of the layer below, in `two` */
static void below_last(const net *g, float *total, float *chunk)
{
    const int l = LAYERS - 2;
    ROWS(G, H);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.out.chunks, i, rows) {
            gather(H, 1, i, rows, &g->graph.out, g->one, G, g->hidden[l] + i * H, H * 4);
            mlp_gradient(g, l, i, rows, G, g->two + i * H, chunk);
        }
        add_chunk(total, chunk, b1_at(l), layer_floats(l) - one_floats(l));
    }
}

/* From dV of layer l, in `from`, to the gradient of its W1 and to dV of the layer below, in `to` */
static void backward_layer(const net *g, int l, const float *from, float *to, float *total, float *chunk)
{
    ROWS(S, H);
    ROWS(G, H);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.out.chunks, i, rows) {
            const float *hidden = g->hidden[l - 1] + i * H;
            gather(H, 1, i, rows, &g->graph.out, from, S, hidden, H * 4);
            outer(H, H, rows, hidden, H, S, chunk + w1_at(l));
            product(rows, H, H, S, H, w1_transposed(g, l), G, 0);
            mlp_gradient(g, l - 1, i, rows, G, to + i * H, chunk);
        }
        add_chunk(total, chunk, b1_at(l - 1), layer_floats(l - 1) - one_floats(l - 1));
        add_chunk(total, chunk, w1_at(l), one_floats(l));
    }
}

static void first_backward(const net *g, const float *from, float *total, float *chunk)
{
    ROWS(S, H);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.out.chunks, i, rows) {
            const float *x = g->x + i * FEATURES;
            gather(H, 1, i, rows, &g->graph.out, from, S, x, FEATURES * 4);
            outer(FEATURES, H, rows, x, FEATURES, S, chunk);
        }
        add_chunk(total, chunk, 0, one_floats(0));
    }
}

/* Floats that a step needs besides its arguments; `step` cuts them up. */
int64_t workspace_floats(int64_t nodes, int threads, const void *const *tables)
{
    (void)tables;
    const int64_t weights = PADDED(PARAMETERS) + 2 * LAYERS * (int64_t)TRANSPOSED;
    return 2 * LAYERS * nodes * H + weights + 2 * (int64_t)threads * PADDED(PARAMETERS);
}

/* `given` are W1, b1, W2 and b2 of each layer. */
static net net_of(
    int64_t nodes, int chunks, int threads, const void *const *tables, const float *x, const int64_t *labels,
    const float *const *given, float *workspace)
{
    net g = {.graph = graph_of(nodes, chunks, threads, tables), .x = x, .labels = labels};
    for (int l = 0; l < LAYERS - 1; ++l) {
        g.inner[l] = cut(&workspace, nodes * H);
        g.hidden[l] = cut(&workspace, nodes * H);
    }
    g.one = cut(&workspace, nodes * H);
    g.two = cut(&workspace, nodes * H);
    g.packed = cut(&workspace, PADDED(PARAMETERS));
    g.transposed = cut(&workspace, 2 * LAYERS * (int64_t)TRANSPOSED);
    g.sums = workspace;
    pack(&g, given);
    return g;
}
