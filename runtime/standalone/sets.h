/* Finite sets with named maps, as runtime/sets/sets.py has them: a graph is a set of edges with the
 * maps src and dst into its nodes. */
#ifndef GNNC_SETS_H
#define GNNC_SETS_H
#include "base.h"

enum { MAPS = 32, PARTS = 256 };

/* A map from the rows of one set to the `codomain` rows of another; -1: a partial one has none. */
typedef struct {
    int64_t size, codomain;
    int32_t *at;
    int partial, identity;
} Map;

/* Rows by group: those of group k are rows[ptr[k]] .. rows[ptr[k + 1] - 1], ascending. */
typedef struct {
    int64_t count, kept;
    int64_t *ptr;
    int32_t *rows;
} Group;

typedef struct Set Set;

/* The distinct tuples of several maps, in lexicographic order, as a set of their own: the `first` row
 * that has each, the tuple of each row (`row_map`), and the rows of each (`group`). */
typedef struct {
    Set *set;
    int32_t *first;
    Map row_map;
    Group group;
} Pairs;

struct Set {
    const char *name;
    int64_t size;
    int maps, parts, tails, pairs;
    const char *names[MAPS];
    const Map *map[MAPS];
    Group *group[MAPS];
    int64_t part[PARTS];
    struct { const char *from, *to; const Map *map; } tail[MAPS];
    struct { const char *keys; Pairs *found; } pair[MAPS];
};

Set *new_set(const char *name, int64_t size);
/* The integers of a user as a map: an index out of range ends the process, naming the array. */
const Map *checked_map(const Rows *values, int64_t codomain, const char *what, int partial);
const Map *identity_map(int64_t size);
/* Values that are known to be in range. */
const Map *trusted_map(int32_t *at, int64_t size, int64_t codomain, int partial);
void give(Set *set, const char *name, const Map *map);
int has(const Set *set, const char *name);
const Map *map_of(const Set *set, const char *name);
/* This map followed by another. */
const Map *then(const Map *a, const Map *b);
/* This map on chosen rows only. */
const Map *map_of_rows(const Map *map, int32_t *rows, int64_t count);
const Group *group_by(Set *set, const char *name);
/* `keys` are the names of maps, each ended by a space. */
const Pairs *pairs_of(Set *set, const char *keys);
/* One row of each group, -1 of an empty one. */
int32_t *witness(const Group *group);
int32_t *iota32(int64_t n);
#endif
