/* Kernels on graph structure: checks, sorting by a key, distinct tuples, filters.
 *
 * Rows of a set are numbered by int32, positions in index structures by int64. Every function checks each index before it is used, takes the
 * number of threads, and gives the same result for any number of threads. Functions that can fail return a negative status, or the position
 * of the first offending value.
 */
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK = -1, NO_MEMORY = -2, IN_ORDER = -3 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The part of 0..n that belongs to thread t of T. */
static int64_t part(int64_t n, int t, int T) { return n / T * t + least(t, n % T); }

/* Items that make a further thread worth starting; tests set it to 1. */
#ifndef GRAIN
#define GRAIN 16384
#endif

static int team(int64_t n, int threads) {
    int64_t useful = n / GRAIN + 1;
    return (int)(useful < threads ? useful : threads < 1 ? 1 : threads);
}

/* ---- checks and conversions ---------------------------------------------------------------------------------------------------------- */

/* out = x as int32, each value in [lo, hi); returns OK or the position of the first value that is not. lo >= -2^31, hi <= 2^31. */
#define NARROW(NAME, TYPE)                                                                          \
    static int64_t NAME##_alone(const TYPE *x, int64_t n, int64_t lo, int64_t hi, int32_t *out) {   \
        int64_t bad = INT64_MAX;                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                           \
            int64_t v = x[i];                                                                       \
            int64_t here = v >= lo && v < hi ? INT64_MAX : i;                                       \
            out[i] = (int32_t)(v >= lo && v < hi ? v : 0);                                          \
            bad = here < bad ? here : bad;                                                          \
        }                                                                                           \
        return bad == INT64_MAX ? OK : bad;                                                         \
    }                                                                                               \
    int64_t NAME(const TYPE *x, int64_t n, int64_t lo, int64_t hi, int32_t *out, int threads) {     \
        int64_t bad = INT64_MAX;                                                                    \
        int T = team(n, threads);                                                                   \
        _Pragma("omp parallel for num_threads(T) reduction(min : bad)")                             \
        for (int t = 0; t < T; t++) {                                                               \
            int64_t first = part(n, t, T);                                                         \
            int64_t here = NAME##_alone(x + first, part(n, t + 1, T) - first, lo, hi, out + first); \
            if (here != OK && first + here < bad) bad = first + here;                             \
        }                                                                                           \
        return bad == INT64_MAX ? OK : bad;                                                         \
    }
NARROW(gnnc_narrow_i64, int64_t)
NARROW(gnnc_narrow_i32, int32_t)

/* out[p] = map[rows[p]], or -1 where rows[p] is -1; returns OK or the position of the first row that is not a row of map. */
int64_t gnnc_take_i32(const int32_t *map, int64_t size, const int32_t *rows, int64_t n, int32_t *out, int threads) {
    int64_t bad = INT64_MAX;
#pragma omp parallel for num_threads(team(n, threads)) reduction(min : bad)
    for (int64_t p = 0; p < n; p++) {
        int64_t row = rows[p];
        int inside = row >= 0 && row < size;
        out[p] = inside ? map[row] : -1;
        int64_t here = inside || row == -1 ? INT64_MAX : p;
        bad = here < bad ? here : bad;
    }
    return bad == INT64_MAX ? OK : bad;
}

/* ---- stable counting sort ------------------------------------------------------------------------------------------------------------ */

/* Sorting goes in two steps, so that both histograms and open output streams stay in cache: rows are first distributed over buckets of
 * 2^shift consecutive keys, then each bucket is sorted by key on its own. Few keys (shift = 0) need the first step only. Within a bucket
 * keys are told apart by two bytes. */
enum { BUCKETS = 1024 };

/* The logarithm of the most keys of a bucket; tests set it to 1. */
#ifndef WIDEST
#define WIDEST 16
#endif

/* Keys, and a quarter of the rows, up to which one step is faster: the cache has room for all of it. Tests set it to 0. */
#ifndef SMALL
#define SMALL (1 << 16)
#endif

