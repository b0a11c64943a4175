/* Messages between processes, or threads, that share memory: a ring of bytes for each sender and receiver, in which a
   message is a head and its bytes, in as many pieces as the ring has room for. The receiver matches messages of equal
   keys in their order. Whoever calls one side does so from one thread at a time. */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Heads and messages begin at multiples of this; capacities are multiples too, so that a head lies in one piece. */
#define UNIT 16
/* Of a long message so much is told at once: the other side copies it meanwhile. */
#define PIECE (64 << 10)
/* Seconds that messages are moved on in one go. */
#define LONGEST 0.1

/* Each side writes one of the two counts of bytes, which lie in cache lines of their own. */
typedef struct {
    _Alignas(64) _Atomic uint64_t written;
    _Alignas(64) _Atomic uint64_t taken;
    _Alignas(64) uint8_t bytes[];
} ring;

typedef struct {
    int64_t key, size;
} head;

/* One side of a message, which belongs to the caller and stays where it is until it is `done`. `other_size` is -1, or what
   the sender sends of it where the receiver expects another `size`. */
typedef struct gnnc_message gnnc_message;
struct gnnc_message {
    gnnc_message *next;
    uint8_t *data;
    int64_t key, size, moved, other_size, done;
};

typedef struct {
    gnnc_message *first, **end;
} queue;

typedef struct {
    ring *ring;
    queue messages;
    int headed; /* the head of the first one is written */
} outgoing;

typedef struct {
    ring *ring;
    queue expected, early; /* `early`: whole or in part there, in memory of their own, and not asked for so far */
    gnnc_message *into;    /* NULL: nobody wants what arrives */
    int64_t left;          /* bytes of the message that arrives, to its end in the ring */
} incoming;

typedef struct {
    int64_t size, capacity;
    outgoing *out;
    incoming *in;
} gnnc_rings;

static int64_t padded(int64_t size) { return (size + UNIT - 1) / UNIT * UNIT; }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void append(queue *q, gnnc_message *m) {
    m->next = NULL;
    *q->end = m;
    q->end = &m->next;
}

/* The first message of a key, which leaves the queue; NULL: there is none. */
static gnnc_message *removed(queue *q, int64_t key) {
    for (gnnc_message **at = &q->first; *at; at = &(*at)->next) {
        gnnc_message *m = *at;
        if (m->key != key) continue;
        *at = m->next;
        if (!*at) q->end = at;
        return m;
    }
    return NULL;
}

static void renew(gnnc_message *m, int64_t key, int64_t size, uint8_t *data) {
    *m = (gnnc_message){.data = data, .key = key, .size = size, .other_size = -1};
}

int64_t gnnc_rings_bytes(int64_t size, int64_t capacity) { return size * size * (sizeof(ring) + capacity); }

static ring *between(uint8_t *memory, int64_t size, int64_t capacity, int64_t from, int64_t to) {
    return (ring *)(memory + (from * size + to) * (sizeof(ring) + capacity));
}

/* The rings of one of `size` ranks in memory of zeros that all of them share, 64 bytes aligned; NULL: there is no memory
   for what the rank keeps of them. */
gnnc_rings *gnnc_rings_open(uint8_t *memory, int64_t rank, int64_t size, int64_t capacity) {
    gnnc_rings *r = malloc(sizeof *r);
    outgoing *out = calloc(size, sizeof *out);
    incoming *in = calloc(size, sizeof *in);
    if (!r || !out || !in) {
        free(r), free(out), free(in);
        return NULL;
    }
    for (int64_t k = 0; k < size; k++) {
        out[k].ring = between(memory, size, capacity, rank, k);
        in[k].ring = between(memory, size, capacity, k, rank);
        out[k].messages.end = &out[k].messages.first;
        in[k].expected.end = &in[k].expected.first;
        in[k].early.end = &in[k].early.first;
    }
    *r = (gnnc_rings){size, capacity, out, in};
    return r;
}

/* ------------------------------------------------------------ the bytes of a ring */

static void put(ring *r, int64_t capacity, uint64_t at, const uint8_t *data, int64_t size) {
    int64_t begin = at % capacity, first = least(size, capacity - begin);
    memcpy(r->bytes + begin, data, first);
    memcpy(r->bytes, data + first, size - first);
}

static void get(const ring *r, int64_t capacity, uint64_t at, uint8_t *data, int64_t size) {
    int64_t begin = at % capacity, first = least(size, capacity - begin);
    memcpy(data, r->bytes + begin, first);
    memcpy(data + first, r->bytes, size - first);
}

