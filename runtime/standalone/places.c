#include "places.h"

#include <string.h>

#include "base.h"

/* runtime/arena.c */
int64_t gnnc_arena(int64_t count, int64_t rooms, const int64_t *uses, int64_t alone,
                   int64_t *places, int64_t *sizes);

/* of runtime/reserves.py */
enum { SMALL = 64 * 1024, MORE = 8, FEW = 4, ENOUGH = 8, BEHIND = 32 };

int64_t laid_out(int64_t count, const int64_t *uses, int64_t *offsets)
{
    /* the block begins with nothing */
    int64_t *all = reserve_items(count + 1, 3 * sizeof *all);
    int64_t *places = reserve_items(count + 1, 2 * sizeof *places);
    int64_t *sizes = reserve_items(count + 1, sizeof *sizes);
    memcpy(all + 3, uses, (size_t)count * 3 * sizeof *all);
    if (gnnc_arena(count + 1, 1, all, INT64_MAX, places, sizes) < 0) fail("no memory for the plan of memory");
    for (int64_t k = 0; k < count; ++k) offsets[k] = places[2 * (k + 1) + 1];
    const int64_t bytes = sizes[0];
    drop(all, (count + 1) * 3 * (int64_t)sizeof *all);
    drop(places, (count + 1) * 2 * (int64_t)sizeof *places);
    drop(sizes, (count + 1) * (int64_t)sizeof *sizes);
    return bytes;
}

int64_t room_at(int64_t count, const int64_t *uses, int64_t step)
{
    int64_t most = 0, here = 0;
    /* as much as ever is in use where one of them begins to be */
    for (int64_t k = -1; k < count; ++k) {
        const int64_t at = k < 0 ? step : uses[3 * k + 1];
        int64_t now = 0;
        for (int64_t i = 0; i < count; ++i)
            if (uses[3 * i + 1] <= at && at <= uses[3 * i + 2]) now += uses[3 * i];
        if (k < 0) here = now;
        if (now > most) most = now;
    }
    return most + most / MORE - here;
}

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

int64_t reserved(int what, Cut cut)
{
    int64_t chunks = min(max((cut.members + cut.row_cost * cut.rows) / cut.grain, 1), cut.most);
    if (chunks > 1) chunks &= ~(int64_t)1;
    int rounds = 0;
    if (chunks * cut.bytes > SMALL) {
        const int64_t fit = max(cut.room, 0) / cut.bytes;
        rounds = cut.round && fit < min(chunks, ENOUGH);
        if (!rounds && fit < chunks) chunks = max(min(chunks, FEW), fit & ~(int64_t)1);
    }
    if (what == CHUNKS) return rounds ? max(chunks, cut.round) : chunks;
    if (what == SUMS) return rounds ? 0 : chunks;
    return rounds ? min(cut.rows, 2 * cut.block * cut.round) + BEHIND : 0;
}
