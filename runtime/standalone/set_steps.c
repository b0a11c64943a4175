/* Steps that make sets, and what moves values between the domains of a set. */
#include <string.h>

#include "steps.h"
#include "structure.h"

void want_rows(const Rows *x, int64_t rows)
{
    if (x->rows != rows && x->rows != 1)
        fail("a value of %lld rows is used where there are %lld", (long long)x->rows, (long long)rows);
}

int64_t row_of(const Rows *x, int64_t rows, int64_t i) { return x->rows == 1 && rows != 1 ? 0 : i; }

static int64_t found(int64_t n, int64_t rows)
{
    if (n == NO_MEMORY) fail("no memory to filter %lld rows", (long long)rows);
    return n;
}

static Set *of_rows(const char *name, const Set *g, int32_t *kept, int64_t n)
{
    Set *out = new_set(name, n);
    for (int k = 0; k < g->maps; k++) give(out, g->names[k], map_of_rows(g->map[k], kept, n));
    give(out, "parent", trusted_map(kept, n, g->size, 0));
    return out;
}

Set *filter_loops(const char *name, Set *g)
{
    int32_t *kept = reserve_items(g->size, sizeof *kept);
    const int32_t *src = map_of(g, "src")->at, *dst = map_of(g, "dst")->at;
    return of_rows(name, g, kept, found(gnnc_where_different(src, dst, g->size, kept, threads()), g->size));
}

Set *filter_rows(const char *name, Set *g, const Rows *mask)
{
    want_rows(mask, g->size);
    int32_t *kept = reserve_items(g->size, sizeof *kept);
    if (mask->rows == g->size)
        return of_rows(name, g, kept, found(gnnc_where(mask->data, g->size, kept, threads()), g->size));
    const int all = get_int(mask->data, I1, 0) != 0;
    return all ? of_rows(name, g, iota32(g->size), g->size) : of_rows(name, g, kept, 0);
}

static int64_t bound(int64_t i, int64_t n) { return i < 0 ? (i + n < 0 ? 0 : i + n) : i < n ? i : n; }

Set *interval(const char *name, Set *base, const Rows *lo, const Rows *hi)
{
    const int64_t start = bound(get_int(lo->data, lo->type, 0), base->size);
    const int64_t stop = bound(get_int(hi->data, hi->type, 0), base->size);
    const int64_t n = stop > start ? stop - start : 0;
    int32_t *kept = reserve_items(n, sizeof *kept);
    for (int64_t i = 0; i < n; i++) kept[i] = (int32_t)(start + i);
    return of_rows(name, base, kept, n);
}

Set *loops(const char *name, Set *g, int remaining)
{
    const Map *src = map_of(g, "src"), *dst = map_of(g, "dst");
    if (src->codomain != dst->codomain)
        fail("loops need one node set, but src has %lld nodes and dst has %lld", (long long)src->codomain,
             (long long)dst->codomain);
    const int64_t n = src->codomain;
    Set *out = new_set(name, n);
    give(out, "src", identity_map(n));
    give(out, "dst", identity_map(n));
    if (remaining) {
        int32_t *last = reserve_items(n, sizeof *last);
        gnnc_last_loop(src->at, dst->at, g->size, n, last, threads());
        give(out, "old", trusted_map(last, n, g->size, 1));
    }
    return out;
}

/* Where the rows of a part begin in a union. */
static int64_t first_of(const Set *set, int part)
{
    int64_t first = 0;
    for (int p = 0; p < part; p++) first += set->part[p];
    return first;
}

static const Map *united_map(const char *name, int n, Set *const *parts, int64_t size, const United *u)
{
    int32_t *all = reserve_items(size, sizeof *all);
    int partial = 0;
    int64_t start = 0;
    const int64_t codomain = u->into ? u->into->size : map_of(parts[0], u->name)->codomain;
    for (int p = 0; p < n; p++) {
        const Map *map = map_of(parts[p], u->name);
        if (!u->into && map->codomain != codomain)
            fail("the parts of the set %s map %s into sets of different sizes", name, u->name);
        memcpy(all + start, map->at, (size_t)map->size * sizeof *all);
        const int32_t first = u->into ? (int32_t)first_of(u->into, u->places[p]) : 0;
        if (first)
            for (int64_t i = start; i < start + map->size; i++)
                if (all[i] >= 0) all[i] += first;
        start += map->size;
        partial |= map->partial;
    }
    return trusted_map(all, size, codomain, partial);
}

Set *unite(const char *name, int n, Set *const *parts, int maps, const United *united)
{
    int64_t size = 0;
    for (int p = 0; p < n; p++) size += parts[p]->size;
    Set *out = new_set(name, size);
    if (n > PARTS) fail("the set %s is made of more than %d parts", name, PARTS);
    out->parts = n;
    for (int p = 0; p < n; p++) out->part[p] = parts[p]->size;
    for (int k = 0; k < maps; k++)
        give(out, united[k].name, united_map(name, n, parts, size, &united[k]));
    return out;
}

static Set *copied(const char *name, const Set *base)
{
    Set *out = new_set(name, base->size);
    *out = *base;
    out->name = name;
    memset(out->group, 0, sizeof out->group);
    out->pairs = 0;
    return out;
}