/* Returns how many bytes it wrote. */
static int64_t give(outgoing *o, int64_t capacity) {
    ring *r = o->ring;
    const uint64_t start = atomic_load_explicit(&r->written, memory_order_relaxed);
    uint64_t written = start;
    for (gnnc_message *m; (m = o->messages.first);) {
        int64_t room = capacity - (written - atomic_load_explicit(&r->taken, memory_order_acquire));
        if (!room) break;
        if (!o->headed) {
            head h = {m->key, m->size};
            put(r, capacity, written, (const uint8_t *)&h, sizeof h);
            written += sizeof h, room -= sizeof h;
            o->headed = 1;
        }
        int64_t n = least(least(room, PIECE), padded(m->size) - m->moved);
        put(r, capacity, written, m->data + m->moved, least(n, m->size - m->moved));
        m->moved += n;
        atomic_store_explicit(&r->written, written += n, memory_order_release);
        if (m->moved >= m->size) {
            removed(&o->messages, m->key);
            m->done = 1;
            o->headed = 0;
        }
    }
    return written - start;
}

/* A message that nobody has asked for so far; NULL: there is no memory for it. */
static gnnc_message *kept(incoming *in, head h) {
    gnnc_message *m = malloc(sizeof *m);
    uint8_t *data = malloc(h.size);
    if (!m || !data) {
        free(m), free(data);
        return NULL;
    }
    renew(m, h.key, h.size, data);
    append(&in->early, m);
    return m;
}

/* Finds out where the next message goes; 0: there is no memory, and it stays where it is. */
static int headed_for(incoming *in, head h) {
    gnnc_message *m = removed(&in->expected, h.key);
    if (m && m->size != h.size) {
        m->other_size = h.size;
        m->done = 1;
        in->into = NULL;
    } else {
        if (!m && !(m = kept(in, h))) return 0;
        in->into = m;
    }
    in->left = padded(h.size);
    return 1;
}

/* Returns how many bytes it read. */
static int64_t take(incoming *in, int64_t capacity) {
    ring *r = in->ring;
    const uint64_t start = atomic_load_explicit(&r->taken, memory_order_relaxed);
    uint64_t taken = start;
    for (;;) {
        int64_t there = atomic_load_explicit(&r->written, memory_order_acquire) - taken;
        if (!there) break;
        if (!in->left) {
            head h;
            get(r, capacity, taken, (uint8_t *)&h, sizeof h);
            if (!headed_for(in, h)) break;
            taken += sizeof h, there -= sizeof h;
        }
        int64_t n = least(least(there, PIECE), in->left);
        gnnc_message *m = in->into;
        if (m) {
            get(r, capacity, taken, m->data + m->moved, least(n, m->size - m->moved));
            m->moved += n;
        }
        in->left -= n;
        atomic_store_explicit(&r->taken, taken += n, memory_order_release);
        if (m && !in->left) m->done = 1;
    }
    return taken - start;
}

/* ------------------------------------------------------------ messages */

/* Moves on what can be moved without waiting; whether there was something. */
int64_t gnnc_rings_poll(gnnc_rings *r) {
    int64_t moved = 0;
    for (int64_t k = 0; k < r->size; k++) moved += give(&r->out[k], r->capacity) + take(&r->in[k], r->capacity);
    return moved > 0;
}

/* Starts to send `size` bytes, at least one, to a rank. */
void gnnc_rings_send(gnnc_rings *r, int64_t rank, gnnc_message *m, int64_t key, int64_t size, uint8_t *data) {
    renew(m, key, size, data);
    append(&r->out[rank].messages, m);
    give(&r->out[rank], r->capacity);
}

/* Starts to receive `size` bytes, at least one, from a rank. */
void gnnc_rings_receive(gnnc_rings *r, int64_t rank, gnnc_message *m, int64_t key, int64_t size, uint8_t *data) {
    incoming *in = &r->in[rank];
    renew(m, key, size, data);
    gnnc_message *early = removed(&in->early, key);
    if (!early) {
        append(&in->expected, m);
        return;
    }
    int arrives = in->left && in->into == early;
    if (early->size == size) {
        memcpy(data, early->data, least(early->moved, size));
        m->moved = early->moved;
        m->done = !arrives;
        if (arrives) in->into = m;
    } else {
        m->other_size = early->size;
        m->done = 1;
        if (arrives) in->into = NULL;
    }
    free(early->data);
    free(early);
}

/* How many bytes are not moved yet; at least one for each message that is not done. */
int64_t gnnc_rings_left(const gnnc_message *messages, int64_t count) {
    int64_t left = 0;
    for (int64_t k = 0; k < count; k++)
        if (!messages[k].done) left += messages[k].moved < messages[k].size ? messages[k].size - messages[k].moved : 1;
    return left;
}

static double clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

/* Moves messages on until these are done, or nothing has moved for so many seconds; whether they are done. */
int64_t gnnc_rings_wait(gnnc_rings *r, const gnnc_message *messages, int64_t count, double seconds) {
    const double start = clock_seconds();
    for (double last = start;;) {
        int64_t moved = gnnc_rings_poll(r);
        if (!gnnc_rings_left(messages, count)) return 1;
        double now = clock_seconds();
        if (moved) last = now;
        if (now - last > seconds || now - start > LONGEST) return 0;
        if (!moved) sched_yield();
    }
}