static int bucket_shift(int64_t e, int64_t n) {
    int shift = 0;
    if (n <= SMALL && e <= 4 * SMALL) return 0;
    while (shift < WIDEST && (n >> shift) >= BUCKETS) shift++;
    return shift;
}

/* Sorts the rows of one bucket, which lie at out in user order; keys[i] is the key of out[i], counted from the bucket's first. ptr and count
 * have an entry a key; base is where the bucket begins among all. Returns whether there was memory. */
static int sort_bucket(const uint16_t *keys, int64_t size, int64_t key_count, int64_t base, int64_t *count, int64_t *ptr, int32_t *out) {
    int32_t *rows = malloc((size_t)(size ? size : 1) * sizeof *rows);
    if (!rows) return 0;
    memset(count, 0, (size_t)key_count * sizeof *count);
    for (int64_t i = 0; i < size; i++) count[keys[i]]++;
    int64_t at = 0;
    for (int64_t k = 0; k < key_count; k++) {
        int64_t c = count[k];
        ptr[k] = base + at;
        count[k] = at;
        at += c;
    }
    if (size) memcpy(rows, out, (size_t)size * sizeof *rows);
    for (int64_t i = 0; i < size; i++) out[count[keys[i]]++] = rows[i];
    free(rows);
    return 1;
}

/* Whether keys are in [0, n) and none is less than the one before. */
static int are_ascending(const int32_t *keys, int64_t e, int64_t n, int T) {
    enum { BLOCK = 1024 };
    int all = e == 0 || (keys[0] >= 0 && keys[e - 1] < n);
    if (!all) return 0;
#pragma omp parallel num_threads(T) reduction(&& : all)
    {
        int t0 = omp_get_thread_num(), step = omp_get_num_threads();
        for (int t = t0; t < T; t += step) {
            int64_t end = part(e, t + 1, T);
            for (int64_t lo = part(e, t, T); lo < end && all; lo += BLOCK) {
                int ascending = 1;
                for (int64_t i = lo ? lo : 1, hi = least(lo + BLOCK, end); i < hi; i++) ascending &= keys[i - 1] <= keys[i];
                all = ascending;
            }
        }
    }
    return all;
}

/* gnnc_group of keys that ascend: a group begins where its key, or a greater one, comes first. */
static void group_ascending(const int32_t *keys, int64_t e, int64_t n, int64_t *ptr, int32_t *out, int T) {
#pragma omp parallel for num_threads(T) schedule(static)
    for (int64_t i = 0; i <= e; i++) {
        int64_t last = i < e ? keys[i] : n;
        for (int64_t k = i ? keys[i - 1] + 1 : 0; k <= last; k++) ptr[k] = i;
        if (i < e) out[i] = (int32_t)i;
    }
}

/* Groups positions 0..e by key, stably. keys[i] is in [0, n), or -1 for a position that belongs to no group. With `order` (a list of e
 * positions, each in [0, e)) the positions are taken in that order instead, and position i has key keys[order[i]].
 * ptr has n + 1 entries: group k is out[ptr[k]..ptr[k + 1]]. Entries of out from ptr[n] on are not written.
 * Returns OK, IN_ORDER where out counts up from 0, NO_MEMORY, or the position of the first key (or entry of order) that is out of range; then
 * nothing in ptr or out is valid. */
