/* The steps that make sets and rows of a graph, as runtime/sets/set_steps.py and row_steps.py have
 * them: each is described there. Values given back are new; arguments stay as they are.
 *
 * A list of keys is a text with a space behind each; NULL means every row of the set. */
#ifndef GNNC_STEPS_H
#define GNNC_STEPS_H
#include "sets.h"

Set *filter_loops(const char *name, Set *g);
Set *filter_rows(const char *name, Set *g, const Rows *mask);
Set *interval(const char *name, Set *base, const Rows *lo, const Rows *hi);
Set *loops(const char *name, Set *g, int remaining);
/* A map of a union: where `into` is given, the map of part p leads to its part `places[p]`. */
typedef struct {
    const char *name;
    const Set *into;
    const int *places;
} United;

Set *unite(const char *name, int n, Set *const *parts, int maps, const United *united);

/* A map that `attach` makes of rows; `what` names the array in errors. */
typedef struct {
    const char *name, *what;
    const Rows *rows;
    const Set *codomain;
    int partial, mono, onto;
} Attached;

Set *attach(const char *name, Set *base, int n, const Attached *maps);
Set *sized(const char *name, const Rows *n);
/* `set` with the map `path`, which is `first` followed by `rest`. */
Set *derive(const char *name, Set *set, const char *path, const char *first, const Map *rest);
Rows *read_rows(Set *g, const Rows *x, const char *from, const char *to);

Rows *constant(Type type, double value, int64_t exact, int rank, const int64_t *dims);
Rows *table(Type type, const void *values, int rank, const int64_t *dims);
Rows *indices(const Map *map);
Rows *iota(const Set *set);
Rows *size_of(const Set *set);
Rows *at(const Map *path, const Rows *x, const Rows *otherwise);
Rows *stack(const Set *set, const Rows *const *parts);
Rows *part(const Set *set, const Rows *x, int index);
Rows *as_rows(const Set *set, const Rows *x);
Rows *as_unit(const Set *set, const Rows *x, int64_t rows);

typedef enum { SUM, MEAN, MUL, MAX, MIN, LAST } Kind;

Rows *reduce(Set *g, const Rows *x, const Rows *otherwise, Kind kind, const char *along, const char *over);
Rows *count(Set *g, const char *along, const char *over, Type type);
Rows *cast(const Rows *x, Type type);
Rows *reshape(const Rows *x, int rank, const int64_t *dims);
Rows *transpose(const Rows *x, const int *order);
Rows *broadcast(const Rows *x, int rank, const int64_t *dims);
Rows *slice(const Rows *x, int dim, int64_t lo, int64_t hi, int64_t step);
Rows *concat(int n, const Rows *const *xs, int dim);
Rows *row_reduce(const Rows *x, Kind kind, const char *reduced);

typedef enum {
    ADD, SUB, MULTIPLY, DIV, FLOORDIV, MOD, NEG, ABS, SIGN, FLOOR, MAXIMUM, MINIMUM,
    EQ, NE, LT, LE, GT, GE, LOGICAL_AND, LOGICAL_OR, LOGICAL_NOT, WHERE
} Function;

Rows *pointwise(Function function, int n, const Rows *const *xs);

/* x with `rows` rows, where it has as many or a single one: the place of row i. */
int64_t row_of(const Rows *x, int64_t rows, int64_t i);
void want_rows(const Rows *x, int64_t rows);
/* The row stored for `coarse` of each row stored for `fine`; *n and *count are how many there are. */
int32_t *between(Set *g, const char *fine, const char *coarse, int64_t *n, int64_t *count);
#endif
