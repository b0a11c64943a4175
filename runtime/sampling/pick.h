/* Which of a node's incoming edges are taken. */
/* INDUCED takes those whose sources are in the batch. */
enum { UNIFORM = 0, WEIGHTED = 1, LAST = 2, LABOR = 3, INDUCED = 4 };

/* The incoming edges of each node of `target` type: those at indptr[v] .. indptr[v + 1] come from `indices` and have the ids `ids`, or their
 * positions where that is NULL. `weights` are positive, `sums` their running sums within a node; `times` ascend within a node. */
typedef struct {
    const int64_t *indptr;
    const int32_t *indices, *ids;
    const double *weights, *sums;
    const int64_t *times;
    int64_t source, target;
} relation;

/* What one worker needs at hand; kept from call to call. */
typedef struct {
    edges out;
    uint32_t *counters, *words, *set;
    double *keys;
    int64_t counter_room, word_room, set_room, key_room;
} worker;

static void free_worker(worker *w) {
    free(w->out.near);
    free(w->out.edge);
    free(w->counters);
    free(w->words);
    free(w->set);
    free(w->keys);
}

/* How to pick from a relation at one hop, for nodes of the table `target`. In a batch whose graphs are kept `apart` each node has the number of
 * its graph (roots), and each graph a name, which its random numbers go by, and where the relation has times, the latest time it may see. */
typedef struct {
    relation r;
    int64_t fanout;
    int method, replace, apart;
    stream s;
    const table *source, *target;
    const int32_t *names;
    const int64_t *limits;
} hop;

enum { ROWS = 64, PIECE = 256, FEW = 48, AHEAD = 16, LAG = 4 };

/* Whether each row picks by itself; tests set it to 1. */
#ifndef BY_ROW
#define BY_ROW 0
#endif

/* A few nodes at a time: what is known of each. */
typedef struct {
    int64_t low[ROWS], degree[ROWS], taken[ROWS], block[ROWS], start[ROWS];
    uint32_t node[ROWS], root[ROWS];
} rows;

static int64_t upto(const int64_t *times, int64_t n, int64_t limit) {
    int64_t low = 0;
    while (n > 0) {
        int64_t half = n / 2;
        if (times[low + half] <= limit) low += half + 1, n -= half + 1;
        else n = half;
    }
    return low;
}

/* Whether a node of this degree has nothing drawn: the last of its edges are taken, or all. */
static int is_whole(const hop *h, int64_t degree) {
    return h->method == LAST || h->fanout <= 0 || degree == 0 || (!h->replace && degree <= h->fanout);
}

/* The 32-bit draws a row takes. */
static int64_t draws(const hop *h, int64_t degree) {
    if (is_whole(h, degree) || h->method == LABOR) return 0;
    if (h->method == UNIFORM) return h->fanout;
    return 2 * (h->replace ? h->fanout : degree);
}

/* Floyd's algorithm (J. Bentley, R. Floyd, "A sample of brilliance", 1987): k of n, each set of k equally likely. For each of the numbers last =
 * n - k .. n - 1 one of 0 .. last is drawn, and `last` taken where that has come before. */

/* For few. Word t lies at words[t % 4 * stride + t / 4 * step]. */
static void floyd_few(stream s, const uint32_t *words, int64_t stride, int64_t step, uint32_t k, uint32_t n, uint32_t node, uint32_t root,
                      int32_t *picked, int64_t apart) {
    for (uint32_t t = 0; t < k; t++) {
        uint32_t last = n - k + t, x = below(last + 1, words[(t & 3) * stride + (t >> 2) * step], s, t, node, root);
        for (uint32_t i = 0; i < t; i++)
            if (picked[i * apart] == (int32_t)x) {
                x = last;
                break;
            }
        picked[t * apart] = (int32_t)x;
    }
}

/* For few, of several rows at once, `lanes` of them: all compare with all that came before, which takes less than to foresee where it is worth
 * the while. Word t of row r lies at words[t % 4 * stride + t / 4 * lanes + r], its pick t goes to picks[t * ROWS + r]. Returns whether no word
 * had to be drawn again; else the picks are of no use. */
