/* The kernels of structure.c. */
#ifndef GNNC_STRUCTURE_H
#define GNNC_STRUCTURE_H
#include <stdint.h>

enum { NO_MEMORY = -2 };

int64_t gnnc_narrow_i64(const int64_t *x, int64_t n, int64_t lo, int64_t hi, int32_t *out, int threads);
int64_t gnnc_narrow_i32(const int32_t *x, int64_t n, int64_t lo, int64_t hi, int32_t *out, int threads);
int64_t gnnc_take_i32(const int32_t *table, int64_t size, const int32_t *rows, int64_t n, int32_t *out, int threads);
int64_t gnnc_group(const int32_t *keys, const int32_t *order, int64_t e, int64_t n, int64_t *ptr, int32_t *rows,
                   int threads);
int64_t gnnc_runs(const int32_t *const *keys, int64_t width, const int32_t *order, int64_t e, int32_t *run,
                  int32_t *first, int64_t *start, int threads);
int64_t gnnc_where(const uint8_t *mask, int64_t n, int32_t *out, int threads);
int64_t gnnc_where_different(const int32_t *a, const int32_t *b, int64_t n, int32_t *out, int threads);
int64_t gnnc_last_loop(const int32_t *a, const int32_t *b, int64_t e, int64_t n, int32_t *last, int threads);
#endif
