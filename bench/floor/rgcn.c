/* One training step of an RGCN of one layer by hand: the mean cross-entropy over all nodes and the gradients of all
   parameters.

   FEATURES, CLASSES and RELATIONS are defined in front of this text, tiles.h and rows.h. The layer is
   H W_root + b + the sum over relations r of M_r H W_r with M_r the mean over the neighbours in r; a row of M_r H that
   is not 0 is a pair of relation and destination. Pairs lie by (part, relation, destination), where a part is a range
   of nodes: whoever works on a part owns its rows of the result, and takes up a relation's matrix once for all its
   pairs. The gradient of W_r is a sum over its pairs of (M_r H)^T dZ, cut into tasks of at most some thousand pairs
   because some relations have nearly all edges; each task computes its means again, which is less work than to keep
   them. */

enum {
    F = PADDED(FEATURES),
    PAIRS = 36,            /* that pass through a product together */
    MATRIX = FEATURES * C, /* padded, as all matrices here */
    ROOT = MATRIX + C,     /* the gradients of W_root and b */
};

/* As the tables come */
typedef struct {
    const int64_t *parts;         /* where the rows of each part begin */
    const int64_t *part_segments; /* where the segments of each part begin */
    const int32_t *segments;      /* of pairs of one part and relation: relation, first pair, end */
    const int32_t *targets;       /* of pairs */
    const int64_t *pair_edges;    /* where the edges of each pair begin */
    const int32_t *sources;       /* of edges */
    const int32_t *tasks;         /* by relation: relation, first pair, end */
    const int64_t *relation_tasks;
    const int64_t *counts; /* of parts and tasks */
} relations;

typedef struct {
    relations tables;
    int64_t nodes;
    int threads;
    const float *x, *weights; /* nodes x F; RELATIONS x FEATURES x C */
    const int64_t *labels;
    float *root;   /* W_root and b */
    float *out;    /* nodes x C: logits, then their gradients */
    float *slots;  /* the gradient of each task: FEATURES x C */
    float *sums;   /* see `thread_sums`: the gradients of W_root and b */
} rgcn;

/* S[pairs][F]: the mean of each pair's rows */
INLINE void means(const relations *t, const float *x, int64_t first, int pairs, float *S)
{
    for (int p = 0; p < pairs; ++p) {
        const int64_t begin = t->pair_edges[first + p], end = t->pair_edges[first + p + 1];
        const float share = 1.0f / (end - begin);
        UNROLL for (int at = 0; at < F; at += GATHER_VECTORS * LANES) {
            vec sum[GATHER_VECTORS];
            UNROLL for (int q = 0; q < GATHER_VECTORS; ++q) sum[q] = (vec){0};
            for (int64_t e = begin; e < end; ++e)
                UNROLL for (int q = 0; q < GATHER_VECTORS && at + q * LANES < F; ++q)
                    sum[q] += CVEC(x + (int64_t)t->sources[e] * F + at + q * LANES);
            UNROLL for (int q = 0; q < GATHER_VECTORS && at + q * LANES < F; ++q)
                VEC(S + p * F + at + q * LANES) = share * sum[q];
        }
    }
}

#define PAIR_ROWS(name, width) float name[PAIRS * (width)] __attribute__((aligned(64)))
#define PAIR_BLOCKS(range, first, pairs)                              \
    for (int64_t first = (range)[1]; first < (range)[2]; first += PAIRS) \
        for (int pairs = (range)[2] - first < PAIRS ? (int)((range)[2] - first) : PAIRS, once = 1; once; once = 0)

/* out += M_r H W_r over the pairs of a segment */
INLINE void add_segment(const rgcn *g, const int32_t *segment)
{
    PAIR_ROWS(S, F);
    PAIR_ROWS(Z, C);
    PAIR_BLOCKS(segment, first, pairs) {
        means(&g->tables, g->x, first, pairs, S);
        product(pairs, FEATURES, C, S, F, g->weights + segment[0] * (int64_t)MATRIX, Z, 0);
        for (int p = 0; p < pairs; ++p) add_to(C, 1, Z + p * C, g->out + (int64_t)g->tables.targets[first + p] * C);
    }
}

/* The result, the loss and its gradient part by part */
static double forward(const rgcn *g, float *total, float *chunk)
{
    const relations *t = &g->tables;
    double loss = 0;
    ROWS(Z, C);
#pragma omp for schedule(dynamic, 1)
    for (int64_t part = 0; part < t->counts[0]; ++part) {
        const int64_t begin = t->parts[part], end = t->parts[part + 1];
        memset(g->out + begin * C, 0, sizeof(float) * (end - begin) * C);
        for (int64_t s = t->part_segments[part]; s < t->part_segments[part + 1]; ++s)
            add_segment(g, t->segments + 3 * s);
        for (int64_t i = begin; i < end; i += BLOCK) {
            const int rows = block_rows(i, end);
            float *out = g->out + i * C;
            product(rows, FEATURES, C, g->x + i * F, F, g->root, Z, 0);
            add_to(C, rows, Z, out);
            loss += losses(rows, out, g->root + MATRIX, g->labels + i, 1.0f / g->nodes, chunk + MATRIX);
            outer(FEATURES, C, rows, g->x + i * F, F, out, chunk);
        }
        add_chunk(total, chunk, 0, ROOT);
    }
    return loss;
}