static int floyd_together(const uint32_t *words, int64_t stride, int64_t lanes, uint32_t k, const uint32_t *n, int32_t *picks) {
    uint32_t refused = 0;
    for (uint32_t t = 0; t < k; t++) {
        const uint32_t *word = words + (t & 3) * stride + (t >> 2) * lanes;
        int32_t *mine = picks + t * ROWS;
        int32_t seen[ROWS] = {0};
#pragma omp simd reduction(| : refused)
        for (int64_t r = 0; r < lanes; r++) {
            uint32_t bound = n[r] - k + t + 1;
            uint64_t product = (uint64_t)word[r] * bound;
            refused |= (uint32_t)product < bound;
            mine[r] = (int32_t)(product >> 32);
        }
        for (uint32_t i = 0; i < t; i++) {
            const int32_t *other = picks + i * ROWS;
#pragma omp simd
            for (int64_t r = 0; r < lanes; r++) seen[r] |= -(int32_t)(other[r] == mine[r]); /* all ones, or none */
        }
#pragma omp simd
        for (int64_t r = 0; r < lanes; r++) mine[r] ^= (mine[r] ^ (int32_t)(n[r] - k + t)) & seen[r];
    }
    return !refused;
}

/* For many. `set` has `slots` entries of 0, a power of two and at least 2 k, and has 0 again after. */
static void floyd_many(stream s, const uint32_t *words, int64_t stride, uint32_t k, uint32_t n, uint32_t node, uint32_t root, uint32_t *set,
                       int64_t slots, int32_t *picked) {
    for (uint32_t t = 0; t < k; t++) {
        uint32_t last = n - k + t, x = below(last + 1, words[(t & 3) * stride + (t >> 2)], s, t, node, root);
        int64_t slot = (int64_t)(x * 0x9E3779B9u) & (slots - 1);
        while (set[slot] && set[slot] != x + 1) slot = (slot + 1) & (slots - 1);
        if (set[slot]) {
            x = last;
            slot = (int64_t)(x * 0x9E3779B9u) & (slots - 1);
            while (set[slot]) slot = (slot + 1) & (slots - 1);
        }
        set[slot] = x + 1;
        picked[t] = (int32_t)x;
    }
    memset(set, 0, (size_t)slots * sizeof *set);
}

/* The k items with the least -log(u) / weight, u uniform (P. Efraimidis, P. Spirakis, "Weighted random sampling with a reservoir", 2006): as
 * drawn one after the other without replacement, with probabilities in proportion to the weights. A heap has the greatest of them on top. */
static void lightest(const double *weights, int64_t n, int64_t k, const uint32_t *words, int64_t stride, double *keys, int32_t *picked) {
    int64_t size = 0;
    for (int64_t j = 0; j < n; j++) {
        const uint32_t *two = words + (j & 1) * 2 * stride + (j >> 1);
        double key = -log(unit(two[0], two[stride])) / weights[j];
        if (size == k && key >= keys[0]) continue;
        int64_t at;
        if (size < k) { /* from the bottom up */
            for (at = size++; at > 0 && keys[(at - 1) / 2] < key; at = (at - 1) / 2)
                keys[at] = keys[(at - 1) / 2], picked[at] = picked[(at - 1) / 2];
        } else { /* in the place of the top, and down */
            at = 0;
            for (int64_t child; (child = 2 * at + 1) < k; at = child) {
                if (child + 1 < k && keys[child + 1] > keys[child]) child++;
                if (keys[child] <= key) break;
                keys[at] = keys[child], picked[at] = picked[child];
            }
        }
        keys[at] = key, picked[at] = (int32_t)j;
    }
}

/* k items with replacement, with probabilities in proportion to the weights whose running sums are given. */
static void by_sums(const double *sums, int64_t n, int64_t k, const uint32_t *words, int64_t stride, int32_t *picked) {
    for (int64_t t = 0; t < k; t++) {
        const uint32_t *two = words + (t & 1) * 2 * stride + (t >> 1);
        double x = unit(two[0], two[stride]) * sums[n - 1];
        int64_t low = 0, high = n - 1; /* the first sum above x, the last where rounding left none */
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (sums[middle] > x) high = middle;
            else low = middle + 1;
        }
        picked[t] = (int32_t)low;
    }
}

