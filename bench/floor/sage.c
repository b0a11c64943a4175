/* One training step of a GraphSAGE with means by hand: the mean cross-entropy over all nodes and the gradients of all
   parameters.

   FEATURES, HIDDEN, CLASSES and LAYERS (two or more) are defined in front of this text, tiles.h and rows.h. Nothing is
   kept from one step to the next but the graph. Written for FEATURES of at least 2 * HIDDEN: the first product comes
   before its mean.

   A layer is Z = M H Wl + b + H Wr, with the mean M = d A and d = 1 / degree. With S = A^T (d dZ), the gradients of Wl,
   Wr and H are H^T S, H^T dZ and S Wl^T + dZ Wr^T: backward sums each layer's narrow rows once. */

enum {
    H = PADDED(HIDDEN),
    TRANSPOSED = (C > H ? C : H) * H,
    PARAMETERS = 2 * FEATURES * H + H + (LAYERS - 2) * (2 * H * H + H) + 2 * H * C + C,
};

typedef struct {
    graph graph;
    const float *share, *degree, *x; /* d, and 1 / d */
    const int64_t *labels;
    float *hidden[LAYERS - 1];       /* nodes x H */
    float *one, *two;                /* nodes x H: products, and the gradients on their way down */
    float *packed, *transposed;      /* the weights: PARAMETERS, and 2 TRANSPOSED for each later layer */
    float *sums;                     /* see `thread_sums` */
} net;

/* ---------------------------------------------------------------- parameters */

enum { LEFT, BIAS, RIGHT, PER_LAYER }; /* as torch has them */

static int inputs(int layer) { return layer == 0 ? FEATURES : HIDDEN; }
static int outputs(int layer) { return layer == LAYERS - 1 ? CLASSES : HIDDEN; }
static int pitch(int layer) { return layer == LAYERS - 1 ? C : H; }
static int64_t matrix_floats(int layer) { return (int64_t)(layer == 0 ? FEATURES : H) * pitch(layer); }
static int64_t layer_floats(int layer) { return 2 * matrix_floats(layer) + pitch(layer); }
static int64_t left_at(int layer)
{
    int64_t at = 0;
    for (int l = 0; l < layer; ++l) at += layer_floats(l);
    return at;
}
static int64_t right_at(int layer) { return left_at(layer) + matrix_floats(layer); }
static int64_t bias_at(int layer) { return left_at(layer) + 2 * matrix_floats(layer); }

static void pack(const float *const *given, float *packed, float *transposed)
{
    memset(packed, 0, sizeof(float) * PARAMETERS);
    memset(transposed, 0, sizeof(float) * 2 * (LAYERS - 1) * TRANSPOSED);
    for (int l = 0; l < LAYERS; ++l, given += PER_LAYER) {
        float *left = l == 0 ? NULL : transposed + 2 * (l - 1) * (int64_t)TRANSPOSED;
        float *right = l == 0 ? NULL : left + TRANSPOSED, *bias = packed + bias_at(l);
        pack_matrix(inputs(l), outputs(l), pitch(l), given[LEFT], packed + left_at(l), left);
        pack_matrix(inputs(l), outputs(l), pitch(l), given[RIGHT], packed + right_at(l), right);
        if (l == LAYERS - 1) pack_logits_bias(given[BIAS], bias);
        else memcpy(bias, given[BIAS], sizeof(float) * HIDDEN);
    }
}

static void unpack(const net *g, float *const *made)
{
    add_threads(g->graph.threads, PARAMETERS, g->sums);
    for (int l = 0; l < LAYERS; ++l, made += PER_LAYER) {
        unpack_matrix(inputs(l), outputs(l), pitch(l), g->sums + left_at(l), made[LEFT]);
        unpack_matrix(inputs(l), outputs(l), pitch(l), g->sums + right_at(l), made[RIGHT]);
        memcpy(made[BIAS], g->sums + bias_at(l), sizeof(float) * outputs(l));
    }
}

/* ---------------------------------------------------------------- passes over the graph, by all threads together */

/* X Wl and X Wr */
static void first_product(const net *g)
{
    CHUNKS(&g->graph) BLOCKS(g->graph.in.chunks, i, rows) {
        const float *x = g->x + i * FEATURES;
        product(rows, FEATURES, H, x, FEATURES, g->packed + left_at(0), g->one + i * H, 1);
        product(rows, FEATURES, H, x, FEATURES, g->packed + right_at(0), g->two + i * H, 0);
    }
}

static void first_sum(const net *g)
{
    ROWS(S, H);
    CHUNKS(&g->graph) BLOCKS(g->graph.in.chunks, i, rows) {
        gather(H, 0, i, rows, &g->graph.in, g->one, S, g->two + i * H, H * 4);
        scale_rows(H, rows, g->share + i, S);
        add_to(H, rows, g->two + i * H, S);
        relu(H, rows, S, g->packed + bias_at(0), g->hidden[0] + i * H);
    }
}

static void later_layer(const net *g, int l)
{
    ROWS(S, H);
    ROWS(Z, H);
    ROWS(Y, H);
    CHUNKS(&g->graph) BLOCKS(g->graph.in.chunks, i, rows) {
        const float *hidden = g->hidden[l - 1];
        gather(H, 0, i, rows, &g->graph.in, hidden, S, hidden + i * H, H * 4);
        scale_rows(H, rows, g->share + i, S);
        product(rows, H, H, S, H, g->packed + left_at(l), Z, 0);
        product(rows, H, H, hidden + i * H, H, g->packed + right_at(l), Y, 0);
        add_to(H, rows, Y, Z);
        relu(H, rows, Z, g->packed + bias_at(l), g->hidden[l] + i * H);
    }
}

