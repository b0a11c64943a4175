/* Batches of neighbours: seeds in, a batch out. */

typedef struct {
    const relation *relations;
    const int64_t *fanouts; /* hops x relations; -1 takes all */
    int64_t hops;
    int32_t method, replace;
    int32_t again; /* whether every node is expanded at every hop (message-flow blocks), else once, at the hop after it was met */
    int32_t apart; /* whether each seed has a graph of its own */
    int32_t induced; /* whether the edges are in the end all those between the nodes that were met; graphs then lie one behind the other */
    int32_t wide;  /* whether numbers are written as int64, else int32 */
    uint64_t seed, step;
    uint32_t epoch, tied; /* tied: whether the layers of LABOR share their numbers */
    const int32_t *const *seeds; /* of each type */
    const int64_t *seed_counts;
    const int32_t *const *graphs; /* of each seed the number of its graph, where they are kept apart */
    const int32_t *names;
    const int64_t *limits;
    int64_t graph_count;
} request;

/* What a call made: `size` bytes in one block of memory, and where in it what lies; offsets in bytes. The block is the caller's where its `room`
 * is enough, else a new one, which `free` takes back. Of a type: nodes, graphs. Of a
 * relation: sources, targets (right behind the sources), ids, ptr, and then the entries of ptr. */
typedef struct {
    char *block;
    int64_t room, size;
    int64_t *met;   /* types x (hops + 1): the nodes of a type after each hop */
    int64_t *found; /* relations x (hops + 1): the edges of a relation after each hop */
    int64_t *type_offsets, *relation_offsets;
} batch;

void gnnc_sampler_free(sampler *s) {
    if (!s) return;
    for (int64_t t = 0; s->tables && t < s->types; t++) free_table(&s->tables[t]);
    for (int64_t r = 0; r < s->relations; r++) {
        if (s->taken) free(s->taken[r].near), free(s->taken[r].edge);
        if (s->counts) free(s->counts[r].at);
    }
    for (int64_t w = 0; w < s->workers; w++) free_worker(&s->hands[w]);
    free(s->tables);
    free(s->taken);
    free(s->counts);
    free(s->hands);
    free(s->shares);
    free(s);
}

/* What calls on a graph with so many nodes of each type need; NULL where there is no memory. */
sampler *gnnc_sampler_new(int64_t types, int64_t relations, const int64_t *counts) {
    sampler *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->types = types, s->relations = relations;
    s->tables = calloc((size_t)most(types, 1), sizeof *s->tables);
    s->taken = calloc((size_t)most(relations, 1), sizeof *s->taken);
    s->counts = calloc((size_t)most(relations, 1), sizeof *s->counts);
    if (!s->tables || !s->taken || !s->counts || !more_workers(s, 1)) {
        gnnc_sampler_free(s);
        return NULL;
    }
    for (int64_t t = 0; t < types; t++) s->tables[t].count = counts[t];
    return s;
}

/* ---- the output ---------------------------------------------------------------------------------------------------------------------- */

/* These are called by all threads of a team, and wait for none. */

/* Copies ids, the width of int64 or of int32. */
static void put(const int32_t *from, int64_t n, int wide, char *to) {
    if (wide) {
        int64_t *out = (int64_t *)to;
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < n; i++) out[i] = from[i];
    } else {
        int32_t *out = (int32_t *)to;
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < n; i++) out[i] = from[i];
    }
}

/* The targets of the edges that begin at `first`, by their ptr. */
static void put_targets(const int64_t *ptr, int64_t nodes, int wide, char *to, int64_t first) {
    if (wide) {
        int64_t *out = (int64_t *)to + first;
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < nodes; i++)
            for (int64_t e = ptr[i]; e < ptr[i + 1]; e++) out[e] = i;
    } else {
        int32_t *out = (int32_t *)to + first;
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < nodes; i++)
            for (int64_t e = ptr[i]; e < ptr[i + 1]; e++) out[e] = (int32_t)i;
    }
}

static int64_t claim(int64_t *end, int64_t items, int64_t bytes) {
    int64_t start = *end;
    *end = (start + items * bytes + 63) / 64 * 64;
    return start;
}

/* The layers of a relation that have a ptr of their own, and the nodes of layer l that were expanded, counted from the first. */
static int64_t layers(const request *q) { return q->again ? q->hops : 1; }
static int64_t layer_nodes(const request *q, const batch *out, int64_t target, int64_t l) {
    return out->met[target * (q->hops + 1) + (q->again ? l : q->hops)];
}