/* Writes how far behind its first edge each of a row's picks lies. */
static void pick_row(const hop *h, worker *w, const rows *at, int64_t i, int64_t blocks, int64_t slots, int32_t *picked) {
    int64_t n = at->degree[i], k = at->taken[i];
    const uint32_t *words = w->words + at->block[i];
    if (h->method == WEIGHTED && h->replace) {
        by_sums(h->r.sums + at->low[i], n, k, words, blocks, picked);
    } else if (h->method == WEIGHTED) {
        lightest(h->r.weights + at->low[i], n, k, words, blocks, w->keys, picked);
    } else if (h->replace) {
        for (uint32_t t = 0; t < (uint32_t)k; t++)
            picked[t] = (int32_t)below((uint32_t)n, words[(t & 3) * blocks + (t >> 2)], h->s, t, at->node[i], at->root[i]);
    } else {
        floyd_many(h->s, words, blocks, (uint32_t)k, (uint32_t)n, at->node[i], at->root[i], w->set, slots, picked);
    }
}

/* LABOR-0 (M. Balin, U. Catalyurek, "Layer-neighbor sampling: defusing neighborhood explosion in GNNs", NeurIPS 2023): a source has one number
 * u in a layer, the same for all nodes it leads to; a node of degree d takes it where u < k / d. words[j] is that of its edge j. */
static int64_t pick_labor(int64_t k, int64_t n, const uint32_t *words, int32_t *picked) {
    uint64_t limit = (uint64_t)(((double)k / (double)n) * 0x1p32);
    int64_t taken = 0;
    for (int64_t j = 0; j < n; j++)
        if (words[j] < limit) picked[taken++] = (int32_t)j;
    return taken;
}

/* Reads where the edges of a few nodes lie, and asks for what will be read of them. */
static void read_rows(const hop *h, int64_t first, int64_t count, rows *at) {
    const int32_t *nodes = h->target->nodes.at + first;
    const int32_t *graphs = h->apart ? h->target->roots.at + first : NULL;
    for (int64_t i = 0; i < count; i++) __builtin_prefetch(&h->r.indptr[nodes[i]]);
    for (int64_t i = 0; i < count; i++) {
        int64_t v = nodes[i], low = h->r.indptr[v], n = h->r.indptr[v + 1] - low;
        int32_t graph = graphs ? graphs[i] : 0;
        if (h->r.times) n = upto(h->r.times + low, n, h->limits[graph]);
        at->low[i] = low;
        at->degree[i] = n;
        at->taken[i] = h->fanout < 0 || n == 0 ? n : h->replace ? h->fanout : least(n, h->fanout);
        at->node[i] = (uint32_t)v;
        at->root[i] = graphs ? 1 + (uint32_t)h->names[graph] : 0;
        int64_t last = low + least(n, at->taken[i]); /* where all are taken they lie in two lines mostly */
        __builtin_prefetch(&h->r.indices[low]);
        __builtin_prefetch(&h->r.indices[last]);
        if (h->r.ids) __builtin_prefetch(&h->r.ids[low]);
        if (h->r.ids) __builtin_prefetch(&h->r.ids[last]);
    }
}

/* Makes the words of a few rows: draw t of row i is word t % 4 of the block at->block[i] + t / 4. Returns the number of blocks, or -1. */
static int64_t draw_rows(const hop *h, worker *w, rows *at, int64_t count) {
    int64_t blocks = 0;
    for (int64_t i = 0; i < count; i++) {
        at->block[i] = blocks;
        blocks += (draws(h, at->degree[i]) + 3) / 4;
    }
    if (!grow((void **)&w->counters, &w->counter_room, 3 * blocks, sizeof *w->counters)) return -1;
    if (!grow((void **)&w->words, &w->word_room, 4 * blocks, sizeof *w->words)) return -1;
    uint32_t *c0 = w->counters, *c1 = c0 + blocks, *c2 = c1 + blocks;
    for (int64_t i = 0; i < count; i++) {
        int64_t end = i + 1 < count ? at->block[i + 1] : blocks;
        for (int64_t b = at->block[i]; b < end; b++) {
            c0[b] = (uint32_t)(b - at->block[i]);
            c1[b] = at->node[i];
            c2[b] = at->root[i];
        }
    }
    philox_many(h->s, c0, c1, c2, blocks, w->words);
    return blocks;
}

