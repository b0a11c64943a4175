/* Numbers as Python prints them, and the command line: see report.h. */
#define _GNU_SOURCE
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DIGITS = 17, LEAST = -4, MOST = 16 };

/* The fewest digits that are read as the same number. */
static int digits_of(double x)
{
    char text[64];
    for (int n = 1; n < DIGITS; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, x);
        if (strtod(text, NULL) == x) return n;
    }
    return DIGITS;
}

void print_float(double x)
{
    if (isnan(x)) {
        fputs("nan", stdout);
    } else if (isinf(x)) {
        fputs(x < 0 ? "-inf" : "inf", stdout);
    } else {
        char text[64];
        const int n = digits_of(x);
        snprintf(text, sizeof text, "%.*e", n - 1, x);
        const int power = atoi(strchr(text, 'e') + 1);
        if (power < LEAST || power >= MOST)
            fputs(text, stdout);
        else
            printf("%.*f", n - 1 - power > 1 ? n - 1 - power : 1, x);
    }
}

void print_bool(int64_t x) { fputs(x ? "True" : "False", stdout); }

static const char USAGE[] = "usage: %s [--epochs N] [--data FOLDER] [--parameters FOLDER] [--out FOLDER] [--times]\n"
                            "Trains on the arrays in data and writes what it has learnt to trained;\n"
                            "--times shows the median seconds of an epoch.\n";

Command command_of(int n, char *const *arguments, int64_t epochs)
{
    Command c = {.data = "data", .parameters = "parameters", .out = "trained", .epochs = epochs};
    for (int i = 1; i < n; i++) {
        const char *word = arguments[i], *value = i + 1 < n ? arguments[i + 1] : NULL;
        char *end = NULL;
        if (strcmp(word, "--times") == 0) {
            c.times = 1;
            continue;
        }
        if (value && strcmp(word, "--epochs") == 0) {
            c.epochs = strtoll(value, &end, 10);
            if (end == value || *end || c.epochs < 0) fail("--epochs takes a number from 0, not %s", value);
        } else if (value && strcmp(word, "--data") == 0) {
            c.data = value;
        } else if (value && strcmp(word, "--parameters") == 0) {
            c.parameters = value;
        } else if (value && strcmp(word, "--out") == 0) {
            c.out = value;
        } else {
            if (before_message) before_message();
            fprintf(stderr, USAGE, arguments[0]);
            end_process(2);
        }
        i++;
    }
    return c;
}

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *seconds, int64_t n)
{
    qsort(seconds, (size_t)n, sizeof *seconds, by_size);
    return n ? (seconds[(n - 1) / 2] + seconds[n / 2]) / 2 : 0;
}
