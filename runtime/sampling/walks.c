/* Random walks, and pairs of nodes that no edge joins. */

/* Walks of `length` steps from each start, along edges from a node to what its row lists: nodes[w * (length + 1) + t] is where walk w is after t
 * steps, and ids[w * length + t] the edge of step t, -1 where there was none. Before each step a walk returns to its start with probability
 * `back` of 2^32; where no edge leads on it stays, or ends (nodes -1) if it shall. Walk w draws as walk `first` + w. */
typedef struct {
    relation r;
    stream s;
    const int32_t *starts;
    int64_t count, length, first;
    uint64_t back;
    int32_t weighted, ends;
    int32_t *nodes, *ids;
} walk_request;

static void step_walk(const walk_request *q, int64_t w, int64_t t, const uint32_t *words, int64_t stride) {
    int32_t *node = q->nodes + w * (q->length + 1) + t, *id = q->ids + w * q->length + t;
    int32_t v = *node;
    node[1] = -1, *id = -1;
    if (v < 0) return;
    if (words[3 * stride] < q->back) v = q->starts[w];
    int64_t low = q->r.indptr[v], n = q->r.indptr[v + 1] - low;
    if (n == 0) {
        if (!q->ends) node[1] = v;
        return;
    }
    int32_t picked;
    if (q->weighted) by_sums(q->r.sums + low, n, 1, words, stride, &picked);
    else picked = (int32_t)below((uint32_t)n, words[0], q->s, (uint32_t)(4 * t), (uint32_t)(q->first + w), 0);
    int64_t p = low + picked;
    node[1] = q->r.indices[p];
    *id = q->r.ids ? q->r.ids[p] : (int32_t)p;
}

/* A few walks together, so that what one waits for is asked for while others go on. */
static void walk_few(const walk_request *q, int64_t w, int64_t few) {
    uint32_t c0[ROWS] = {0}, c1[ROWS] = {0}, c2[ROWS] = {0}, words[4 * ROWS];
    for (int64_t i = 0; i < few; i++) q->nodes[(w + i) * (q->length + 1)] = q->starts[w + i];
    for (int64_t t = 0; t < q->length; t++) {
        for (int64_t i = 0; i < few; i++) {
            int32_t v = q->nodes[(w + i) * (q->length + 1) + t];
            __builtin_prefetch(&q->r.indptr[v < 0 ? 0 : v]);
            c0[i] = (uint32_t)t, c1[i] = (uint32_t)(q->first + w + i);
        }
        philox_many(q->s, c0, c1, c2, few, words);
        for (int64_t i = 0; i < few; i++) {
            int32_t v = q->nodes[(w + i) * (q->length + 1) + t];
            if (v >= 0) __builtin_prefetch(&q->r.indices[q->r.indptr[v]]);
        }
        for (int64_t i = 0; i < few; i++) step_walk(q, w + i, t, words + i, few);
    }
}

void gnnc_walk(walk_request *q, uint64_t seed, uint32_t epoch, uint64_t step, int64_t threads) {
    q->s = stream_of(seed, epoch, step, 0, USE_WALK);
#pragma omp parallel for num_threads(team(q->count, threads)) schedule(static)
    for (int64_t w = 0; w < q->count; w += ROWS) walk_few(q, w, least(ROWS, q->count - w));
}

/* ---- pairs without an edge ----------------------------------------------------------------------------------------------------------- */

/* sources[ptr[v]] .. sources[ptr[v + 1]] are distinct and ascend: those that an edge leads from to v. free_before[v] is how many of the `count`
 * nodes lead to none of 0 .. v - 1, summed. */
typedef struct {
    const int64_t *ptr, *free_before;
    const int32_t *sources;
    int64_t count, targets;
} non_edges;

/* The k-th node, counted from 0, that no edge leads from to v. */
static int32_t free_node(const non_edges *g, int64_t v, int64_t k) {
    const int32_t *taken = g->sources + g->ptr[v];
    int64_t low = 0, high = g->ptr[v + 1] - g->ptr[v]; /* how many taken ones come before it */
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (taken[middle] - middle <= k) low = middle + 1;
        else high = middle;
    }
    return (int32_t)(k + low);
}

/* An integer in [0, n), each with exactly the same probability, of draw (a, b); as `below`, with 64 bits. */
static int64_t below_long(uint64_t n, stream s, uint32_t a, uint32_t b) {
    for (uint32_t attempt = 0;; attempt++) {
        uint32_t c[4] = {a, b, 0, attempt};
        philox(s, c);
        __uint128_t product = (__uint128_t)((uint64_t)c[0] << 32 | c[1]) * n;
        if ((uint64_t)product >= n || (uint64_t)product >= -n % n) return (int64_t)(product >> 64);
    }
}

/* m pairs, each drawn from all that no edge joins; there is one at least. Pair i draws as pair first + i. */
void gnnc_free_pairs(const non_edges *g, int64_t m, int64_t first, uint64_t seed, uint32_t epoch, uint64_t step, int32_t *src, int32_t *dst,
                     int64_t threads) {
    stream s = stream_of(seed, epoch, step, 0, USE_NEGATIVE);
    uint64_t all = (uint64_t)g->free_before[g->targets];
#pragma omp parallel for num_threads(team(m, threads)) schedule(static)
    for (int64_t i = 0; i < m; i++) {
        int64_t k = below_long(all, s, (uint32_t)(first + i), (uint32_t)((first + i) >> 32));
        int64_t v = upto(g->free_before, g->targets + 1, k) - 1;
        dst[i] = (int32_t)v;
        src[i] = free_node(g, v, k - g->free_before[v]);
    }
}

/* For each of n targets `each` nodes that no edge leads from to it, drawn of all such; -1 where there is none. */
void gnnc_free_sources(const non_edges *g, const int32_t *targets, int64_t n, int64_t each, int64_t first, uint64_t seed, uint32_t epoch,
                       uint64_t step, int32_t *src, int64_t threads) {
    stream s = stream_of(seed, epoch, step, 1, USE_NEGATIVE);
#pragma omp parallel for num_threads(team(n * each, threads)) schedule(static)
    for (int64_t i = 0; i < n * each; i++) {
        int64_t v = targets[i / each];
        uint64_t room = (uint64_t)(g->free_before[v + 1] - g->free_before[v]);
        int64_t number = first * each + i;
        src[i] = room ? free_node(g, v, below_long(room, s, (uint32_t)number, (uint32_t)(number >> 32))) : -1;
    }
}