/* Picks a few edges of each row where something is drawn, of all such rows at once: pick t of row i is picks[t * ROWS + at->block[i]]. */
static int pick_together(const hop *h, worker *w, rows *at, int64_t count, int32_t *picks) {
    uint32_t n[ROWS], node[ROWS] = {0}, root[ROWS] = {0}, k = (uint32_t)h->fanout;
    int64_t drawn = 0;
    for (int64_t i = 0; i < count; i++) {
        if (is_whole(h, at->degree[i])) continue;
        n[drawn] = (uint32_t)at->degree[i], node[drawn] = at->node[i], root[drawn] = at->root[i];
        at->block[i] = drawn++;
    }
    int64_t lanes = (drawn + 15) / 16 * 16, blocks = lanes * ((k + 3) / 4);
    for (int64_t r = drawn; r < lanes; r++) n[r] = k;
    if (!grow((void **)&w->counters, &w->counter_room, 3 * blocks, sizeof *w->counters)) return 0;
    if (!grow((void **)&w->words, &w->word_room, 4 * blocks, sizeof *w->words)) return 0;
    for (int64_t b = 0; b < blocks; b += lanes)
        for (int64_t r = 0; r < lanes; r++) {
            w->counters[b + r] = (uint32_t)(b / lanes);
            w->counters[blocks + b + r] = node[r];
            w->counters[2 * blocks + b + r] = root[r];
        }
    philox_many(h->s, w->counters, w->counters + blocks, w->counters + 2 * blocks, blocks, w->words);
    if (!BY_ROW && floyd_together(w->words, blocks, lanes, k, n, picks)) return 1;
    for (int64_t r = 0; r < drawn; r++) floyd_few(h->s, w->words + r, blocks, lanes, k, n[r], node[r], root[r], picks + r, ROWS);
    return 1;
}

/* The same for LABOR, where a word belongs to the source of an edge. */
static int64_t labor_words(const hop *h, worker *w, int64_t low, int64_t n, uint32_t root) {
    if (!grow((void **)&w->counters, &w->counter_room, 3 * n, sizeof *w->counters)) return 0;
    if (!grow((void **)&w->words, &w->word_room, 4 * n, sizeof *w->words)) return 0;
    uint32_t *c0 = w->counters, *c1 = c0 + n, *c2 = c1 + n;
    for (int64_t j = 0; j < n; j++) c0[j] = 0, c1[j] = (uint32_t)h->r.indices[low + j], c2[j] = root;
    philox_many(h->s, c0, c1, c2, n, w->words);
    return 1;
}

/* Room for a set of the fan-out, and for its keys. Returns the slots of the set, or -1. */
static int64_t prepare_worker(const hop *h, worker *w) {
    int64_t slots = 0;
    if (h->fanout > FEW && !h->replace && h->method == UNIFORM) {
        int64_t had = w->set_room;
        for (slots = 64; slots < 2 * h->fanout;) slots *= 2;
        if (!grow((void **)&w->set, &w->set_room, slots, sizeof *w->set)) return -1;
        if (w->set_room > had) memset(w->set + had, 0, (size_t)(w->set_room - had) * sizeof *w->set);
    }
    if (h->method == WEIGHTED && h->fanout > 0 && !grow((void **)&w->keys, &w->key_room, h->fanout, sizeof *w->keys)) return -1;
    return slots;
}

/* Takes the last edges of a row, as many as are to be taken, to `to` and on. */
static void copy_row(const hop *h, const rows *at, int64_t i, edges *out, int64_t to) {
    int64_t k = at->taken[i], from = at->low[i] + at->degree[i] - k;
    const int32_t *indices = h->r.indices + from, *ids = h->r.ids ? h->r.ids + from : NULL;
    for (int64_t t = 0; t < k; t++) out->near[to + t] = indices[t];
    for (int64_t t = 0; t < k; t++) out->edge[to + t] = ids ? ids[t] : (int32_t)(from + t);
}

/* Exchanges the positions of picked edges for what lies there, which has been asked for. */
static void read_picks(const hop *h, edges *out, int64_t from, int64_t count) {
    const int32_t *indices = h->r.indices, *ids = h->r.ids;
    for (int64_t e = from; e < from + count; e++) {
        int32_t p = out->edge[e];
        out->near[e] = indices[p];
        if (ids) out->edge[e] = ids[p];
    }
}

