/* What kernels call on single numbers. Meanings are those of dialects/pointwise. */
#ifdef __CUDACC__
#pragma nv_diag_suppress 177 /* functions that nothing calls: every text has all of them */
#endif
#ifdef __CUDACC_RTC__ /* which has no headers */
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT8_MAX 127
#define INT8_MIN (-INT8_MAX - 1)
#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MAX 9223372036854775807LL
#define INT64_MIN (-INT64_MAX - 1)
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fc00000)
#endif
#else
#include <math.h>
#include <stdint.h>
#endif

#define FUNCTION static __device__ __forceinline__
#include "scalar_functions.h"

/* Floats, without doubles, which most GPUs compute 64 times slower: 4 ulp or less from what the
   doubles give. Where an exponential would make its argument's rounding large, the rounding is
   computed and put right to the first order. */
FUNCTION float sigmoid_f32(float x)
{
    const float e = expf(-fabsf(x)); /* at most 1: no overflow on either side */
    return (x >= 0 ? 1 : e) / (1 + e);
}
FUNCTION float softplus_f32(float x)
{
    return x > 20 ? x : (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
}
FUNCTION float gelu_f32(float x)
{
    const float root = 0.70710678f, rest = 1.2101617e-8f; /* root + rest: of 1/2 */
    const float z = -x * root;
    float y = erfcf(z);
    if (z > 1 && z < 16) { /* erfc' / erfc is about -(2 z + 1 / z) */
        const float low = fmaf(-x, rest, fmaf(-x, root, -z));
        y -= y * low * (2 * z + 1 / z);
    }
    return 0.5f * x * y;
}
FUNCTION float gelu_tanh_f32(float x)
{
    /* v + low = x (linear + cubic x^2): twice the argument of the hyperbolic tangent */
    const float linear = 1.5957692f, linear_rest = -4.534068e-8f;
    const float cubic = 0.071354814f, cubic_rest = 2.3988324e-9f;
    const float square = x * x, sum = fmaf(cubic, square, linear);
    const float v = x * sum, a = fabsf(v);
    float e = expf(-a); /* at most 1 */
    if (a < 100) {
        const float second = sum - linear, square_rest = fmaf(x, x, -square);
        float rest = fmaf(cubic, square, -second) + (linear - (sum - second)); /* of the sum */
        rest += linear_rest + cubic_rest * square + cubic * square_rest;
        const float low = fmaf(x, sum, -v) + x * rest;
        e -= e * (v < 0 ? -low : low);
    }
    return x * ((v >= 0 ? 1 : e) / (1 + e));
}
