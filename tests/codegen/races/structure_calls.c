/* Calls every kernel of runtime/sets/structure.c on a small graph with four threads; what they give is tested elsewhere. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 50, EDGES = 1000, THREADS = 4 };

int64_t gnnc_narrow_i64(const int64_t *x, int64_t n, int64_t lo, int64_t hi, int32_t *out, int threads);
int64_t gnnc_narrow_i32(const int32_t *x, int64_t n, int64_t lo, int64_t hi, int32_t *out, int threads);
int64_t gnnc_take_i32(const int32_t *map, int64_t size, const int32_t *rows, int64_t n, int32_t *out, int threads);
int64_t gnnc_group(const int32_t *keys, const int32_t *order, int64_t e, int64_t n, int64_t *ptr, int32_t *out, int threads);
int64_t gnnc_runs(const int32_t *const *keys, int64_t width, const int32_t *order, int64_t e, int32_t *run, int32_t *first, int64_t *start,
                  int threads);
int64_t gnnc_where(const uint8_t *mask, int64_t n, int32_t *out, int threads);
int64_t gnnc_where_different(const int32_t *a, const int32_t *b, int64_t n, int32_t *out, int threads);
int64_t gnnc_last_loop(const int32_t *a, const int32_t *b, int64_t e, int64_t n, int32_t *last, int threads);
int64_t gnnc_arrange(const void *records, int64_t map_count, int64_t order_count, int64_t e, int threads);

static int64_t wide[EDGES], ptr[EDGES + 1], start[EDGES + 1];
static int32_t src[EDGES], dst[EDGES], many[EDGES], order[EDGES], out[EDGES], run[EDGES], first[EDGES], last[NODES];
static uint8_t mask[EDGES];

static void need(int good, const char *what) {
    if (good) return;
    fprintf(stderr, "%s failed\n", what);
    exit(2);
}

int main(void) {
    for (int i = 0; i < EDGES; i++) {
        wide[i] = rand() % NODES;
        src[i] = rand() % NODES;
        dst[i] = i % 3 ? rand() % NODES : src[i];
        many[i] = rand() % 5000;
        mask[i] = rand() % 2 == 0;
    }
    need(gnnc_narrow_i64(wide, EDGES, 0, NODES, out, THREADS) == -1, "narrow");
    need(gnnc_narrow_i32(src, EDGES, 0, NODES, out, THREADS) == -1, "narrow");
    need(gnnc_group(src, NULL, EDGES, NODES, ptr, order, THREADS) == -1, "group");
    need(gnnc_group(dst, order, EDGES, NODES, ptr, out, THREADS) == -1, "group in an order");
    static int64_t long_ptr[5001];
    need(gnnc_group(many, NULL, EDGES, 5000, long_ptr, out, THREADS) == -1, "group by many keys");
    need(gnnc_take_i32(src, EDGES, order, EDGES, out, THREADS) == -1, "take");
    const int32_t *keys[] = {src};
    need(gnnc_runs(keys, 1, order, EDGES, run, first, start, THREADS) > 0, "runs");
    need(gnnc_where(mask, EDGES, out, THREADS) > 0, "where");
    need(gnnc_where_different(src, dst, EDGES, out, THREADS) > 0, "where different");
    need(gnnc_last_loop(src, dst, EDGES, NODES, last, THREADS) == -1, "last loop");
    static int32_t checked[2][EDGES], rows[EDGES];
    const int64_t records[] = {
        (int64_t)src, 4, NODES, (int64_t)checked[0], (int64_t)wide, 8, NODES, (int64_t)checked[1], /* maps */
        0, (int64_t)ptr, 0, 1, 0, 1, (int64_t)start, (int64_t)rows, 1, 1,                         /* orders */
        1, (int64_t)out, 0, (int64_t)order,                                                        /* taken */
    };
    need(gnnc_arrange(records, 2, 2, EDGES, THREADS) == -1, "arrange");
    return 0;
}
