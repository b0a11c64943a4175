/* Pointwise steps: row shapes broadcast, aligned right, and a single row serves for all. */
#include <math.h>

#include "steps.h"

/* The rest of floor division, with the sign of the divisor. */
static double rest_of(double a, double b)
{
    const double rest = fmod(a, b);
    if (rest == 0) return copysign(0.0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

/* As NumPy has it: a quotient just below a whole number was that number before it was rounded. */
static double floored(double a, double b)
{
    const double quotient = (a - rest_of(a, b)) / b, whole = floor(quotient);
    if (b == 0) return a / b;
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

static double of_floats(Function f, double a, double b)
{
    switch (f) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MULTIPLY: return a * b;
    case DIV: return a / b;
    case FLOORDIV: return floored(a, b);
    case MOD: return rest_of(a, b);
    case NEG: return -a;
    case ABS: return fabs(a);
    case SIGN: return isnan(a) ? 0 : (a > 0) - (a < 0);
    case FLOOR: return floor(a);
    case MAXIMUM: return isnan(a) || a > b ? a : b;
    case MINIMUM: return isnan(a) || a < b ? a : b;
    case EQ: return a == b;
    case NE: return a != b;
    case LT: return a < b;
    case LE: return a <= b;
    case GT: return a > b;
    case GE: return a >= b;
    case LOGICAL_AND: return a != 0 && b != 0;
    case LOGICAL_OR: return a != 0 || b != 0;
    case LOGICAL_NOT: return a == 0;
    default: return a;
    }
}

static int64_t of_ints(Function f, int64_t a, int64_t b)
{
    switch (f) {
    case ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case MULTIPLY: return (int64_t)((uint64_t)a * (uint64_t)b);
    case FLOORDIV: return floor_div(a, b);
    case MOD: return floor_mod(a, b);
    case NEG: return (int64_t)(0 - (uint64_t)a);
    case ABS: return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
    case SIGN: return (a > 0) - (a < 0);
    case MAXIMUM: return a > b ? a : b;
    case MINIMUM: return a < b ? a : b;
    case EQ: return a == b;
    case NE: return a != b;
    case LT: return a < b;
    case LE: return a <= b;
    case GT: return a > b;
    case GE: return a >= b;
    case LOGICAL_AND: return a && b;
    case LOGICAL_OR: return a || b;
    case LOGICAL_NOT: return !a;
    default: return a;
    }
}

static Type type_of(Function f, const Rows *const *xs)
{
    if (f == WHERE) return xs[1]->type;
    return f >= EQ ? I1 : xs[0]->type;
}

/* The row that all rows broadcast to. */
static Rows *result_of(Function f, int n, const Rows *const *xs)
{
    int64_t rows = 1, dims[RANK];
    int rank = 0;
    for (int k = 0; k < n; k++) {
        rank = xs[k]->rank > rank ? xs[k]->rank : rank;
        rows = xs[k]->rows != 1 ? xs[k]->rows : rows;
    }
    for (int d = 0; d < rank; d++) dims[d] = 1;
    for (int k = 0; k < n; k++) {
        want_rows(xs[k], rows);
        for (int d = 0; d < xs[k]->rank; d++)
            if (xs[k]->dims[d] != 1) dims[d + rank - xs[k]->rank] = xs[k]->dims[d];
    }
    return new_rows(type_of(f, xs), rows, rank, dims);
}

/* Where in x the number is that goes with number j of row i of the result. */
static int64_t place(const Rows *x, const Rows *out, int64_t i, int64_t j)
{
    int64_t at = row_of(x, out->rows, i) * width(x), step = 1;
    for (int d = out->rank - 1, e = x->rank - 1; e >= 0; d--, e--) {
        at += x->dims[e] == 1 ? 0 : j % out->dims[d] * step;
        j /= out->dims[d];
        step *= x->dims[e];
    }
    return at;
}

static void apply(Function f, Rows *out, int64_t to, int n, const Rows *const *xs, const int64_t *at)
{
    if (f == WHERE) {
        const int k = get_int(xs[0]->data, xs[0]->type, at[0]) ? 1 : 2;
        if (is_float(out->type))
            put_float(out->data, out->type, to, get_float(xs[k]->data, xs[k]->type, at[k]));
        else
            put_int(out->data, out->type, to, get_int(xs[k]->data, xs[k]->type, at[k]));
    } else if (is_float(xs[0]->type)) {
        const double a = get_float(xs[0]->data, xs[0]->type, at[0]);
        put_float(out->data, out->type, to, of_floats(f, a, n > 1 ? get_float(xs[1]->data, xs[1]->type, at[1]) : 0));
    } else {
        const int64_t a = get_int(xs[0]->data, xs[0]->type, at[0]);
        put_int(out->data, out->type, to, of_ints(f, a, n > 1 ? get_int(xs[1]->data, xs[1]->type, at[1]) : 0));
    }
}

Rows *pointwise(Function f, int n, const Rows *const *xs)
{
    Rows *out = result_of(f, n, xs);
    const int64_t w = width(out);
    for (int64_t i = 0; i < out->rows; i++)
        for (int64_t j = 0; j < w; j++) {
            int64_t at[3];
            for (int k = 0; k < n; k++) at[k] = place(xs[k], out, i, j);
            apply(f, out, i * w + j, n, xs, at);
        }
    return out;
}
