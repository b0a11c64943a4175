/* Finite sets with named maps: see sets.h. */
#include "sets.h"

#include <string.h>

#include "structure.h"

static const int64_t MOST = INT32_MAX;

Set *new_set(const char *name, int64_t size)
{
    if (size < 0 || size > MOST)
        fail("the set %s has %lld rows, but there can be at most 2**31 - 1", name, (long long)size);
    Set *set = reserve(sizeof *set);
    set->name = name;
    set->size = size;
    return set;
}

int32_t *iota32(int64_t n)
{
    int32_t *out = reserve_items(n, sizeof *out);
    for (int64_t i = 0; i < n; i++) out[i] = (int32_t)i;
    return out;
}

const Map *trusted_map(int32_t *at, int64_t size, int64_t codomain, int partial)
{
    Map *map = reserve(sizeof *map);
    *map = (Map){.size = size, .codomain = codomain, .at = at, .partial = partial};
    return map;
}

const Map *identity_map(int64_t size)
{
    Map *map = reserve(sizeof *map);
    *map = (Map){.size = size, .codomain = size, .at = iota32(size), .identity = 1};
    return map;
}

const Map *checked_map(const Rows *values, int64_t codomain, const char *what, int partial)
{
    const int64_t n = values->rows, low = partial ? -1 : 0;
    int32_t *out = reserve_items(n, sizeof *out);
    int64_t bad;
    if (values->type == I64)
        bad = gnnc_narrow_i64(values->data, n, low, codomain, out, threads());
    else if (values->type == I32)
        bad = gnnc_narrow_i32(values->data, n, low, codomain, out, threads());
    else
        fail("%s must hold integers (int64 or int32), got %s", what, name_of(values->type));
    if (bad >= 0) {
        const long long value = get_int(values->data, values->type, bad);
        if (codomain <= low)
            fail("%s[%lld] is %lld, but the set it points into is empty", what, (long long)bad, value);
        fail("%s[%lld] is %lld, but it must be between %lld and %lld", what, (long long)bad, value,
             (long long)low, (long long)codomain - 1);
    }
    return trusted_map(out, n, codomain, partial);
}

void give(Set *set, const char *name, const Map *map)
{
    if (map->size != set->size)
        fail("the map %s has %lld entries, but the set %s has %lld rows", name, (long long)map->size,
             set->name, (long long)set->size);
    int k = 0;
    while (k < set->maps && strcmp(set->names[k], name)) k++;
    if (k == MAPS) fail("the set %s has more than %d maps", set->name, MAPS);
    set->maps += k == set->maps;
    set->names[k] = name;
    set->map[k] = map;
    set->group[k] = NULL;
}

static int place_of(const Set *set, const char *name)
{
    for (int k = 0; k < set->maps; k++)
        if (strcmp(set->names[k], name) == 0) return k;
    return -1;
}

int has(const Set *set, const char *name) { return place_of(set, name) >= 0; }

const Map *map_of(const Set *set, const char *name)
{
    const int k = place_of(set, name);
    if (k < 0) fail("the set %s has no map %s", set->name, name);
    return set->map[k];
}

static int32_t *take(const Map *table, const int32_t *rows, int64_t count)
{
    int32_t *out = reserve_items(count, sizeof *out);
    const int64_t bad = gnnc_take_i32(table->at, table->size, rows, count, out, threads());
    if (bad >= 0) fail("row %lld is %d, but the table it reads has %lld rows", (long long)bad, rows[bad],
                       (long long)table->size);
    return out;
}

const Map *then(const Map *a, const Map *b)
{
    if (a->codomain != b->size)
        fail("a map into %lld rows cannot be followed by a map of %lld rows", (long long)a->codomain,
             (long long)b->size);
    if (a->identity) return b;
    if (b->identity) return a;
    return trusted_map(take(b, a->at, a->size), a->size, b->codomain, a->partial || b->partial);
}

const Map *map_of_rows(const Map *map, int32_t *rows, int64_t count)
{
    if (map->identity) return trusted_map(rows, count, map->codomain, 0);
    return trusted_map(take(map, rows, count), count, map->codomain, map->partial);
}