int64_t gnnc_group(const int32_t *keys, const int32_t *order, int64_t e, int64_t n, int64_t *ptr, int32_t *out, int threads) {
    int T = team(e, threads), shift = bucket_shift(e, n);
    if (!order && are_ascending(keys, e, n, T)) {
        group_ascending(keys, e, n, ptr, out, T);
        return IN_ORDER;
    }
    int64_t buckets = (n >> shift) + 1; /* the last key's bucket, or one more, takes the keys of -1 */
    int64_t dropped = buckets, streams = buckets + 1, width = (int64_t)1 << shift;
    int64_t *offset = calloc((size_t)(T * streams + 1), sizeof *offset);
    int64_t *count = malloc((size_t)(T * width) * sizeof *count);
    uint16_t *within = malloc((size_t)(shift && e ? e : 1) * sizeof *within); /* the key of each row in its bucket */
    int64_t bad = INT64_MAX;
    int64_t status = NO_MEMORY;
    int sorted = 1;
    if (!offset || !count || !within) goto done;
#pragma omp parallel num_threads(T) reduction(min : bad)
    {
        /* fewer threads than asked for may run, so parts are assigned in a loop */
        int t0 = omp_get_thread_num(), step = omp_get_num_threads();
        for (int t = t0; t < T; t += step) {
            int64_t *mine = offset + t * streams;
            for (int64_t i = part(e, t, T), end = part(e, t + 1, T); i < end; i++) {
                int64_t row = order ? order[i] : i;
                if (row < 0 || row >= e) { bad = i < bad ? i : bad; continue; }
                int64_t key = keys[row];
                if (key < -1 || key >= n) { bad = i < bad ? i : bad; continue; }
                mine[key < 0 ? dropped : key >> shift]++;
            }
        }
    }
    if (bad != INT64_MAX) { status = bad; goto done; }
    /* offsets in the order (bucket, thread), which keeps the distribution stable */
    int64_t at = 0;
    for (int64_t b = 0; b < streams; b++) {
        if (!shift && b <= n) ptr[b] = at;
        for (int t = 0; t < T; t++) {
            int64_t c = offset[t * streams + b];
            offset[t * streams + b] = at;
            at += c;
        }
    }
#pragma omp parallel num_threads(T) reduction(&& : sorted)
    {
        int t0 = omp_get_thread_num(), step = omp_get_num_threads();
        for (int t = t0; t < T; t += step) {
            int64_t *mine = offset + t * streams;
            for (int64_t i = part(e, t, T), end = part(e, t + 1, T); i < end; i++) {
                int32_t row = order ? order[i] : (int32_t)i;
                int32_t key = keys[row];
                if (key < 0) continue;
                int64_t p = mine[key >> shift]++;
                if (shift) within[p] = (uint16_t)(key & (width - 1));
                out[p] = row;
            }
        }
        /* the last thread's offset is now the end of each bucket */
        const int64_t *ends = offset + (T - 1) * streams;
        int64_t *own = count + t0 * width;
#pragma omp barrier
#pragma omp for schedule(dynamic, 1)
        for (int64_t b = 0; b < (shift ? buckets : 0); b++) {
            int64_t lo = b ? ends[b - 1] : 0, first = b << shift;
            sorted &= sort_bucket(within + lo, ends[b] - lo, least(width, n - first), lo, own, ptr + first, out + lo);
        }
    }
    ptr[n] = offset[(T - 1) * streams + buckets - 1];
    if (sorted) status = OK;
done:
    free(offset);
    free(count);
    free(within);
    return status;
}

/* ---- small sets, all at once ---------------------------------------------------------------------------------------------------------- */

/* A map as a user gave it, integers of `width` bytes, and as it is checked. */
typedef struct { const void *given; int64_t width, codomain; int32_t *checked; } map;

/* Rows by the values of the map `by`: where each value begins (codomain + 1 entries), the rows, and `taken` maps read at these, of which the first
 * is the one of this number. rows may be NULL where one map is taken. */
typedef struct { int64_t by; int64_t *ptr; int32_t *rows; int64_t taken, first; } order;
typedef struct { int64_t map; int32_t *out; } taken;

/* Counts of rows, which lie where the second half of a `ptr` will: half as many bytes of the nearest cache as its entries would take. */
typedef int32_t __attribute__((may_alias)) places;

/* What was counted, in the order of keys: from here on where the next row of each key goes. */
static void begin_at(places *next, int64_t n) {
    int32_t at = 0;
    for (int64_t k = 0; k < n; k++) {
        int32_t count = next[k];
        next[k] = at;
        at += count;
    }
}

/* When all rows are placed, where the next of a key would go is where those of the following one begin. Entry k + 1 is written when place k was
 * read, and those behind it lie further on. */
static void end_places(const places *next, int64_t n, int64_t *ptr) {
    ptr[0] = 0;
    for (int64_t k = 0; k < n; k++) ptr[k + 1] = next[k];
}

