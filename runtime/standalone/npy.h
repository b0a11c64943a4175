/* Arrays in NumPy's files (.npy, versions 1 to 3). */
#ifndef GNNC_NPY_H
#define GNNC_NPY_H
#include "base.h"

/* An array as a file has it, in C's order of dimensions. */
typedef struct {
    const char *name;
    Type type;
    int rank;
    int64_t dims[RANK];
    void *data;
} Array;

/* Reads `folder`/`name`.npy. Ends the process where it is not there, is no such file, has numbers of
 * another type, or another shape: `dims` has -1 for a dimension of any size. */
Array read_array(const char *folder, const char *name, Type type, int rank, const int64_t *dims);
/* Ends the process unless dimension `d` is that of another array. */
void want_same(const Array *x, int d, const Array *y, int e);
void write_array(const char *folder, const Array *x);
/* The array with dimension `axis` in front, as rows: itself where it is, and copied where not;
 * axis -1: one row. */
Rows rows_of(const Array *x, int axis);
/* Writes such rows to where the array has them. */
void rows_back(const Rows *rows, Array *x, int axis);
/* The entries of a matrix that are not 0, from row to row: the row, the column or the value of each.
 * Ends the process where one is not finite, for 0 times infinity is not 0. */
typedef enum { ROW, COLUMN, VALUE } Part;
Array nonzeros(const Array *x, Part part, const char *name);
/* Gives the numbers of an array back, which keeps its shape. */
void forget_numbers(Array *x);
/* A column of integers: the array with `axis` in front, at place `index` of the rest of a row. */
Rows column_of(const Array *x, int axis, int64_t index);
#endif
