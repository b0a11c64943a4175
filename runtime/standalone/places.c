#include "places.h"

#include <string.h>

#include "base.h"

/* runtime/arena.c */
int64_t gnnc_arena(int64_t count, int64_t rooms, const int64_t *uses, int64_t alone,
                   int64_t *places, int64_t *sizes);

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

int64_t most_chunks(int64_t rows, int64_t members, int64_t row_cost, int64_t grain, int64_t most)
{
    int64_t found = (members + row_cost * rows) / grain;
    if (found < 1) found = 1;
    if (found > most) found = most;
    return found > 1 ? found & ~(int64_t)1 : 1;
}
