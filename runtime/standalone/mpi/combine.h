/* What one rank has, combined with what another has, number by number. Needs the enumerations `Kind` with SUM, MUL, MAX
 * and MIN, and `Type` with F64, F32, I64 and I32. */
#ifndef GNNC_COMBINE_H
#define GNNC_COMBINE_H

#define EACH(T, expression)                             \
    do {                                                \
        T *x = into;                                    \
        const T *y = other;                             \
        for (int64_t i = 0; i < n; i++) {               \
            const T a = x[i], b = y[i];                 \
            x[i] = expression;                          \
        }                                               \
    } while (0)

/* Of a number that is none, all are none. */
#define FLOATS(T)                                                \
    switch (kind) {                                              \
    case SUM: EACH(T, a + b); break;                             \
    case MUL: EACH(T, a * b); break;                             \
    case MAX: EACH(T, a != a || a >= b ? a : b); break;          \
    default: EACH(T, a != a || a <= b ? a : b); break;           \
    }

/* Sums and products wrap around. */
#define INTEGERS(T, U)                                           \
    switch (kind) {                                              \
    case SUM: EACH(T, (T)((U)a + (U)b)); break;                  \
    case MUL: EACH(T, (T)((U)a * (U)b)); break;                  \
    case MAX: EACH(T, a >= b ? a : b); break;                    \
    default: EACH(T, a <= b ? a : b); break;                     \
    }

static void combine(Kind kind, Type type, void *into, const void *other, int64_t n)
{
    switch (type) {
    case F64: FLOATS(double); break;
    case F32: FLOATS(float); break;
    case I64: INTEGERS(int64_t, uint64_t); break;
    default: INTEGERS(int32_t, uint32_t); break;
    }
}

#endif