/* Picks from a row where something is drawn, where it was not done `together`; their positions go to `picked`. Returns their number, or -1. */
static int64_t draw_picks(const hop *h, worker *w, const rows *at, int64_t i, int64_t blocks, int64_t slots, const int32_t *together,
                          int32_t *picked) {
    int64_t low = at->low[i], taken = at->taken[i];
    if (together) {
        for (int64_t t = 0; t < taken; t++) picked[t] = together[t * ROWS + at->block[i]];
    } else if (h->method == LABOR) {
        if (!labor_words(h, w, low, at->degree[i], at->root[i])) return -1;
        taken = pick_labor(h->fanout, at->degree[i], w->words, picked);
    } else {
        pick_row(h, w, at, i, blocks, slots, picked);
    }
    for (int64_t t = 0; t < taken; t++) {
        picked[t] += (int32_t)low;
        __builtin_prefetch(&h->r.indices[picked[t]]);
        if (h->r.ids) __builtin_prefetch(&h->r.ids[picked[t]]);
    }
    return taken;
}

/* Appends the picks of nodes[first], .., nodes[first + count - 1] to `out`, ROWS nodes at most, and writes how many each has. What a row has
 * picked is read some rows later. */
static int pick_few(const hop *h, worker *w, int64_t slots, int64_t first, int64_t count, edges *out, int32_t *counts) {
    rows at;
    int32_t picks[FEW * ROWS], *together = h->method == UNIFORM && !h->replace && h->fanout > 0 && h->fanout <= FEW ? picks : NULL;
    int64_t total = 0, blocks = 0;
    read_rows(h, first, count, &at);
    for (int64_t i = 0; i < count; i++) total += h->method == LABOR ? at.degree[i] : at.taken[i];
    if (!reserve_edges(out, total)) return 0;
    if (together ? !pick_together(h, w, &at, count, picks) : (blocks = draw_rows(h, w, &at, count)) < 0) return 0;
    for (int64_t i = 0; i < count + LAG; i++) {
        if (i >= LAG && !is_whole(h, at.degree[i - LAG])) read_picks(h, out, at.start[i - LAG], counts[i - LAG]);
        if (i >= count) continue;
        at.start[i] = out->size;
        counts[i] = (int32_t)at.taken[i];
        if (is_whole(h, at.degree[i])) {
            copy_row(h, &at, i, out, out->size);
        } else {
            int64_t taken = draw_picks(h, w, &at, i, blocks, slots, together, out->edge + out->size);
            if (taken < 0) return 0;
            counts[i] = (int32_t)taken;
        }
        out->size += counts[i];
    }
    return 1;
}

/* Appends the edges to the same nodes whose sources are in the batch, with the sources' numbers. */
static int pick_induced(const hop *h, int64_t first, int64_t count, edges *out, int32_t *counts) {
    rows at;
    int64_t total = 0;
    read_rows(h, first, count, &at);
    for (int64_t i = 0; i < count; i++) total += at.degree[i];
    if (!reserve_edges(out, total)) return 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t before = out->size;
        int32_t graph = h->apart ? h->target->roots.at[first + i] : 0;
        for (int64_t p = at.low[i], end = p + at.degree[i]; p < end; p++) {
            int32_t v = h->r.indices[p], found = h->apart ? find(h->source, graph, v) : h->source->number[v];
            out->near[out->size] = found;
            out->edge[out->size] = h->r.ids ? h->r.ids[p] : (int32_t)p;
            out->size += found >= 0;
        }
        counts[i] = (int32_t)(out->size - before);
    }
    return 1;
}

/* The same for any number of nodes; a row with many draws comes alone, so that words stay in the caches. */
static int pick_rows(const hop *h, worker *w, int64_t first, int64_t count, edges *out, int32_t *counts) {
    int64_t slots = prepare_worker(h, w);
    if (slots < 0) return 0;
    int64_t most_draws = h->method == UNIFORM && h->fanout > 0 ? h->fanout : 1;
    int64_t step = most(1, least(ROWS, 4 * PIECE / most_draws));
    for (int64_t i = 0; i < count; i += step) {
        int64_t few = least(step, count - i);
        int done = h->method == INDUCED ? pick_induced(h, first + i, few, out, counts + i)
                                        : pick_few(h, w, slots, first + i, few, out, counts + i);
        if (!done) return 0;
    }
    return 1;
}

/* sums[e] = the sum of the weights of a node's edges up to e, in their order. */
void gnnc_running_sums(const int64_t *indptr, int64_t n, const double *weights, double *sums, int64_t threads) {
#pragma omp parallel for num_threads((int)most(threads, 1)) schedule(static)
    for (int64_t v = 0; v < n; v++) {
        double sum = 0;
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++) sums[e] = sum += weights[e];
    }
}
