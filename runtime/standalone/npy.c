/* Arrays in NumPy's files: see npy.h. The format is NumPy's own, numpy/lib/format.py. */
#include "npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEAD = 10, LONGEST = 1 << 16 };

static const char *const CODES[] = {"<f4", "<f8", "<i4", "<i8", "|b1"};

static void place(char *path, size_t room, const char *folder, const char *name)
{
    if (snprintf(path, room, "%s/%s.npy", folder, name) >= (int)room) fail("%s: a name too long", folder);
}

static const char *after(const char *text, const char *key, const char *path)
{
    const char *found = strstr(text, key);
    if (!found) fail("%s: its header has no %s", path, key);
    found += strlen(key);
    while (*found == ' ' || *found == ':') found++;
    return found;
}

static void read_shape(Array *x, const char *text, const char *path)
{
    const char *at = after(text, "'shape'", path);
    if (*at++ != '(') fail("%s: its header has no shape", path);
    x->rank = 0;
    while (*at && *at != ')') {
        char *end;
        const long long size = strtoll(at, &end, 10);
        if (end == at || size < 0 || x->rank == RANK) fail("%s: a shape that cannot be read", path);
        x->dims[x->rank++] = size;
        at = end;
        while (*at == ',' || *at == ' ') at++;
    }
}

static void read_type(Array *x, const char *text, const char *path, Type type)
{
    const char *code = after(text, "'descr'", path);
    int found = -1;
    for (int t = F32; t <= I1; t++)
        if (strncmp(code + 1, CODES[t], 3) == 0) found = t;
    if (found < 0) fail("%s has numbers of type %.6s, the program takes %s", path, code, name_of(type));
    if (found != (int)type)
        fail("%s has numbers of type %s, the program takes %s", path, name_of((Type)found), name_of(type));
    x->type = type;
    if (strncmp(after(text, "'fortran_order'", path), "False", 5) != 0)
        fail("%s is in Fortran's order of dimensions: save numpy.ascontiguousarray of it", path);
}

static void read_header(FILE *file, Array *x, const char *path, Type type)
{
    unsigned char head[HEAD + 2];
    if (fread(head, 1, HEAD, file) != HEAD || memcmp(head, "\x93NUMPY", 6) != 0)
        fail("%s is no .npy file", path);
    size_t length = (size_t)(head[8] | head[9] << 8);
    if (head[6] > 1) { /* later versions have four bytes for the length */
        if (fread(head + HEAD, 1, 2, file) != 2) fail("%s ends in its header", path);
        length |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    }
    if (length >= LONGEST) fail("%s has a header of %zu bytes", path, length);
    char *text = reserve((int64_t)length + 1);
    if (fread(text, 1, length, file) != length) fail("%s ends in its header", path);
    read_type(x, text, path, type);
    read_shape(x, text, path);
    drop(text, (int64_t)length + 1);
}

static int64_t count_of(const Array *x)
{
    int64_t n = 1;
    for (int d = 0; d < x->rank; d++)
        if (__builtin_mul_overflow(n, x->dims[d], &n)) fail("%s: a shape too large", x->name);
    return n;
}

static void check_shape(const Array *x, const char *path, int rank, const int64_t *dims)
{
    if (x->rank != rank) fail("%s has %d dimensions, the program takes %d", path, x->rank, rank);
    for (int d = 0; d < rank; d++)
        if (dims[d] >= 0 && dims[d] != x->dims[d])
            fail("%s has %lld entries in dimension %d, the program is made for %lld", path,
                 (long long)x->dims[d], d, (long long)dims[d]);
}

Array read_array(const char *folder, const char *name, Type type, int rank, const int64_t *dims)
{
    char path[4096];
    place(path, sizeof path, folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) fail("%s cannot be read: the program needs this array", path);
    Array x = {.name = name};
    read_header(file, &x, path, type);
    check_shape(&x, path, rank, dims);
    const int64_t n = count_of(&x);
    x.data = reserve_items(n, bytes_of(type));
    if (fread(x.data, (size_t)bytes_of(type), (size_t)n, file) != (size_t)n)
        fail("%s ends before its %lld numbers do", path, (long long)n);
    if (fgetc(file) != EOF) fail("%s is longer than its %lld numbers", path, (long long)n);
    fclose(file);
    return x;
}

