/* Runs recorded calls of phases, each buffer in memory of its own: `replay THREADS CALLS RESULTS`.
 *
 * CALLS holds 64-bit numbers and bytes: the number of calls; of each its name (32 bytes), the number of sizes, the
 * sizes, the number of buffers, and of each buffer its length and its bytes. RESULTS gets the bytes of all buffers after their call. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void phase(int threads, const int64_t *sizes, void *const *buffers);

static void check(int good, const char *what) {
    if (good) return;
    fprintf(stderr, "replay: %s\n", what);
    exit(2);
}

static void get(FILE *file, void *to, size_t bytes) { check(fread(to, 1, bytes, file) == bytes, "the calls end too early"); }

static int64_t number(FILE *file) {
    int64_t n;
    get(file, &n, sizeof n);
    return n;
}

static void replay(FILE *in, FILE *out, int threads) {
    char name[32];
    get(in, name, sizeof name);
    phase *f = (phase *)dlsym(RTLD_DEFAULT, name);
    check(f != NULL, name);
    int64_t count = number(in);
    int64_t *sizes = malloc((size_t)(count + 1) * sizeof *sizes);
    get(in, sizes, (size_t)count * sizeof *sizes);
    int64_t buffers = number(in);
    void **buffer = malloc((size_t)(buffers + 1) * sizeof *buffer);
    int64_t *length = malloc((size_t)(buffers + 1) * sizeof *length);
    for (int64_t k = 0; k < buffers; k++) {
        length[k] = number(in);
        buffer[k] = malloc((size_t)length[k] + 1);
        get(in, buffer[k], (size_t)length[k]);
    }
    f(threads, sizes, buffer);
    for (int64_t k = 0; k < buffers; k++) {
        check(fwrite(buffer[k], 1, (size_t)length[k], out) == (size_t)length[k], "no room for results");
        free(buffer[k]);
    }
    free(buffer);
    free(length);
    free(sizes);
}

int main(int argc, char **argv) {
    check(argc == 4, "usage: replay THREADS CALLS RESULTS");
    FILE *in = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
    check(in && out, "the files do not open");
    for (int64_t calls = number(in); calls > 0; calls--) replay(in, out, atoi(argv[1]));
    check(fclose(out) == 0, "no room for results");
    fclose(in);
    return 0;
}