static void check_declared(const Map *map, const Attached *a)
{
    if (!a->mono && !a->onto) return;
    int32_t *images = reserve_items(map->codomain, sizeof *images);
    for (int64_t i = 0; i < map->size; i++)
        if (map->at[i] >= 0) images[map->at[i]]++;
    for (int64_t k = 0; k < map->codomain; k++) {
        if (a->mono && images[k] > 1) fail("%s: two rows have the same image %lld", a->what, (long long)k);
        if (a->onto && images[k] == 0) fail("%s: no row leads to %lld", a->what, (long long)k);
    }
    drop(images, map->codomain * (int64_t)sizeof *images);
}

/* Rows of a single number for every row, where they are one that serves everywhere. */
static Rows repeated(const Rows *x, int64_t rows)
{
    Rows out = *x;
    want_rows(x, rows);
    if (x->rows == rows) return out;
    out.rows = rows;
    out.data = reserve_items(rows, bytes_of(x->type));
    for (int64_t i = 0; i < rows; i++) put_int(out.data, out.type, i, get_int(x->data, x->type, 0));
    return out;
}

Set *attach(const char *name, Set *base, int n, const Attached *maps)
{
    Set *out = copied(name, base);
    give(out, "parent", identity_map(base->size));
    for (int k = 0; k < n; k++) {
        const Rows rows = repeated(maps[k].rows, base->size);
        const Map *map = checked_map(&rows, maps[k].codomain->size, maps[k].what, maps[k].partial);
        check_declared(map, &maps[k]);
        give(out, maps[k].name, map);
    }
    return out;
}

Set *sized(const char *name, const Rows *n) { return new_set(name, get_int(n->data, n->type, 0)); }

Set *derive(const char *name, Set *set, const char *path, const char *first, const Map *rest)
{
    Set *out = copied(name, set);
    give(out, path, then(map_of(set, first), rest));
    if (out->tails == MAPS) fail("the set %s has more than %d derived maps", name, MAPS);
    out->tail[out->tails].from = first;
    out->tail[out->tails].to = path;
    out->tail[out->tails++].map = rest;
    return out;
}

/* ---- domains ---- */

static int64_t words(const char *keys)
{
    int64_t n = 0;
    for (; *keys; keys++) n += *keys == ' ';
    return n;
}

static const char *only(const char *keys)
{
    char *name = reserve((int64_t)strlen(keys));
    return memcpy(name, keys, strlen(keys) - 1); /* without the space; the rest is zero */
}

/* The stored row of every row of g, and how many there are. */
static const int32_t *classes(Set *g, const char *keys, int64_t *count)
{
    if (!keys) {
        *count = g->size;
        return iota32(g->size);
    }
    if (!*keys) {
        *count = 1;
        return reserve_items(g->size, sizeof(int32_t));
    }
    if (words(keys) == 1) {
        const Map *map = map_of(g, only(keys));
        *count = map->codomain;
        return map->at;
    }
    const Pairs *pairs = pairs_of(g, keys);
    *count = pairs->group.count;
    return pairs->row_map.at;
}

static int32_t *copy_of(const int32_t *x, int64_t n)
{
    int32_t *out = reserve_items(n, sizeof *out);
    return memcpy(out, x, (size_t)n * sizeof *out);
}

static const Map *tail_of(const Set *g, const char *from, const char *to)
{
    for (int k = 0; k < g->tails; k++)
        if (strcmp(g->tail[k].from, from) == 0 && strcmp(g->tail[k].to, to) == 0) return g->tail[k].map;
    return NULL;
}

int32_t *between(Set *g, const char *fine, const char *coarse, int64_t *n, int64_t *count)
{
    const int32_t *target = classes(g, coarse, count);
    *n = g->size;
    if (!fine) return copy_of(target, g->size);
    if (strcmp(fine, coarse) == 0) {
        *n = *count;
        return iota32(*count);
    }
    const int32_t *source = classes(g, fine, n);
    if (!*coarse) return reserve_items(*n, sizeof(int32_t));
    int32_t *out = reserve_items(*n, sizeof *out);
    if (words(fine) > 1) {
        const int32_t *first = pairs_of(g, fine)->first;
        for (int64_t j = 0; j < *n; j++) out[j] = target[first[j]];
        return out;
    }
    const Map *rest = words(fine) == 1 && words(coarse) == 1 ? tail_of(g, only(fine), only(coarse)) : NULL;
    if (rest) return memcpy(out, rest->at, (size_t)*n * sizeof *out);
    memset(out, 0xff, (size_t)*n * sizeof *out);
    for (int64_t i = 0; i < g->size; i++)
        if (source[i] >= 0) out[source[i]] = target[i];
    return out;
}

Rows *read_rows(Set *g, const Rows *x, const char *from, const char *to)
{
    int64_t n, stored;
    int32_t *index = between(g, to, from, &n, &stored);
    want_rows(x, stored);
    Rows *out = new_rows(x->type, n, x->rank, x->dims);
    const int64_t bytes = width(x) * bytes_of(x->type);
    for (int64_t i = 0; stored && i < n; i++) { /* a key without rows reads the last: it is never used */
        const int64_t row = row_of(x, stored, index[i] < 0 ? stored - 1 : index[i]);
        memcpy((char *)out->data + i * bytes, (const char *)x->data + row * bytes, (size_t)bytes);
    }
    drop(index, n * (int64_t)sizeof *index);
    return out;
}
