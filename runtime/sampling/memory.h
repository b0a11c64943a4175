/* Arrays that grow, and the numbers of nodes in a batch. Functions that need memory return whether there was some. */
#include <stdlib.h>
#include <string.h>

enum { OK = -1, NO_MEMORY = -2, TOO_LARGE = -3 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Room for n items of some bytes each in an array that has room for *room; what is there is kept. */
static int grow(void **array, int64_t *room, int64_t n, size_t bytes) {
    if (n <= *room) return 1;
    int64_t wanted = most(n, *room + *room / 2);
    wanted = most(wanted, 1024);
    void *made = realloc(*array, (size_t)wanted * bytes);
    if (!made) return 0;
    *array = made;
    *room = wanted;
    return 1;
}

typedef struct {
    int32_t *at;
    int64_t size, room;
} ints;

static int reserve(ints *a, int64_t further) { return grow((void **)&a->at, &a->room, a->size + further, sizeof *a->at); }

/* Edges: the source, a node of the graph and later its number in the batch, and the id of the edge. */
typedef struct {
    int32_t *near, *edge;
    int64_t size, near_room, edge_room;
} edges;

static int reserve_edges(edges *e, int64_t further) {
    return grow((void **)&e->near, &e->near_room, e->size + further, sizeof *e->near) &&
           grow((void **)&e->edge, &e->edge_room, e->size + further, sizeof *e->edge);
}

/* The nodes of one type in a batch, in order, and the number of each. In a batch of graphs that are kept apart, a node is a pair (root, node),
 * and numbers are found in a hash table; else they lie in an array with a place for each node of the graph. That array has -1 everywhere but
 * during a call, so that nothing is cleared that was not written. */
typedef struct {
    int64_t count; /* nodes of the graph */
    ints nodes, roots;
    int32_t *number;
    uint64_t *keys;
    int32_t *values;
    int64_t slots, slot_room, used;
} table;

#define NO_KEY UINT64_MAX
enum { FIRST_SLOTS = 1024 };

static int make_number(table *t) {
    if (t->number) return 1;
    t->number = malloc((size_t)most(t->count, 1) * sizeof *t->number);
    if (t->number) memset(t->number, 0xff, (size_t)t->count * sizeof *t->number);
    return t->number != NULL;
}

/* Where a key is or would be. */
static inline int64_t slot_of(const table *t, uint64_t key) {
    uint64_t h = key * 0x9E3779B97F4A7C15u;
    int64_t i = (int64_t)((h ^ h >> 32) & (uint64_t)(t->slots - 1));
    while (t->keys[i] != key && t->keys[i] != NO_KEY) i = (i + 1) & (t->slots - 1);
    return i;
}

static int set_slots(table *t, int64_t slots) {
    if (slots > t->slot_room) {
        uint64_t *keys = malloc((size_t)slots * sizeof *keys);
        int32_t *values = malloc((size_t)slots * sizeof *values);
        if (!keys || !values) {
            free(keys);
            free(values);
            return 0;
        }
        free(t->keys);
        free(t->values);
        t->keys = keys, t->values = values, t->slot_room = slots;
    }
    t->slots = slots;
    t->used = 0;
    memset(t->keys, 0xff, (size_t)slots * sizeof *t->keys);
    return 1;
}

static inline uint64_t key_of(int32_t root, int32_t node) { return (uint64_t)(uint32_t)root << 32 | (uint32_t)node; }

/* Enters nodes from `first` on; of equal ones the first stays. */
static void enter(table *t, int64_t first) {
    for (int64_t i = first; i < t->nodes.size; i++) {
        int64_t slot = slot_of(t, key_of(t->roots.at[i], t->nodes.at[i]));
        if (t->keys[slot] != NO_KEY) continue;
        t->keys[slot] = key_of(t->roots.at[i], t->nodes.at[i]);
        t->values[slot] = (int32_t)i;
        t->used++;
    }
}

/* Room for further keys, a third of the slots at least free. */
static int keep_slots(table *t, int64_t further) {
    if ((t->used + further) * 3 <= t->slots * 2) return 1;
    int64_t slots = most(t->slots, FIRST_SLOTS);
    while ((t->used + further) * 3 > slots * 2) slots *= 2;
    if (!set_slots(t, slots)) return 0;
    enter(t, 0);
    return 1;
}

/* The number of a pair that is in the batch, else -1. */
static inline int32_t find(const table *t, int32_t root, int32_t node) {
    int64_t slot = slot_of(t, key_of(root, node));
    return t->keys[slot] == NO_KEY ? -1 : t->values[slot];
}

static void empty_table(table *t, int apart) {
    if (!apart && t->number)
        for (int64_t i = 0; i < t->nodes.size; i++) t->number[t->nodes.at[i]] = -1;
    t->nodes.size = t->roots.size = t->used = t->slots = 0;
}

static void free_table(table *t) {
    free(t->nodes.at);
    free(t->roots.at);
    free(t->number);
    free(t->keys);
    free(t->values);
}
