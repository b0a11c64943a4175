/* What a phase calls to exchange rows through rings (rings.c), behind the gnnc_comm of codegen/common/comm.h: all that
   needs no decision. What does not come soon, or not as it should, is `waited` for in Python. `Kind`, `Type` and
   `combine` are those of combine.h. */

/* Messages of a move: first those that are received. Each is for or from a rank, and begins so many bytes behind the rows
   that the phase gives; those for this rank itself are copied. */
typedef struct {
    int64_t key, receives, count;
    const int64_t *ranks, *begins, *sizes;
    int64_t own_from, own_to, own_size;
    gnnc_message *messages;
} gnnc_move;

/* An all-reduce of buffers with so many numbers each. `table` has a row of `bytes` for each rank; `messages` those from
   all others, then those for them. */
typedef struct {
    int64_t key, buffers, bytes;
    Kind kind;
    const Type *types;
    const int64_t *numbers, *begins;
    uint8_t *table;
    gnnc_message *messages;
} gnnc_reduction;

typedef struct gnnc_ring_calls gnnc_ring_calls;
struct gnnc_ring_calls {
    gnnc_comm comm;
    gnnc_rings *rings;
    int64_t rank;
    uint8_t *since; /* a double, perhaps not aligned: when this rank last made progress */
    double eager;   /* seconds without anything that arrives before a wait is Python's */
    gnnc_move *moves;
    gnnc_reduction *reductions;
    void (*waited)(int64_t is_reduction, int64_t number);
};

static void progress(gnnc_ring_calls *calls) {
    double seconds = clock_seconds();
    memcpy(calls->since, &seconds, sizeof seconds);
}

/* Waits for messages; whether all are there as they should be. */
static int come(gnnc_ring_calls *calls, const gnnc_message *messages, int64_t count) {
    if (!gnnc_rings_wait(calls->rings, messages, count, calls->eager)) return 0;
    for (int64_t k = 0; k < count; k++)
        if (messages[k].other_size >= 0) return 0;
    return 1;
}

static void ring_start(gnnc_comm *comm, int64_t k, const void *from, void *to) {
    gnnc_ring_calls *calls = (gnnc_ring_calls *)comm;
    gnnc_move *m = &calls->moves[k];
    progress(calls);
    for (int64_t i = 0; i < m->count; i++) {
        if (i < m->receives)
            gnnc_rings_receive(calls->rings, m->ranks[i], &m->messages[i], m->key, m->sizes[i], (uint8_t *)to + m->begins[i]);
        else
            gnnc_rings_send(calls->rings, m->ranks[i], &m->messages[i], m->key, m->sizes[i], (uint8_t *)from + m->begins[i]);
    }
    if (m->own_size) memcpy((uint8_t *)to + m->own_to, (const uint8_t *)from + m->own_from, m->own_size);
    gnnc_rings_poll(calls->rings);
}

static void ring_wait(gnnc_comm *comm, int64_t k) {
    gnnc_ring_calls *calls = (gnnc_ring_calls *)comm;
    gnnc_move *m = &calls->moves[k];
    if (!come(calls, m->messages, m->count)) calls->waited(0, k);
    progress(calls);
}

static void ring_poll(gnnc_comm *comm) { gnnc_rings_poll(((gnnc_ring_calls *)comm)->rings); }

static int64_t bytes_of(Type type) { return type == F32 || type == I32 ? 4 : 8; }

static void ring_all_reduce(gnnc_comm *comm, int64_t k, void *const *buffers) {
    gnnc_ring_calls *calls = (gnnc_ring_calls *)comm;
    gnnc_reduction *r = &calls->reductions[k];
    int64_t size = calls->rings->size, others = size - 1;
    uint8_t *own = r->table + calls->rank * r->bytes;
    progress(calls);
    for (int64_t b = 0; b < r->buffers; b++)
        if (r->numbers[b]) memcpy(own + r->begins[b], buffers[b], r->numbers[b] * bytes_of(r->types[b]));
    if (r->bytes)
        for (int64_t rank = 0, i = 0; rank < size; rank++) {
            if (rank == calls->rank) continue;
            gnnc_rings_receive(calls->rings, rank, &r->messages[i], r->key, r->bytes, r->table + rank * r->bytes);
            gnnc_rings_send(calls->rings, rank, &r->messages[others + i++], r->key, r->bytes, own);
        }
    if (r->bytes && !come(calls, r->messages, 2 * others)) calls->waited(1, k);
    progress(calls);
    if (comm->failed) return;
    for (int64_t b = 0; b < r->buffers; b++) {
        int64_t n = r->numbers[b];
        if (!n) continue;
        memcpy(buffers[b], r->table + r->begins[b], n * bytes_of(r->types[b]));
        for (int64_t rank = 1; rank < size; rank++)
            combine(r->kind, r->types[b], buffers[b], r->table + rank * r->bytes + r->begins[b], n);
    }
}

void gnnc_ring_calls_fill(gnnc_ring_calls *calls) {
    calls->comm.start = ring_start;
    calls->comm.wait = ring_wait;
    calls->comm.all_reduce = ring_all_reduce;
    calls->comm.poll = ring_poll;
}
