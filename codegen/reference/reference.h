/* What the printed loops call: C99 and its library alone. Meanings are those of dialects/pointwise. */
/* GCC 12 makes wrong vectors of two loops of choices in a row (-O3 -march=x86-64-v3 with
   -fno-trapping-math), and nothing here needs any. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")
#endif
#include <math.h>
#include <stdint.h>
#include <time.h>

/* With GNNC_PROFILE every phase adds the seconds of its steps to an array that it exports. */
#ifdef GNNC_PROFILE
#define LAPS(phase, kernels) double gnnc_##phase##_seconds[kernels];
#define START_LAPS clock_t start_ = clock(); (void)start_
#define LAP(phase, k)                                                          \
    do {                                                                       \
        const clock_t now_ = clock();                                          \
        gnnc_##phase##_seconds[k] += (double)(now_ - start_) / CLOCKS_PER_SEC; \
        start_ = now_;                                                         \
    } while (0)
#else
#define LAPS(phase, kernels)
#define START_LAPS (void)0
#define LAP(phase, k) (void)0
#endif

#define FUNCTION static inline
#include "scalar_functions.h"

/* Floats, rounded once from doubles. */
FUNCTION float sigmoid_f32(float x) { return (float)sigmoid_f64(x); }
FUNCTION float softplus_f32(float x) { return (float)softplus_f64(x); }
FUNCTION float gelu_f32(float x) { return (float)gelu_f64(x); }
FUNCTION float gelu_tanh_f32(float x) { return (float)gelu_tanh_f64(x); }