/* The stable counting sort of gnnc_group in one step, for positions that fit the cache. */
static void put_in_order(const map *maps, const order *o, const taken *take, int64_t e) {
    const int32_t *key = maps[o->by].checked;
    int64_t n = maps[o->by].codomain;
    places *next = (places *)o->ptr + n + 1;
    int ascending = 1;
    take += o->first;
    memset(next, 0, (size_t)(n + 1) * sizeof *next);
    for (int64_t i = 0; i < e; i++) {
        ascending &= key[i] >= key[i ? i - 1 : 0];
        next[key[i]]++;
    }
    begin_at(next, n);
    if (ascending) { /* what a sampler gives */
        for (int64_t i = 0; o->rows && i < e; i++) o->rows[i] = (int32_t)i;
        for (int64_t t = 0; t < o->taken && e; t++) memcpy(take[t].out, maps[take[t].map].checked, (size_t)e * sizeof(int32_t));
        for (int64_t k = 0; k + 1 < n; k++) next[k] = next[k + 1];
        if (n) next[n - 1] = (int32_t)e;
    } else if (!o->rows) {
        const int32_t *value = maps[take->map].checked;
        int32_t *out = take->out;
        for (int64_t i = 0; i < e; i++) out[next[key[i]]++] = value[i];
    } else {
        for (int64_t i = 0; i < e; i++) o->rows[next[key[i]]++] = (int32_t)i;
        for (int64_t t = 0; t < o->taken; t++) {
            const int32_t *value = maps[take[t].map].checked;
            for (int64_t p = 0; p < e; p++) take[t].out[p] = value[o->rows[p]];
        }
    }
    end_places(next, n, o->ptr);
}

/* To check and to place a row takes as long as so many items of other loops. */
enum { ITEMS = 4 };

static int is_checked(const map *x, int64_t e) {
    int64_t bad = x->width == 8 ? gnnc_narrow_i64_alone(x->given, e, 0, x->codomain, x->checked)
                                : gnnc_narrow_i32_alone(x->given, e, 0, x->codomain, x->checked);
    return bad == OK;
}

/* Checks the maps of a set of e rows, and puts its rows in orders: `records` are those of the maps, then those of the orders, then what these
 * take. Returns OK, or the number of a map with a value outside its codomain; then nothing that was written is valid. */
int64_t gnnc_arrange(const void *records, int64_t map_count, int64_t order_count, int64_t e, int threads) {
    const map *maps = records;
    const order *orders = (const void *)(maps + map_count);
    const taken *take = (const void *)(orders + order_count);
    int64_t wrong = INT64_MAX;
    int T = team(ITEMS * e, threads);
    if (T == 1) {
        for (int64_t m = 0; m < map_count; m++)
            if (!is_checked(maps + m, e)) return m;
        for (int64_t k = 0; k < order_count; k++) put_in_order(maps, orders + k, take, e);
        return OK;
    }
#pragma omp parallel num_threads(T)
    {
#pragma omp for schedule(static, 1) reduction(min : wrong)
        for (int64_t m = 0; m < map_count; m++)
            if (!is_checked(maps + m, e) && m < wrong) wrong = m;
#pragma omp for schedule(static, 1)
        for (int64_t k = 0; k < order_count; k++)
            if (wrong == INT64_MAX) put_in_order(maps, orders + k, take, e);
    }
    return wrong == INT64_MAX ? OK : wrong;
}

/* ---- distinct tuples ----------------------------------------------------------------------------------------------------------------- */

static int differs(const int32_t *const *keys, int64_t width, int64_t a, int64_t b) {
    for (int64_t k = 0; k < width; k++)
        if (keys[k][a] != keys[k][b]) return 1;
    return 0;
}

/* The runs of equal tuples (keys[0][r], .., keys[width - 1][r]) in rows r = order[0], order[1], ..: order must be sorted by them, stably.
 * run[r] is the number of the run of row r; first[j] the first row of run j and start[j] its position in order. first has room for e entries,
 * start for e + 1. Returns the number of runs, or NO_MEMORY. order must be a permutation of 0..e. */
