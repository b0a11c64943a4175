/* Where buffers lie that are not in use at the same time: as far as possible at the same bytes.

One after the other is placed, each at the tightest gap that is free as long as it is in use: the
longest first ("greedy by size": Y. Pisarchyk, J. Lee, Efficient Memory Management for Deep Neural
Net Inference, 2020), or in one of two other orders where that takes less. Rooms are blocks of memory
of their own; room 0 is as long as it has to be. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGN = 64 };

typedef struct {
    int64_t size, first, last; /* bytes, and the steps between which they are in use, both with it */
} ArenaUse;

typedef struct {
    int64_t room, offset;
} ArenaPlace;

typedef struct {
    int64_t used, rooms;
    const ArenaUse *uses;
    int64_t *sizes; /* of rooms */
    ArenaPlace *places;
    int64_t *order; /* those that are placed, by their rooms and offsets */
} Arena;

static int64_t arena_aligned(int64_t offset) {
    return (offset + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

static int arena_meet(ArenaUse a, ArenaUse b) { return a.first <= b.last && b.first <= a.last; }

/* The tightest gap of all rooms for one more buffer; no room (-1) where it fits none. */
static ArenaPlace arena_gap(const Arena *arena, ArenaUse use) {
    ArenaPlace best = {-1, 0};
    int64_t least = INT64_MAX, k = 0;
    for (int64_t room = 0; room < arena->rooms; ++room) {
        int64_t at = 0;
        for (; k < arena->used && arena->places[arena->order[k]].room == room; ++k) {
            const ArenaUse other = arena->uses[arena->order[k]];
            if (!arena_meet(use, other)) continue;
            const int64_t begin = arena->places[arena->order[k]].offset;
            const int64_t left = begin - at - use.size;
            if (left >= 0 && left < least) {
                least = left;
                best = (ArenaPlace){room, at};
            }
            if (begin + other.size > at) at = arena_aligned(begin + other.size);
        }
        const int64_t left = arena->sizes[room] - at - use.size;
        if (room > 0 && left >= 0 && left < least) {
            least = left;
            best = (ArenaPlace){room, at};
        }
    }
    return best;
}

/* Behind all in room 0 that is in use at the same time. */
static ArenaPlace arena_behind(const Arena *arena, ArenaUse use) {
    int64_t at = 0;
    for (int64_t k = 0; k < arena->used; ++k) {
        const int64_t other = arena->order[k];
        if (arena->places[other].room != 0 || !arena_meet(use, arena->uses[other])) continue;
        const int64_t end = arena_aligned(arena->places[other].offset + arena->uses[other].size);
        if (end > at) at = end;
    }
    return (ArenaPlace){0, at};
}

static void arena_put(Arena *arena, int64_t use, ArenaPlace place) {
    int64_t k = arena->used++;
    arena->places[use] = place;
    for (; k > 0; --k) {
        const ArenaPlace before = arena->places[arena->order[k - 1]];
        if (before.room < place.room || (before.room == place.room && before.offset <= place.offset))
            break;
        arena->order[k] = arena->order[k - 1];
    }
    arena->order[k] = use;
}

/* Whether one is placed before another: the longest first; what is in use for longest first, and of
 * this the longest; or what is in use first. */
static int arena_before(ArenaUse a, ArenaUse b, int order) {
    switch (order) {
    case 0: return a.size > b.size;
    case 1: {
        const int64_t by = (a.last - a.first) - (b.last - b.first);
        return by > 0 || (by == 0 && a.size > b.size);
    }
    default: return a.first < b.first;
    }
}

enum { ARENA_ORDERS = 3 };

/* Places buffers in one order, which `arena` has memory for; returns the bytes of new memory. */
static int64_t arena_fill(Arena *arena, int64_t count, int64_t rooms, int64_t alone, int order,
                          int64_t *next) {
    arena->used = 0;
    arena->rooms = rooms;
    for (int64_t r = 0; r < rooms; ++r) {
        arena->sizes[r] = arena->uses[r].size;
        arena_put(arena, r, (ArenaPlace){r, 0});
    }
    for (int64_t i = rooms; i < count; ++i) {
        int64_t k = i - rooms;
        for (; k > 0 && arena_before(arena->uses[i], arena->uses[next[k - 1]], order); --k)
            next[k] = next[k - 1];
        next[k] = i;
    }
    for (int64_t k = 0; k < count - rooms; ++k) {
        const ArenaUse use = arena->uses[next[k]];
        ArenaPlace place = arena_gap(arena, use);
        if (place.room < 0 && use.size >= alone) {
            arena->sizes[arena->rooms] = use.size;
            place = (ArenaPlace){arena->rooms++, 0};
        } else if (place.room < 0) {
            place = arena_behind(arena, use);
        }
        arena_put(arena, next[k], place);
        if (place.room == 0 && place.offset + use.size > arena->sizes[0])
            arena->sizes[0] = place.offset + use.size;
    }
    int64_t total = arena->sizes[0];
    for (int64_t r = rooms; r < arena->rooms; ++r) total += arena->sizes[r];
    return total;
}

/* Places `count` buffers, each three numbers of `uses`: its bytes, and the steps from which to which
 * it is in use. The first `rooms` are what the rooms that are there begin with: room 0 grows behind
 * its own, the others are as long as theirs. One of `alone` bytes or more that fits nowhere has a
 * new room, unless all in room 0 takes much less. `places` gets two numbers for each, a room and how
 * far in it begins; `sizes`, one for each, the bytes of the rooms, whose number is returned: -1
 * where there is no memory. */
int64_t gnnc_arena(int64_t count, int64_t rooms, const int64_t *uses, int64_t alone,
                   int64_t *places, int64_t *sizes) {
    int64_t *const memory = malloc((size_t)(5 * count + 1) * sizeof *memory);
    if (!memory) return -1;
    Arena arena = {0,      rooms, (const ArenaUse *)uses, memory, (ArenaPlace *)(memory + count),
                   memory + 3 * count};
    int64_t best = INT64_MAX, found = -1;
    for (int trial = 0; trial < 2 * ARENA_ORDERS; ++trial) {
        const int together = trial >= ARENA_ORDERS;
        if (trial == ARENA_ORDERS) {
            if (found < rooms + 2) break; /* two rooms of their own at least, to be joined */
            best -= best / 16;
        }
        const int64_t total = arena_fill(&arena, count, rooms, together ? INT64_MAX : alone,
                                         trial % ARENA_ORDERS, memory + 4 * count);
        if (total >= best) continue;
        best = total;
        found = arena.rooms;
        memcpy(sizes, arena.sizes, (size_t)found * sizeof *sizes);
        memcpy(places, arena.places, (size_t)count * sizeof *arena.places);
    }
    free(memory);
    return found;
}