static void check_grouped(int64_t status, int64_t rows, int64_t keys)
{
    if (status == NO_MEMORY)
        fail("no memory to group %lld rows by %lld keys", (long long)rows, (long long)keys);
    if (status >= 0) fail("row %lld has a key out of range", (long long)status);
}

const Group *group_by(Set *set, const char *name)
{
    const Map *map = map_of(set, name);
    const int k = place_of(set, name);
    if (set->group[k]) return set->group[k];
    Group *found = reserve(sizeof *found);
    found->count = map->codomain;
    found->ptr = reserve_items(map->codomain + 1, sizeof *found->ptr);
    found->rows = reserve_items(map->size, sizeof *found->rows);
    check_grouped(gnnc_group(map->at, NULL, map->size, map->codomain, found->ptr, found->rows, threads()),
                  map->size, map->codomain);
    found->kept = found->ptr[map->codomain];
    return set->group[k] = found;
}

static int split(const char *keys, char *room, const char **names)
{
    int n = 0;
    strcpy(room, keys);
    for (char *word = strtok(room, " "); word; word = strtok(NULL, " ")) names[n++] = word;
    return n;
}

/* The rows sorted by the tuples, stably: by the last key first. */
static int32_t *sorted(const Set *set, int n, const Map **maps)
{
    int32_t *order = NULL;
    for (int k = n - 1; k >= 0; k--) {
        int64_t *ptr = reserve_items(maps[k]->codomain + 1, sizeof *ptr);
        int32_t *next = reserve_items(set->size, sizeof *next);
        check_grouped(gnnc_group(maps[k]->at, order, set->size, maps[k]->codomain, ptr, next, threads()),
                      set->size, maps[k]->codomain);
        drop(ptr, (maps[k]->codomain + 1) * (int64_t)sizeof *ptr);
        if (order) drop(order, set->size * (int64_t)sizeof *order);
        order = next;
    }
    return order;
}

static Pairs *distinct(const Set *set, const char *keys)
{
    char *room = reserve((int64_t)strlen(keys) + 1);
    const char *names[MAPS];
    const Map *maps[MAPS];
    const int32_t *arrays[MAPS];
    const int n = split(keys, room, names);
    for (int k = 0; k < n; k++) arrays[k] = (maps[k] = map_of(set, names[k]))->at;
    Pairs *out = reserve(sizeof *out);
    out->group.rows = sorted(set, n, maps);
    out->group.kept = set->size;
    out->group.ptr = reserve_items(set->size + 1, sizeof *out->group.ptr);
    out->first = reserve_items(set->size, sizeof *out->first);
    int32_t *run = reserve_items(set->size, sizeof *run);
    const int64_t found = gnnc_runs(arrays, n, out->group.rows, set->size, run, out->first, out->group.ptr, threads());
    if (found == NO_MEMORY) fail("no memory to find the distinct tuples of %lld rows", (long long)set->size);
    out->group.count = found;
    out->row_map = (Map){.size = set->size, .codomain = found, .at = run};
    out->set = new_set(set->name, found);
    for (int k = 0; k < n; k++) give(out->set, names[k], map_of_rows(maps[k], out->first, found));
    return out; /* the names stay, the set has them */
}

const Pairs *pairs_of(Set *set, const char *keys)
{
    for (int k = 0; k < set->pairs; k++)
        if (strcmp(set->pair[k].keys, keys) == 0) return set->pair[k].found;
    if (set->pairs == MAPS) fail("the set %s has more than %d kinds of tuples", set->name, MAPS);
    set->pair[set->pairs].keys = keys;
    return set->pair[set->pairs++].found = distinct(set, keys);
}

int32_t *witness(const Group *group)
{
    int32_t *out = reserve_items(group->count, sizeof *out);
    for (int64_t k = 0; k < group->count; k++)
        out[k] = group->ptr[k + 1] > group->ptr[k] ? group->rows[group->ptr[k]] : -1;
    return out;
}
