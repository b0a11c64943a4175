/* One hop along one relation: edges are picked for a range of nodes, by several threads, and their sources numbered in the order of the edges. */
#include <omp.h>

/* Nodes that make a further thread worth starting; tests set it to 1. */
#ifndef GRAIN
#define GRAIN 512
#endif
/* Nodes that a thread takes at a time. */
#ifndef SHARE
#define SHARE 256
#endif

typedef struct {
    int32_t worker;
    int64_t first, size;
} share;

/* What a sampler keeps from call to call; for one call at a time. */
typedef struct {
    int64_t types, relations, workers;
    table *tables;
    edges *taken;  /* of each relation */
    ints *counts;  /* of each relation: how many edges were taken for each node that was expanded, in order */
    worker *hands;
    share *shares;
    int64_t share_room;
} sampler;

static int team(int64_t n, int64_t threads) {
    int64_t useful = n / GRAIN + 1;
    return (int)(useful < threads ? useful : threads < 1 ? 1 : threads);
}

static int more_workers(sampler *s, int64_t count) {
    if (count <= s->workers) return 1;
    worker *made = realloc(s->hands, (size_t)count * sizeof *made);
    if (!made) return 0;
    memset(made + s->workers, 0, (size_t)(count - s->workers) * sizeof *made);
    s->hands = made;
    s->workers = count;
    return 1;
}

/* Exchanges nodes of the graph for their numbers in the batch; new ones come last, in order of first occurrence. */
static int number_dense(table *t, int32_t *near, int64_t size) {
    if (!reserve(&t->nodes, least(size, t->count) + 1)) return 0;
    int32_t *number = t->number, *nodes = t->nodes.at;
    int64_t n = t->nodes.size;
    for (int64_t e = 0; e < size; e++) {
        __builtin_prefetch(&number[near[least(e + AHEAD, size - 1)]], 1);
        int32_t v = near[e], found = number[v];
        /* Without a branch, for which way it went nobody could foresee. */
        int32_t is_new = found >> 31; /* all ones, or none */
        found = ((int32_t)n & is_new) | (found & ~is_new);
        number[v] = found;
        nodes[n] = v;
        n -= is_new;
        near[e] = found;
    }
    t->nodes.size = n;
    return 1;
}

/* The same where graphs are kept apart: a source is in the graph of its target. */
static int number_apart(table *t, int32_t *near, const int32_t *counts, const table *target, int64_t first, int64_t nodes) {
    for (int64_t i = 0; i < nodes; near += counts[i++]) {
        if (!keep_slots(t, counts[i]) || !reserve(&t->nodes, counts[i]) || !reserve(&t->roots, counts[i])) return 0;
        int32_t root = target->roots.at[first + i];
        for (int32_t e = 0; e < counts[i]; e++) {
            uint64_t key = key_of(root, near[e]);
            int64_t slot = slot_of(t, key);
            if (t->keys[slot] == NO_KEY) {
                t->keys[slot] = key;
                t->values[slot] = (int32_t)t->nodes.size;
                t->used++;
                t->nodes.at[t->nodes.size++] = near[e];
                t->roots.at[t->roots.size++] = root;
            }
            near[e] = t->values[slot];
        }
    }
    return 1;
}

static int number_sources(const hop *h, table *t, int32_t *near, int64_t size, const int32_t *counts, int64_t first, int64_t nodes) {
    if (h->method == INDUCED) return OK;
    if (t->nodes.size + size > INT32_MAX) return TOO_LARGE;
    int done = h->apart ? number_apart(t, near, counts, h->target, first, nodes) : number_dense(t, near, size);
    return done ? OK : NO_MEMORY;
}

/* Appends what was picked for each share, in the order of the shares. By one thread: it takes less than for others to begin. */
static int gather_shares(sampler *s, edges *all, int64_t shares) {
    int64_t total = 0;
    for (int64_t i = 0; i < shares; i++) total += s->shares[i].size;
    if (!reserve_edges(all, total)) return 0;
    for (int64_t i = 0; i < shares; i++) {
        const edges *from = &s->hands[s->shares[i].worker].out;
        int64_t first = s->shares[i].first, size = s->shares[i].size;
        if (!size) continue;
        memcpy(all->near + all->size, from->near + first, (size_t)size * sizeof *all->near);
        memcpy(all->edge + all->size, from->edge + first, (size_t)size * sizeof *all->edge);
        all->size += size;
    }
    return 1;
}

static int pick_shares(sampler *s, const hop *h, int64_t first, int64_t shares, int64_t nodes, int32_t *counts, int threads) {
    int enough = 1;
#pragma omp parallel for num_threads(threads) schedule(dynamic) reduction(&& : enough)
    for (int64_t i = 0; i < shares; i++) {
        int me = omp_get_thread_num();
        edges *out = &s->hands[me].out;
        int64_t before = out->size, from = i * SHARE;
        int done = pick_rows(h, &s->hands[me], first + from, least(SHARE, nodes - from), out, counts + from);
        s->shares[i] = (share){me, before, out->size - before};
        enough = enough && done;
    }
    return enough;
}

/* Takes edges for the nodes first, .., first + nodes - 1 of the batch. Returns OK, NO_MEMORY or TOO_LARGE. */
static int expand(sampler *s, const hop *h, int64_t number, int64_t first, int64_t nodes, int64_t threads) {
    edges *all = &s->taken[number];
    ints *counts = &s->counts[number];
    table *t = &s->tables[h->r.source];
    if (!reserve(counts, nodes)) return NO_MEMORY;
    int32_t *count = counts->at + counts->size;
    int T = team(nodes, threads);
    if (!more_workers(s, T)) return NO_MEMORY;
    if (T > 1) {
        int64_t shares = (nodes + SHARE - 1) / SHARE, start = all->size;
        if (!grow((void **)&s->shares, &s->share_room, shares, sizeof *s->shares)) return NO_MEMORY;
        for (int i = 0; i < T; i++) s->hands[i].out.size = 0;
        if (!pick_shares(s, h, first, shares, nodes, count, T)) return NO_MEMORY;
        if (!gather_shares(s, all, shares)) return NO_MEMORY;
        counts->size += nodes;
        return number_sources(h, t, all->near + start, all->size - start, count, first, nodes);
    }
    for (int64_t i = 0; i < nodes; i += ROWS) {
        int64_t start = all->size, few = least(ROWS, nodes - i);
        if (!pick_rows(h, s->hands, first + i, few, all, count + i)) return NO_MEMORY;
        int status = number_sources(h, t, all->near + start, all->size - start, count + i, first + i, few);
        if (status != OK) return status;
    }
    counts->size += nodes;
    return OK;
}