void want_same(const Array *x, int d, const Array *y, int e)
{
    if (x->dims[d] != y->dims[e])
        fail("%s has %lld entries in dimension %d, but %s has %lld in dimension %d: they have to be "
             "as many", x->name, (long long)x->dims[d], d, y->name, (long long)y->dims[e], e);
}

void write_array(const char *folder, const Array *x)
{
    char path[4096], shape[512] = "", head[1024];
    mkdir(folder, 0777); /* where it is there, or cannot be made, fopen tells */
    place(path, sizeof path, folder, x->name);
    for (int d = 0; d < x->rank; d++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lld,", (long long)x->dims[d]);
    int n = snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                     CODES[x->type], shape);
    while ((HEAD + n + 1) % ALIGNMENT) head[n++] = ' ';
    head[n++] = '\n';
    const unsigned char start[HEAD] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)n, (unsigned char)(n >> 8)};
    FILE *file = fopen(path, "wb");
    const size_t count = (size_t)count_of(x);
    if (!file || fwrite(start, 1, HEAD, file) != HEAD || fwrite(head, 1, (size_t)n, file) != (size_t)n ||
        fwrite(x->data, (size_t)bytes_of(x->type), count, file) != count || fclose(file))
        fail("%s cannot be written", path);
}

static Rows shape_of_rows(const Array *x, int axis)
{
    Rows out = {.type = x->type, .rows = axis < 0 ? 1 : x->dims[axis]};
    for (int d = 0; d < x->rank; d++)
        if (d != axis) out.dims[out.rank++] = x->dims[d];
    return out;
}

/* Copies between the array (`outer` blocks of `n` blocks of `inner` bytes) and its rows. */
static void move_rows(const Array *x, int axis, char *rows, int back)
{
    int64_t outer = 1, inner = bytes_of(x->type);
    for (int d = 0; d < axis; d++) outer *= x->dims[d];
    for (int d = axis + 1; d < x->rank; d++) inner *= x->dims[d];
    char *array = x->data;
    for (int64_t i = 0; i < x->dims[axis]; i++)
        for (int64_t o = 0; o < outer; o++) {
            char *a = array + (o * x->dims[axis] + i) * inner, *r = rows + (i * outer + o) * inner;
            memcpy(back ? a : r, back ? r : a, (size_t)inner);
        }
}

Rows rows_of(const Array *x, int axis)
{
    Rows out = shape_of_rows(x, axis);
    out.data = x->data;
    if (axis > 0) {
        out.data = reserve_items(count_of(x), bytes_of(x->type));
        move_rows(x, axis, out.data, 0);
    }
    return out;
}

void rows_back(const Rows *rows, Array *x, int axis)
{
    if (axis > 0)
        move_rows(x, axis, rows->data, 1);
    else if (rows->data != x->data)
        memcpy(x->data, rows->data, (size_t)(count_of(x) * bytes_of(x->type)));
}

Array nonzeros(const Array *x, Part part, const char *name)
{
    const int64_t n = count_of(x), columns = x->dims[1];
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        const double value = get_float(x->data, x->type, i);
        if (!isfinite(value)) fail("%s has a number that is not finite: the program takes it as sparse", x->name);
        found += value != 0;
    }
    Array out = {.name = name, .type = part == VALUE ? x->type : I64, .rank = 1, .dims = {found}};
    out.data = reserve_items(found, bytes_of(out.type));
    for (int64_t i = 0, k = 0; k < found; i++) {
        const double value = get_float(x->data, x->type, i);
        if (value == 0) continue;
        if (part == VALUE)
            put_float(out.data, out.type, k++, value);
        else
            put_int(out.data, I64, k++, part == ROW ? i / columns : i % columns);
    }
    return out;
}

void forget_numbers(Array *x)
{
    drop(x->data, count_of(x) * bytes_of(x->type));
    x->data = NULL;
}

Rows column_of(const Array *x, int axis, int64_t index)
{
    Rows all = rows_of(x, axis);
    const int64_t n = all.rows, w = width(&all);
    Rows out = {.type = x->type, .rows = n, .data = reserve_items(n, bytes_of(x->type))};
    for (int64_t i = 0; i < n; i++) put_int(out.data, out.type, i, get_int(all.data, all.type, i * w + index));
    if (all.data != x->data) drop(all.data, count_of(x) * bytes_of(x->type));
    return out;
}
