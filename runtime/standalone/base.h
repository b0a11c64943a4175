/* What all files of the library share: errors, memory, and arrays of numbers. */
#ifndef GNNC_BASE_H
#define GNNC_BASE_H
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

enum { RANK = 8, ALIGNMENT = 64 };

typedef enum { F32, F64, I32, I64, I1 } Type;

/* Rows of numbers, without gaps: `rows` blocks of `dims`. A value without a set has a single row. */
typedef struct {
    Type type;
    int64_t rows;
    int rank;
    int64_t dims[RANK];
    void *data;
} Rows;

/* Where several processes train together: what goes in front of a message, and what ends the others. */
extern void (*before_message)(void);
extern void (*before_end)(int status);
_Noreturn void end_process(int status);
/* Writes a message to stderr and ends the process with status 1. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* At least `bytes` bytes, aligned for vectors, zeroed; long blocks are asked for in huge pages. The
 * process ends where there are none. `drop` takes them back. */
void *reserve(int64_t bytes);
void drop(void *block, int64_t bytes);
/* `count` items of `size` bytes; ends the process where the product is too large. */
void *reserve_items(int64_t count, int64_t size);

int64_t bytes_of(Type type);
const char *name_of(Type type);
/* How many numbers one row has. */
int64_t width(const Rows *x);
Rows *new_rows(Type type, int64_t rows, int rank, const int64_t *dims);
void drop_rows(Rows *x);

/* Threads of the kernels: OMP_NUM_THREADS, else the cores that this process may run on. */
int threads(void);
/* Floor division and its rest, as Python has them; 0 for a divisor of 0. */
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

/* One number of an array as the widest type of its kind. */
static inline int64_t get_int(const void *data, Type type, int64_t i)
{
    switch (type) {
    case I64: return ((const int64_t *)data)[i];
    case I32: return ((const int32_t *)data)[i];
    default: return ((const uint8_t *)data)[i];
    }
}

static inline double get_float(const void *data, Type type, int64_t i)
{
    return type == F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static inline int is_float(Type type) { return type == F32 || type == F64; }

static inline void put_int(void *data, Type type, int64_t i, int64_t value)
{
    switch (type) {
    case I64: ((int64_t *)data)[i] = value; break;
    case I32: ((int32_t *)data)[i] = (int32_t)(uint32_t)(uint64_t)value; break;
    case I1: ((uint8_t *)data)[i] = value != 0; break;
    case F64: ((double *)data)[i] = (double)value; break;
    case F32: ((float *)data)[i] = (float)value; break;
    }
}

/* Towards zero into integers; what these cannot hold is their least number. */
static inline void put_float(void *data, Type type, int64_t i, double value)
{
    const double limit = type == I32 ? 2147483648.0 : 9223372036854775808.0;
    switch (type) {
    case F64: ((double *)data)[i] = value; break;
    case F32: ((float *)data)[i] = (float)value; break;
    case I1: ((uint8_t *)data)[i] = value != 0; break;
    case I32:
        ((int32_t *)data)[i] = value > -limit - 1 && value < limit ? (int32_t)value : INT32_MIN;
        break;
    case I64:
        ((int64_t *)data)[i] = value >= -limit && value < limit ? (int64_t)value : INT64_MIN;
        break;
    }
}
#endif
