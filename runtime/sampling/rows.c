/* Rows of features for the nodes of a batch. */

#define GATHER_NUMBERS(T)                                                                    \
    do {                                                                                     \
        const T *x = (const T *)from;                                                        \
        T *y = (T *)to;                                                                      \
        for (int64_t i = low; i < high; i++) {                                               \
            __builtin_prefetch(&x[ids[least(i + AHEAD, high - 1)]]);                         \
            y[i] = x[ids[i]];                                                                \
        }                                                                                    \
    } while (0)

static void gather_share(const char *from, int64_t bytes, const int64_t *ids, int64_t low, int64_t high, char *to) {
    if (bytes == 8 && ((uintptr_t)from | (uintptr_t)to) % 8 == 0) GATHER_NUMBERS(int64_t);
    else if (bytes == 4 && ((uintptr_t)from | (uintptr_t)to) % 4 == 0) GATHER_NUMBERS(int32_t);
    else if (bytes == 1) GATHER_NUMBERS(int8_t);
    else
        for (int64_t i = low; i < high; i++) {
            const char *later = from + ids[least(i + 4, high - 1)] * bytes;
            for (int64_t b = 0; b < least(bytes, 512); b += 64) __builtin_prefetch(later + b);
            memcpy(to + i * bytes, from + ids[i] * bytes, (size_t)bytes);
        }
}

/* to[i] = from[ids[i]], rows of so many bytes. Returns OK, or the position of the first id that is none of `rows` rows; then nothing is read. */
int64_t gnnc_gather_rows(const char *from, int64_t rows, int64_t bytes, const int64_t *ids, int64_t n, char *to, int64_t threads) {
    int64_t bad = n;
    for (int64_t i = n - 1; i >= 0; i--) bad = ids[i] < 0 || ids[i] >= rows ? i : bad;
    if (bad < n) return bad;
    int T = team(n / 16, threads);
#pragma omp parallel for num_threads(T) schedule(static)
    for (int t = 0; t < T; t++) gather_share(from, bytes, ids, n * t / T, n * (t + 1) / T, to);
    return OK;
}