static void lay_out(const sampler *s, const request *q, batch *out, int64_t *end) {
    int64_t width = q->wide ? 8 : 4;
    for (int64_t t = 0; t < s->types; t++) {
        int64_t n = s->tables[t].nodes.size;
        out->type_offsets[2 * t] = claim(end, n, width);
        out->type_offsets[2 * t + 1] = claim(end, q->apart ? n : 0, width);
    }
    for (int64_t r = 0; r < s->relations; r++) {
        int64_t *to = out->relation_offsets + 5 * r, m = s->taken[r].size, rows = 0;
        for (int64_t l = 0; l < layers(q); l++) rows += layer_nodes(q, out, q->relations[r].target, l) + 1;
        to[0] = claim(end, 2 * m, width);
        to[1] = to[0] + m * width;
        to[2] = claim(end, m, width);
        to[3] = claim(end, rows, 8);
        to[4] = rows;
    }
}

static void put_ptr(const sampler *s, const request *q, const batch *out, int64_t r) {
    int64_t *ptr = (int64_t *)(out->block + out->relation_offsets[5 * r + 3]), done = 0;
    for (int64_t l = 0; l < layers(q); l++) {
        int64_t nodes = layer_nodes(q, out, q->relations[r].target, l), sum = 0;
        int64_t counted = q->again ? nodes : s->counts[r].size; /* nodes met at the last hop are not expanded */
        for (int64_t i = 0; i <= nodes; i++) {
            ptr[i] = sum;
            if (i < counted) sum += s->counts[r].at[done + i];
        }
        ptr += nodes + 1, done += nodes;
    }
}

static void put_relation(const sampler *s, const request *q, const batch *out, int64_t r) {
    const int64_t *to = out->relation_offsets + 5 * r;
    put(s->taken[r].near, s->taken[r].size, q->wide, out->block + to[0]);
    put(s->taken[r].edge, s->taken[r].size, q->wide, out->block + to[2]);
    const int64_t *ptr = (const int64_t *)(out->block + to[3]);
    int64_t first = 0;
    for (int64_t l = 0; l < layers(q); l++) {
        int64_t nodes = layer_nodes(q, out, q->relations[r].target, l);
        put_targets(ptr, nodes, q->wide, out->block + to[1], first);
        first += ptr[nodes], ptr += nodes + 1;
    }
}

static int put_batch(const sampler *s, const request *q, batch *out, int64_t threads) {
    out->size = 0;
    lay_out(s, q, out, &out->size);
    if (!out->block || out->size > out->room) {
        void *block = NULL;
        if (posix_memalign(&block, 64, (size_t)most(out->size, 64))) return NO_MEMORY;
        out->block = block;
    }
    int64_t items = 0;
    for (int64_t r = 0; r < s->relations; r++) {
        put_ptr(s, q, out, r);
        items += s->taken[r].size;
    }
#pragma omp parallel num_threads(team(items / 16, threads))
    {
        for (int64_t t = 0; t < s->types; t++) {
            const table *nodes = &s->tables[t];
            put(nodes->nodes.at, nodes->nodes.size, q->wide, out->block + out->type_offsets[2 * t]);
            if (q->apart) put(nodes->roots.at, nodes->roots.size, q->wide, out->block + out->type_offsets[2 * t + 1]);
        }
        for (int64_t r = 0; r < s->relations; r++) put_relation(s, q, out, r);
    }
    return OK;
}

/* ---- the batch ----------------------------------------------------------------------------------------------------------------------- */

/* Seeds come first, each at its place; of equal ones the first is what edges lead from. */
static int enter_seeds(table *t, const int32_t *seeds, const int32_t *graphs, int64_t n, int apart) {
    if (!reserve(&t->nodes, n)) return 0;
    if (n) memcpy(t->nodes.at, seeds, (size_t)n * sizeof *seeds);
    t->nodes.size = n;
    if (apart) {
        if (!reserve(&t->roots, n)) return 0;
        if (n) memcpy(t->roots.at, graphs, (size_t)n * sizeof *graphs);
        t->roots.size = n;
        t->nodes.size = 0; /* no slot is filled before all are made */
        if (!keep_slots(t, n)) return 0;
        t->nodes.size = n;
        enter(t, 0);
        return 1;
    }
    if (!make_number(t)) {
        t->nodes.size = 0;
        return 0;
    }
    for (int64_t i = n - 1; i >= 0; i--) t->number[seeds[i]] = (int32_t)i;
    return 1;
}

