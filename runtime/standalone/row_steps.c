/* Steps on rows of integers and truth values, and on the floats that masks are made from. */
#include <math.h>
#include <string.h>

#include "steps.h"

Rows *constant(Type type, double value, int64_t exact, int rank, const int64_t *dims)
{
    Rows *out = new_rows(type, 1, rank, dims);
    for (int64_t i = 0; i < width(out); i++)
        if (is_float(type))
            put_float(out->data, type, i, value);
        else
            put_int(out->data, type, i, exact);
    return out;
}

Rows *table(Type type, const void *values, int rank, const int64_t *dims)
{
    Rows *out = new_rows(type, 1, rank, dims);
    memcpy(out->data, values, (size_t)(width(out) * bytes_of(type)));
    return out;
}

Rows *indices(const Map *map)
{
    Rows *out = new_rows(I64, map->size, 0, NULL);
    for (int64_t i = 0; i < map->size; i++) ((int64_t *)out->data)[i] = map->at[i];
    return out;
}

Rows *iota(const Set *set)
{
    Rows *out = new_rows(I64, set->size, 0, NULL);
    for (int64_t i = 0; i < set->size; i++) ((int64_t *)out->data)[i] = i;
    return out;
}

Rows *size_of(const Set *set)
{
    Rows *out = new_rows(I64, 1, 0, NULL);
    *(int64_t *)out->data = set->size;
    return out;
}

static void copy_rows(Rows *out, int64_t row, const Rows *x, int64_t from, int64_t n)
{
    const int64_t bytes = width(x) * bytes_of(x->type);
    memcpy((char *)out->data + row * bytes, (const char *)x->data + from * bytes, (size_t)(n * bytes));
}

Rows *at(const Map *path, const Rows *x, const Rows *otherwise)
{
    want_rows(x, path->codomain);
    if (otherwise) want_rows(otherwise, path->size);
    const int wide = otherwise && width(otherwise) > width(x);
    Rows *out = wide ? new_rows(x->type, path->size, otherwise->rank, otherwise->dims)
                     : new_rows(x->type, path->size, x->rank, x->dims);
    const int64_t w = width(out), bytes = bytes_of(x->type);
    for (int64_t i = 0; i < path->size; i++) {
        const int64_t row = path->at[i];
        if (row < 0 && !otherwise) fail("a partial map is read where it is not defined");
        const Rows *of = row < 0 ? otherwise : x;
        const int64_t from = row < 0 ? row_of(otherwise, path->size, i) : row_of(x, path->codomain, row);
        for (int64_t j = 0; j < w; j++) /* a single number serves for a row of several */
            memcpy((char *)out->data + (i * w + j) * bytes,
                   (const char *)of->data + (width(of) == 1 ? from : from * w + j) * bytes, (size_t)bytes);
    }
    return out;
}

Rows *stack(const Set *set, const Rows *const *parts)
{
    Rows *out = new_rows(parts[0]->type, set->size, parts[0]->rank, parts[0]->dims);
    int64_t start = 0;
    for (int p = 0; p < set->parts; start += set->part[p++]) {
        want_rows(parts[p], set->part[p]);
        for (int64_t i = 0; i < set->part[p]; i++)
            copy_rows(out, start + i, parts[p], row_of(parts[p], set->part[p], i), 1);
    }
    return out;
}

Rows *part(const Set *set, const Rows *x, int index)
{
    int64_t start = 0;
    for (int p = 0; p < index; p++) start += set->part[p];
    want_rows(x, set->size);
    Rows *out = new_rows(x->type, set->part[index], x->rank, x->dims);
    for (int64_t i = 0; i < out->rows; i++) copy_rows(out, i, x, row_of(x, set->size, start + i), 1);
    return out;
}

Rows *as_rows(const Set *set, const Rows *x)
{
    if (x->rank < 1 || x->dims[0] != set->size)
        fail("%s has %lld rows, which is not the size of the value that becomes them", set->name,
             (long long)set->size);
    Rows *out = new_rows(x->type, set->size, x->rank - 1, x->dims + 1);
    memcpy(out->data, x->data, (size_t)(width(x) * bytes_of(x->type)));
    return out;
}

Rows *as_unit(const Set *set, const Rows *x, int64_t rows)
{
    if (set->size != rows)
        fail("a set of %lld rows cannot be a value of %lld rows", (long long)set->size, (long long)rows);
    int64_t dims[RANK] = {rows};
    if (x->rank == RANK) fail("a row has more than %d dimensions", RANK);
    memcpy(dims + 1, x->dims, (size_t)x->rank * sizeof *dims);
    want_rows(x, rows);
    Rows *out = new_rows(x->type, 1, x->rank + 1, dims);
    const Rows blocks = {.type = x->type, .rows = rows, .data = out->data};
    Rows view = blocks;
    for (int64_t i = 0; i < rows; i++) copy_rows(&view, i, x, row_of(x, rows, i), 1);
    return out;
}