int64_t gnnc_runs(const int32_t *const *keys, int64_t width, const int32_t *order, int64_t e, int32_t *run, int32_t *first, int64_t *start,
                  int threads) {
    int T = team(e, threads);
    int64_t *base = calloc((size_t)T + 1, sizeof *base);
    if (!base) return NO_MEMORY;
#pragma omp parallel num_threads(T)
    {
        int t0 = omp_get_thread_num(), step = omp_get_num_threads();
        for (int t = t0; t < T; t += step) {
            int64_t c = 0;
            for (int64_t p = part(e, t, T), end = part(e, t + 1, T); p < end; p++)
                c += p == 0 || differs(keys, width, order[p - 1], order[p]);
            base[t + 1] = c;
        }
#pragma omp barrier
#pragma omp single
        for (int t = 0; t < T; t++) base[t + 1] += base[t];
        for (int t = t0; t < T; t += step) {
            int64_t j = base[t];
            for (int64_t p = part(e, t, T), end = part(e, t + 1, T); p < end; p++) {
                if (p == 0 || differs(keys, width, order[p - 1], order[p])) {
                    first[j] = order[p];
                    start[j] = p;
                    j++;
                }
                run[order[p]] = (int32_t)(j - 1);
            }
        }
    }
    int64_t total = base[T];
    start[total] = e;
    free(base);
    return total;
}

/* ---- filters ------------------------------------------------------------------------------------------------------------------------- */

/* Writes the positions i (ascending) with KEEP to out and returns their number, or NO_MEMORY. out has room for n. */
#define COMPACT(NAME, PARAMETERS, KEEP)                                                             \
    int64_t NAME(PARAMETERS, int64_t n, int32_t *out, int threads) {                                \
        int T = team(n, threads);                                                                   \
        int64_t *base = calloc((size_t)T + 1, sizeof *base);                                        \
        if (!base) return NO_MEMORY;                                                                \
        _Pragma("omp parallel num_threads(T)") {                                                    \
            int t0 = omp_get_thread_num(), step = omp_get_num_threads();                            \
            for (int t = t0; t < T; t += step) {                                                    \
                int64_t c = 0;                                                                      \
                for (int64_t i = part(n, t, T), end = part(n, t + 1, T); i < end; i++) c += (KEEP); \
                base[t + 1] = c;                                                                    \
            }                                                                                       \
            _Pragma("omp barrier") _Pragma("omp single") for (int t = 0; t < T; t++) base[t + 1] += base[t]; \
            for (int t = t0; t < T; t += step) {                                                    \
                int64_t j = base[t], stop = base[t + 1];                                            \
                for (int64_t i = part(n, t, T), end = part(n, t + 1, T); i < end && j < stop; i++)  \
                    if (KEEP) out[j++] = (int32_t)i;                                                \
            }                                                                                       \
        }                                                                                           \
        int64_t total = base[T];                                                                    \
        free(base);                                                                                 \
        return total;                                                                               \
    }
#define COMMA ,
COMPACT(gnnc_where, const uint8_t *mask, mask[i] != 0)
COMPACT(gnnc_where_different, const int32_t *a COMMA const int32_t *b, a[i] != b[i])

/* last[v] = the greatest i with a[i] = b[i] = v, else -1. Returns OK or the position of the first loop outside 0..n. */
int64_t gnnc_last_loop(const int32_t *a, const int32_t *b, int64_t e, int64_t n, int32_t *last, int threads) {
    int64_t bad = INT64_MAX;
    memset(last, 0xff, (size_t)n * sizeof *last);
#pragma omp parallel for num_threads(team(e, threads)) reduction(min : bad)
    for (int64_t i = 0; i < e; i++) {
        if (a[i] != b[i]) continue;
        if (a[i] < 0 || a[i] >= n) {
            bad = i < bad ? i : bad;
            continue;
        }
        int32_t *slot = &last[a[i]], seen = __atomic_load_n(slot, __ATOMIC_RELAXED);
        while (seen < (int32_t)i && !__atomic_compare_exchange_n(slot, &seen, (int32_t)i, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
    }
    return bad == INT64_MAX ? OK : bad;
}
