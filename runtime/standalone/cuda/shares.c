/* How blocks share the rows of groups: see shares.h. */
#include "shares.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

Shares cuts_of(const Group *group, int64_t row_cost, int64_t grain, int64_t chunks)
{
    const int64_t n = group->count, total = group->ptr[n] + row_cost * n;
    const int64_t wanted = least(least((total + grain - 1) / grain, chunks), n);
    const int64_t parts = wanted > 0 ? wanted : n > 0;
    Shares out = {.count = parts + 1, .at = reserve_items(parts + 1, sizeof *out.at)};
    int64_t k = 0;
    for (int64_t part = 1; part < parts; part++) {
        const int64_t goal = total * part / parts;
        while (k < n && group->ptr[k] + row_cost * k < goal) k++;
        out.at[part] = k;
    }
    if (parts) out.at[parts] = n; /* the first is 0 already */
    return out;
}

static int64_t pieces_in(const Group *group, int64_t k, int64_t piece)
{
    const int64_t length = group->ptr[k + 1] - group->ptr[k];
    return length > 2 * piece ? (length + piece - 1) / piece : 0;
}

Shares pieces_of(const Group *group, int64_t piece)
{
    Shares out = {.count = 0};
    for (int64_t k = 0; k < group->count; k++) out.count += pieces_in(group, k, piece);
    int64_t *at = out.at = reserve_items(out.count, 3 * (int64_t)sizeof *at);
    for (int64_t k = 0; k < group->count; k++) {
        const int64_t n = pieces_in(group, k, piece);
        for (int64_t i = 0; i < n; i++, at += 3) {
            at[0] = k;
            at[1] = group->ptr[k] + i * piece;
            at[2] = least(at[1] + piece, group->ptr[k + 1]);
        }
    }
    return out;
}