static void take_int(Kind kind, int64_t *sum, int64_t x, int fresh)
{
    switch (kind) {
    case MUL: *sum = (int64_t)((uint64_t)*sum * (uint64_t)x); break;
    case MAX: *sum = fresh || x > *sum ? x : *sum; break;
    case MIN: *sum = fresh || x < *sum ? x : *sum; break;
    case LAST: *sum = x; break;
    default: *sum = (int64_t)((uint64_t)*sum + (uint64_t)x);
    }
}

static void take_float(Kind kind, double *sum, double x, int fresh)
{
    switch (kind) {
    case MUL: *sum *= x; break;
    case MAX: *sum = fresh || x > *sum || isnan(x) ? x : *sum; break;
    case MIN: *sum = fresh || x < *sum || isnan(x) ? x : *sum; break;
    case LAST: *sum = x; break;
    default: *sum += x;
    }
}

/* One number more of a group: `fresh` where it is the first. */
static void accumulate(Kind kind, Rows *out, int64_t to, const Rows *x, int64_t from, int fresh)
{
    if (is_float(x->type)) {
        double sum = get_float(out->data, out->type, to);
        take_float(kind, &sum, get_float(x->data, x->type, from), fresh);
        put_float(out->data, out->type, to, sum);
    } else {
        int64_t sum = get_int(out->data, out->type, to);
        take_int(kind, &sum, get_int(x->data, x->type, from), fresh);
        put_int(out->data, out->type, to, sum);
    }
}

static void divide(Rows *out, int64_t i, int64_t count)
{
    put_float(out->data, out->type, i, get_float(out->data, out->type, i) / (double)count);
}

Rows *reduce(Set *g, const Rows *x, const Rows *otherwise, Kind kind, const char *along, const char *over)
{
    int64_t n, groups;
    int32_t *index = between(g, over, along, &n, &groups);
    want_rows(x, n);
    Rows *out = new_rows(x->type, groups, x->rank, x->dims);
    const int64_t w = width(x);
    if (kind == LAST) want_rows(otherwise, groups);
    for (int64_t k = 0; k < groups; k++) {
        if (kind == LAST) copy_rows(out, k, otherwise, row_of(otherwise, groups, k), 1);
        for (int64_t j = 0; kind == MUL && j < w; j++) {
            if (is_float(x->type))
                put_float(out->data, out->type, k * w + j, 1);
            else
                put_int(out->data, out->type, k * w + j, 1);
        }
    }
    int64_t *sizes = reserve_items(groups, sizeof *sizes);
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = index[i];
        if (k < 0) continue;
        const int fresh = sizes[k]++ == 0;
        const int64_t row = row_of(x, n, i) * w;
        for (int64_t j = 0; j < w; j++) accumulate(kind, out, k * w + j, x, row + j, fresh);
    }
    for (int64_t k = 0; kind == MEAN && k < groups; k++)
        for (int64_t j = 0; j < w; j++) divide(out, k * w + j, sizes[k] ? sizes[k] : 1);
    drop(sizes, groups * (int64_t)sizeof *sizes);
    drop(index, n * (int64_t)sizeof *index);
    return out;
}

Rows *count(Set *g, const char *along, const char *over, Type type)
{
    int64_t n, groups;
    int32_t *index = between(g, over, along, &n, &groups);
    int64_t *sizes = reserve_items(groups, sizeof *sizes);
    for (int64_t i = 0; i < n; i++)
        if (index[i] >= 0) sizes[index[i]]++;
    Rows *out = new_rows(type, groups, 0, NULL);
    for (int64_t k = 0; k < groups; k++) put_int(out->data, type, k, sizes[k]);
    drop(sizes, groups * (int64_t)sizeof *sizes);
    drop(index, n * (int64_t)sizeof *index);
    return out;
}

Rows *cast(const Rows *x, Type type)
{
    Rows *out = new_rows(type, x->rows, x->rank, x->dims);
    for (int64_t i = 0; i < x->rows * width(x); i++)
        if (is_float(x->type))
            put_float(out->data, type, i, get_float(x->data, x->type, i));
        else
            put_int(out->data, type, i, get_int(x->data, x->type, i));
    return out;
}

Rows *reshape(const Rows *x, int rank, const int64_t *dims)
{
    Rows *out = new_rows(x->type, x->rows, rank, dims);
    memcpy(out->data, x->data, (size_t)(x->rows * width(x) * bytes_of(x->type)));
    return out;
}

