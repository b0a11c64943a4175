/* Errors, memory, and arrays of numbers. */
#define _GNU_SOURCE
#include "base.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20, COLOURS = 29, COLOUR = 4096 + 5 * 64 };

#ifdef __SANITIZE_ADDRESS__
/* What is made of the graph is kept until the end of the process. */
const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif

void (*before_message)(void);
void (*before_end)(int status);

void end_process(int status)
{
    if (before_end) before_end(status);
    exit(status);
}

void fail(const char *format, ...)
{
    if (before_message) before_message();
    va_list arguments;
    va_start(arguments, format);
    fputs("error: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    end_process(1);
}

/* A long block begins at another place in its huge page than the one before: streams that keep the
 * same distance from the start of several buffers would meet in the same sets of the caches. */
static void *map_block(int64_t bytes)
{
    static int64_t mapped;
    const int64_t colour = mapped++ % COLOURS * COLOUR;
    const int64_t length = bytes + HUGE_PAGE + COLOURS * COLOUR;
    char *start = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) fail("no memory for a buffer of %lld bytes", (long long)bytes);
#ifdef MADV_HUGEPAGE
    madvise(start, (size_t)length, MADV_HUGEPAGE);
#endif
    char *page = (char *)(((uintptr_t)start + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    return page + colour;
}

/* A block that was mapped lies somewhere in its first pages; what holds its numbers goes back. */
static void unmap_block(void *block, int64_t bytes)
{
    const uintptr_t first = ((uintptr_t)block + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    const uintptr_t last = ((uintptr_t)block + (uintptr_t)bytes) / HUGE_PAGE * HUGE_PAGE;
    if (last > first) munmap((void *)first, last - first);
}

/* The address sanitizer watches the ends of what the heap gives, not of mapped memory. */
static int is_mapped(int64_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    (void)bytes;
    return 0;
#else
    return bytes >= HUGE_PAGE;
#endif
}

void *reserve(int64_t bytes)
{
    if (is_mapped(bytes)) return map_block(bytes);
    const size_t length = bytes ? (size_t)bytes : 1; /* an empty one has an address of its own too */
    void *block;
    if (posix_memalign(&block, ALIGNMENT, length)) fail("no memory for a buffer of %lld bytes", (long long)bytes);
    return memset(block, 0, length);
}

void drop(void *block, int64_t bytes)
{
    if (is_mapped(bytes))
        unmap_block(block, bytes);
    else
        free(block);
}

void *reserve_items(int64_t count, int64_t size)
{
    int64_t bytes;
    if (count < 0 || __builtin_mul_overflow(count, size, &bytes))
        fail("%lld items of %lld bytes are more than memory can hold", (long long)count, (long long)size);
    return reserve(bytes);
}

int64_t bytes_of(Type type)
{
    return type == F64 || type == I64 ? 8 : type == I1 ? 1 : 4;
}

const char *name_of(Type type)
{
    static const char *const names[] = {"float32", "float64", "int32", "int64", "bool"};
    return names[type];
}

int64_t width(const Rows *x)
{
    int64_t n = 1;
    for (int d = 0; d < x->rank; d++) n *= x->dims[d];
    return n;
}

Rows *new_rows(Type type, int64_t rows, int rank, const int64_t *dims)
{
    if (rank > RANK) fail("a row has more than %d dimensions", RANK);
    Rows *x = reserve(sizeof *x);
    x->type = type;
    x->rows = rows;
    x->rank = rank;
    for (int d = 0; d < rank; d++) x->dims[d] = dims[d];
    x->data = reserve_items(rows, width(x) * bytes_of(type));
    return x;
}

void drop_rows(Rows *x)
{
    drop(x->data, x->rows * width(x) * bytes_of(x->type));
    drop(x, sizeof *x);
}

int threads(void) { return omp_get_max_threads(); }

int64_t floor_div(int64_t a, int64_t b)
{
    if (b == 0) return 0;
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

int64_t floor_mod(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) return 0;
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