static hop hop_of(const sampler *s, const request *q, int64_t l, int64_t r) {
    uint32_t layer = q->method == LABOR && q->tied ? 0 : (uint32_t)l;
    uint32_t use = q->method == LABOR ? USE_LABOR : FIRST_RELATION + (uint32_t)r;
    return (hop){
        .r = q->relations[r],
        .fanout = q->fanouts[l * s->relations + r],
        .method = q->method,
        .replace = q->replace,
        .apart = q->apart,
        .s = stream_of(q->seed, q->epoch, q->step, layer, use),
        .source = &s->tables[q->relations[r].source],
        .target = &s->tables[q->relations[r].target],
        .names = q->names,
        .limits = q->limits,
    };
}

static void note(const sampler *s, const request *q, const batch *out, int64_t l) {
    for (int64_t t = 0; t < s->types; t++) out->met[t * (q->hops + 1) + l] = s->tables[t].nodes.size;
    for (int64_t r = 0; r < s->relations; r++) out->found[r * (q->hops + 1) + l] = s->taken[r].size;
}

static int sample_hops(sampler *s, const request *q, const batch *out, int64_t threads) {
    note(s, q, out, 0);
    for (int64_t l = 0; l < q->hops; l++) {
        for (int64_t r = 0; r < s->relations; r++) {
            const int64_t *met = out->met + q->relations[r].target * (q->hops + 1);
            int64_t first = q->again || l == 0 ? 0 : met[l - 1];
            hop h = hop_of(s, q, l, r);
            int status = expand(s, &h, r, first, met[l] - first, threads);
            if (status != OK) return status;
        }
        note(s, q, out, l + 1);
    }
    return OK;
}

/* Puts the nodes of each graph together, in their order. */
static int group_graphs(table *t, int64_t graphs) {
    int64_t n = t->nodes.size;
    int64_t *next = calloc((size_t)graphs + 1, sizeof *next);
    ints nodes = {0}, roots = {0};
    int enough = next && reserve(&nodes, most(n, 1)) && reserve(&roots, most(n, 1)) && set_slots(t, most(t->slots, FIRST_SLOTS));
    if (enough) {
        for (int64_t i = 0; i < n; i++) next[t->roots.at[i] + 1]++;
        for (int64_t g = 0; g < graphs; g++) next[g + 1] += next[g];
        for (int64_t i = 0; i < n; i++) {
            int64_t to = next[t->roots.at[i]]++;
            nodes.at[to] = t->nodes.at[i], roots.at[to] = t->roots.at[i];
        }
        if (n) memcpy(t->nodes.at, nodes.at, (size_t)n * sizeof *nodes.at);
        if (n) memcpy(t->roots.at, roots.at, (size_t)n * sizeof *roots.at);
        enter(t, 0);
    }
    free(next);
    free(nodes.at);
    free(roots.at);
    return enough;
}

/* Takes the edges between the nodes that were met in the place of those they were met by. */
static int induce(sampler *s, const request *q, const batch *out, int64_t threads) {
    if (q->apart)
        for (int64_t t = 0; t < s->types; t++)
            if (!group_graphs(&s->tables[t], q->graph_count)) return NO_MEMORY;
    for (int64_t r = 0; r < s->relations; r++) {
        hop h = {.r = q->relations[r], .fanout = -1, .method = INDUCED, .apart = q->apart, .names = q->names, .limits = q->limits};
        h.source = &s->tables[h.r.source], h.target = &s->tables[h.r.target];
        s->taken[r].size = s->counts[r].size = 0;
        int status = expand(s, &h, r, 0, h.target->nodes.size, threads);
        if (status != OK) return status;
        for (int64_t l = 0; l <= q->hops; l++) out->found[r * (q->hops + 1) + l] = l == q->hops ? s->taken[r].size : 0;
    }
    return OK;
}

/* One batch; `out` has room for what it says of it. Returns OK, NO_MEMORY or TOO_LARGE. */
int64_t gnnc_sample(sampler *s, const request *q, batch *out, int64_t threads) {
    int status = OK;
    for (int64_t r = 0; r < s->relations; r++) s->taken[r].size = s->counts[r].size = 0;
    for (int64_t t = 0; t < s->types && status == OK; t++) {
        if (!q->apart && !make_number(&s->tables[t])) status = NO_MEMORY;
        else if (!enter_seeds(&s->tables[t], q->seeds[t], q->apart ? q->graphs[t] : NULL, q->seed_counts[t], q->apart))
            status = NO_MEMORY;
    }
    if (status == OK) status = sample_hops(s, q, out, threads);
    if (status == OK && q->induced) status = induce(s, q, out, threads);
    if (status == OK) status = put_batch(s, q, out, threads);
    for (int64_t t = 0; t < s->types; t++) empty_table(&s->tables[t], q->apart);
    return status;
}