/* A row of `out` whose number at (i0, i1, ..) is that of `x` at `start` + i0 strides[0] + .. */
static Rows *strided(const Rows *x, int rank, const int64_t *dims, const int64_t *strides, int64_t start)
{
    Rows *out = new_rows(x->type, x->rows, rank, dims);
    const int64_t w = width(out), bytes = bytes_of(x->type);
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < w; j++) {
            int64_t rest = j, from = i * width(x) + start;
            for (int d = rank - 1; d >= 0; rest /= dims[d--]) from += rest % dims[d] * strides[d];
            memcpy((char *)out->data + (i * w + j) * bytes, (const char *)x->data + from * bytes, (size_t)bytes);
        }
    return out;
}

static void strides_of(const Rows *x, int64_t *strides)
{
    int64_t step = 1;
    for (int d = x->rank - 1; d >= 0; step *= x->dims[d--]) strides[d] = step;
}

Rows *transpose(const Rows *x, const int *order)
{
    int64_t strides[RANK], moved[RANK], dims[RANK];
    strides_of(x, strides);
    for (int d = 0; d < x->rank; d++) {
        dims[d] = x->dims[order[d]];
        moved[d] = strides[order[d]];
    }
    return strided(x, x->rank, dims, moved, 0);
}

Rows *broadcast(const Rows *x, int rank, const int64_t *dims)
{
    int64_t strides[RANK], spread[RANK] = {0};
    strides_of(x, strides);
    for (int d = 0; d < x->rank; d++) spread[d + rank - x->rank] = x->dims[d] == 1 ? 0 : strides[d];
    return strided(x, rank, dims, spread, 0);
}

static int64_t clipped(int64_t i, int64_t n, int64_t low, int64_t high)
{
    const int64_t from = i < 0 ? i + n : i;
    return from < low ? low : from > high ? high : from;
}

Rows *slice(const Rows *x, int dim, int64_t lo, int64_t hi, int64_t step)
{
    int64_t strides[RANK], dims[RANK];
    strides_of(x, strides);
    memcpy(dims, x->dims, sizeof dims);
    const int64_t n = x->dims[dim], start = clipped(lo, n, 0, n), stop = clipped(hi, n, 0, n);
    dims[dim] = stop > start ? (stop - start + step - 1) / step : 0;
    const int64_t first = start * strides[dim];
    strides[dim] *= step;
    return strided(x, x->rank, dims, strides, first);
}

Rows *concat(int n, const Rows *const *xs, int dim)
{
    int64_t rows = 1, dims[RANK], outer = 1, inner = bytes_of(xs[0]->type), at_dim = 0;
    memcpy(dims, xs[0]->dims, sizeof dims);
    dims[dim] = 0;
    for (int k = 0; k < n; k++) {
        rows = xs[k]->rows != 1 ? xs[k]->rows : rows;
        dims[dim] += xs[k]->dims[dim];
    }
    for (int d = 0; d < dim; d++) outer *= dims[d];
    for (int d = dim + 1; d < xs[0]->rank; d++) inner *= dims[d];
    Rows *out = new_rows(xs[0]->type, rows, xs[0]->rank, dims);
    for (int k = 0; k < n; at_dim += xs[k++]->dims[dim]) {
        want_rows(xs[k], rows);
        const int64_t block = xs[k]->dims[dim] * inner;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t o = 0; o < outer; o++)
                memcpy((char *)out->data + ((i * outer + o) * dims[dim] + at_dim) * inner,
                       (const char *)xs[k]->data + (row_of(xs[k], rows, i) * outer + o) * block, (size_t)block);
    }
    return out;
}

/* `reduced` has a 1 for each dimension that goes, a 0 for one that stays. */
Rows *row_reduce(const Rows *x, Kind kind, const char *reduced)
{
    int64_t dims[RANK], strides[RANK] = {0}, step = 1;
    int rank = 0;
    for (int d = 0; d < x->rank; d++)
        if (reduced[d] == '0') dims[rank++] = x->dims[d];
    for (int d = x->rank - 1; d >= 0; d--)
        if (reduced[d] == '0') {
            strides[d] = step;
            step *= x->dims[d];
        }
    Rows *out = new_rows(x->type, x->rows, rank, dims);
    const int64_t w = width(x), to_width = width(out);
    char *seen = reserve_items(to_width, 1);
    for (int64_t i = 0; i < x->rows; i++) {
        memset(seen, 0, (size_t)to_width);
        for (int64_t j = 0; j < w; j++) {
            int64_t rest = j, to = 0;
            for (int d = x->rank - 1; d >= 0; rest /= x->dims[d--]) to += rest % x->dims[d] * strides[d];
            accumulate(kind, out, i * to_width + to, x, i * w + j, !seen[to]);
            seen[to] = 1;
        }
    }
    drop(seen, to_width);
    return out;
}
