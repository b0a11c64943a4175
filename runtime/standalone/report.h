/* Numbers as Python prints them, and what the command line says. */
#ifndef GNNC_REPORT_H
#define GNNC_REPORT_H
#include "base.h"

/* A number as `print` shows it: the shortest text that is read as the same number. */
void print_float(double x);
void print_bool(int64_t x);

typedef struct {
    const char *data, *parameters, *out;
    int64_t epochs;
    int times;
} Command;

/* The arguments; unknown ones end the process with what there are. */
Command command_of(int n, char *const *arguments, int64_t epochs);
double now(void);
/* The median of so many seconds; they are sorted. */
double median(double *seconds, int64_t n);
#endif