/* The last layer, the loss, and back to the gradients of the means, times d, and of the rows themselves */
static double last_layer(const net *g, float *total, float *chunk)
{
    const int l = LAYERS - 1;
    const float *left = g->transposed + 2 * (l - 1) * (int64_t)TRANSPOSED;
    double loss = 0;
    ROWS(P, H);
    ROWS(L, C);
    ROWS(Y, C);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.in.chunks, i, rows) {
            const float *hidden = g->hidden[l - 1];
            gather(H, 0, i, rows, &g->graph.in, hidden, P, hidden + i * H, H * 4);
            scale_rows(H, rows, g->share + i, P);
            product(rows, H, C, P, H, g->packed + left_at(l), L, 0);
            product(rows, H, C, hidden + i * H, H, g->packed + right_at(l), Y, 0);
            add_to(C, rows, Y, L);
            loss += losses(rows, L, g->packed + bias_at(l), g->labels + i, 1.0f / g->graph.nodes, chunk + bias_at(l));
            outer(H, C, rows, P, H, L, chunk + left_at(l));
            outer(H, C, rows, hidden + i * H, H, L, chunk + right_at(l));
            product(rows, CLASSES, H, L, C, left, g->one + i * H, 0);
            product(rows, CLASSES, H, L, C, left + TRANSPOSED, g->two + i * H, 0);
            scale_rows(H, rows, g->share + i, g->one + i * H);
        }
        add_chunk(total, chunk, left_at(l), layer_floats(l));
    }
    return loss;
}

/* From these, in `one` and `two`, to d dZ of the layer below, in `two` */
static void below_last(const net *g, float *total, float *chunk)
{
    const int l = LAYERS - 2;
    ROWS(G, H);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.out.chunks, i, rows) {
            float *own = g->two + i * H;
            gather(H, 0, i, rows, &g->graph.out, g->one, G, own, H * 4);
            add_to(H, rows, own, G);
            relu_gradient(H, rows, g->hidden[l] + i * H, G, own, chunk + bias_at(l));
            scale_rows(H, rows, g->share + i, own);
        }
        add_chunk(total, chunk, bias_at(l), H);
    }
}

/* S and dZ of rows, from d dZ */
INLINE void sums_of(
    const net *g, int64_t i, int rows, const float *from, float *S, float *D, const float *next, int stream)
{
    gather(H, 0, i, rows, &g->graph.out, from, S, next, stream);
    memcpy(D, from + i * H, sizeof(float) * rows * H);
    scale_rows(H, rows, g->degree + i, D);
}

/* From d dZ of layer l, in `from`, to the gradients of its matrices and to d dZ of the layer below, in `to` */
static void backward_layer(const net *g, int l, const float *from, float *to, float *total, float *chunk)
{
    const float *left = g->transposed + 2 * (l - 1) * (int64_t)TRANSPOSED;
    ROWS(S, H);
    ROWS(D, H);
    ROWS(G, H);
    ROWS(Y, H);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.out.chunks, i, rows) {
            const float *hidden = g->hidden[l - 1] + i * H;
            sums_of(g, i, rows, from, S, D, hidden, H * 4);
            outer(H, H, rows, hidden, H, S, chunk + left_at(l));
            outer(H, H, rows, hidden, H, D, chunk + right_at(l));
            product(rows, H, H, S, H, left, G, 0);
            product(rows, H, H, D, H, left + TRANSPOSED, Y, 0);
            add_to(H, rows, Y, G);
            relu_gradient(H, rows, hidden, G, to + i * H, chunk + bias_at(l - 1));
            scale_rows(H, rows, g->share + i, to + i * H);
        }
        add_chunk(total, chunk, bias_at(l - 1), H);
        add_chunk(total, chunk, left_at(l), 2 * matrix_floats(l));
    }
}

static void first_backward(const net *g, const float *from, float *total, float *chunk)
{
    ROWS(S, H);
    ROWS(D, H);
    CHUNKS(&g->graph) {
        BLOCKS(g->graph.out.chunks, i, rows) {
            const float *x = g->x + i * FEATURES;
            sums_of(g, i, rows, from, S, D, x, FEATURES * 4);
            outer(FEATURES, H, rows, x, FEATURES, S, chunk + left_at(0));
            outer(FEATURES, H, rows, x, FEATURES, D, chunk + right_at(0));
        }
        add_chunk(total, chunk, left_at(0), 2 * matrix_floats(0));
    }
}

/* Floats that a step needs besides its arguments; `step` cuts them up. */
int64_t workspace_floats(int64_t nodes, int threads, const void *const *tables)
{
    (void)tables;
    const int64_t weights = PADDED(PARAMETERS) + 2 * (LAYERS - 1) * (int64_t)TRANSPOSED;
    return (LAYERS + 1) * nodes * H + weights + 2 * (int64_t)threads * PADDED(PARAMETERS);
}

/* `tables` are those of rows.h, d and 1 / d; `given` are Wl, b and Wr of each layer. */
static net net_of(
    int64_t nodes, int chunks, int threads, const void *const *tables, const float *x, const int64_t *labels,
    const float *const *given, float *workspace)
{
    net g = {
        .graph = graph_of(nodes, chunks, threads, tables), .share = tables[GRAPH_TABLES],
        .degree = tables[GRAPH_TABLES + 1], .x = x, .labels = labels,
    };
    for (int l = 0; l < LAYERS - 1; ++l) g.hidden[l] = cut(&workspace, nodes * H);
    g.one = cut(&workspace, nodes * H);
    g.two = cut(&workspace, nodes * H);
    g.packed = cut(&workspace, PADDED(PARAMETERS));
    g.transposed = cut(&workspace, 2 * (LAYERS - 1) * (int64_t)TRANSPOSED);
    g.sums = workspace;
    pack(given, g.packed, g.transposed);
    return g;
}