/* The gradient of each task's relation */
static void weight_gradients(const rgcn *g)
{
    const relations *t = &g->tables;
    PAIR_ROWS(S, F);
    PAIR_ROWS(D, C);
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < t->counts[1]; ++task) {
        float *slot = g->slots + task * MATRIX;
        memset(slot, 0, sizeof(float) * MATRIX);
        PAIR_BLOCKS(t->tasks + 3 * task, first, pairs) {
            means(t, g->x, first, pairs, S);
            for (int p = 0; p < pairs; ++p)
                memcpy(D + p * C, g->out + (int64_t)t->targets[first + p] * C, sizeof(float) * C);
            outer(FEATURES, C, pairs, S, F, D, slot);
        }
    }
}

/* The sums of a relation's tasks, in torch's shape */
static void add_tasks(const rgcn *g, float *made)
{
    const int64_t *tasks = g->tables.relation_tasks;
#pragma omp for schedule(static)
    for (int r = 0; r < RELATIONS; ++r)
        for (int f = 0; f < FEATURES; ++f) {
            float *row = made + ((int64_t)r * FEATURES + f) * CLASSES;
            for (int o = 0; o < CLASSES; o += LANES) {
                vec sum = {0};
                for (int64_t t = tasks[r]; t < tasks[r + 1]; ++t) sum += CVEC(g->slots + t * MATRIX + f * C + o);
                memcpy(row + o, &sum, sizeof(float) * (CLASSES - o < LANES ? CLASSES - o : LANES));
            }
        }
}

/* `given` with rows padded, in `memory`; itself where they need no padding */
static const float *padded(int64_t rows, int width, int pitch, const float *given, float *memory)
{
    if (width == pitch) return given;
    memset(memory, 0, sizeof(float) * rows * pitch);
    for (int64_t r = 0; r < rows; ++r) memcpy(memory + r * pitch, given + r * width, sizeof(float) * width);
    return memory;
}
static int64_t padded_floats(int64_t rows, int width, int pitch) { return width == pitch ? 0 : rows * pitch; }

/* Floats that a step needs besides its arguments; `step` cuts them up. */
int64_t workspace_floats(int64_t nodes, int threads, const void *const *tables)
{
    const int64_t *counts = tables[8];
    const int64_t copies = padded_floats(nodes, FEATURES, F) + padded_floats(RELATIONS * FEATURES, CLASSES, C);
    return copies + nodes * C + ROOT + counts[1] * MATRIX + 2 * (int64_t)threads * PADDED(ROOT);
}

/* The loss. `given` and `made` are W, W_root and b and their gradients, in torch's shapes. */
float step(
    int64_t nodes, int chunks, int threads, const void *const *tables, const float *x, const int64_t *labels,
    const float *const *given, float *const *made, float *workspace)
{
    (void)chunks;
    rgcn g = {
        .tables = {
            tables[0], tables[1], tables[2], tables[3], tables[4], tables[5], tables[6], tables[7], tables[8],
        },
        .nodes = nodes, .threads = threads, .labels = labels,
    };
    g.x = padded(nodes, FEATURES, F, x, cut(&workspace, padded_floats(nodes, FEATURES, F)));
    g.weights = padded(
        RELATIONS * FEATURES, CLASSES, C, given[0],
        cut(&workspace, padded_floats(RELATIONS * FEATURES, CLASSES, C)));
    g.out = cut(&workspace, nodes * C);
    g.root = cut(&workspace, ROOT);
    g.slots = cut(&workspace, g.tables.counts[1] * MATRIX);
    g.sums = workspace;
    memset(g.root, 0, sizeof(float) * ROOT);
    for (int f = 0; f < FEATURES; ++f) memcpy(g.root + f * C, given[1] + f * CLASSES, sizeof(float) * CLASSES);
    pack_logits_bias(given[2], g.root + MATRIX);
    double loss = 0;
#pragma omp parallel num_threads(threads) reduction(+ : loss)
    {
        const unsigned mode = flush_denormals();
        float *total = thread_sums(g.sums, ROOT), *chunk = total + PADDED(ROOT);
        loss += forward(&g, total, chunk);
        weight_gradients(&g);
        add_tasks(&g, made[0]);
        restore_denormals(mode);
    }
    add_threads(threads, ROOT, g.sums);
    for (int f = 0; f < FEATURES; ++f) memcpy(made[1] + f * CLASSES, g.sums + f * C, sizeof(float) * CLASSES);
    memcpy(made[2], g.sums + MATRIX, sizeof(float) * CLASSES);
    return (float)(loss / nodes);
}
