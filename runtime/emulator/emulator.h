/* What CUDA C++ has and C++ lacks, for kernels that run on the host: each program for the emulator
   begins with this text (see toolchain.py). Functions declared extern "C" are those of the runtime part.
   It is kept short, for it is compiled with each program. */
#define GNNC_EMULATED 1

#include <cmath>
#include <cstdint>
#include <cstring>
#include <math.h>

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

/* vectors */

struct dim3 {
    unsigned x, y, z;
};

#define EMULATED_VECTOR2(T, name, bytes) \
    struct __align__(bytes) name##2 { T x, y; }; \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }
#define EMULATED_VECTOR4(T, name, bytes) \
    struct __align__(bytes) name##4 { T x, y, z, w; }; \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
EMULATED_VECTOR2(float, float, 8)
EMULATED_VECTOR4(float, float, 16)
EMULATED_VECTOR2(double, double, 16)
EMULATED_VECTOR4(double, double, 16)
EMULATED_VECTOR2(int, int, 8)
EMULATED_VECTOR4(int, int, 16)
EMULATED_VECTOR2(unsigned, uint, 8)
EMULATED_VECTOR4(unsigned, uint, 16)
EMULATED_VECTOR2(long long, longlong, 16)
EMULATED_VECTOR2(unsigned long long, ulonglong, 16)
EMULATED_VECTOR2(signed char, char, 2)
EMULATED_VECTOR4(signed char, char, 4)
EMULATED_VECTOR2(unsigned char, uchar, 2)
EMULATED_VECTOR4(unsigned char, uchar, 4)
#undef EMULATED_VECTOR2
#undef EMULATED_VECTOR4

/* the runtime part */

struct EmulatedKernel {
    void (*call)(void **arguments);
    const char *name;
};

extern "C" {
/* the same for a thread as long as it lives */
__attribute__((const)) dim3 emulated_thread_index();
__attribute__((const)) dim3 emulated_block_index();
__attribute__((const)) dim3 emulated_block_size();
__attribute__((const)) dim3 emulated_grid_size();
__attribute__((const)) unsigned char *emulated_shared_memory();
void emulated_barrier(int line);
uint64_t emulated_warp(int line, int kind, unsigned mask, uint64_t value, int argument, int width);
void emulated_atomic(int line, const void *address, size_t bytes);
void emulated_copy_begin(void *to, const void *from, int bytes);
void emulated_copies_leave(void);
/* The oldest copy that is not of the thread's `groups` latest groups; 0 where there is none. */
int emulated_copy_end(int groups, void **to, const void **from, int *bytes);

/* the shape of cuLaunchKernel; `kernel` is the address of an EmulatedKernel */
int emulated_launch(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                    void *stream, void **arguments, void **extra);
const char *emulated_error(void);
void emulated_reset(void);
void emulated_order(unsigned seed);
unsigned emulated_seed(void);
void emulated_allow(const void *address, int64_t bytes, int writable);
void emulated_forget_all(void);
}

#define threadIdx emulated_thread_index()
#define blockIdx emulated_block_index()
#define blockDim emulated_block_size()
#define gridDim emulated_grid_size()
#define GNNC_SHARED(name) unsigned char *const name = emulated_shared_memory()

/* kernels that can be launched */

template <int... I> struct EmulatedPlaces {};
template <int N, int... I> struct EmulatedCount : EmulatedCount<N - 1, N - 1, I...> {};
template <int... I> struct EmulatedCount<0, I...> {
    using Places = EmulatedPlaces<I...>;
};

/* reads memory of the host, and therefore unseen */
template <auto kernel, class... P, int... I>
__attribute__((noinline, no_sanitize("thread"))) void
emulated_apply(void (*)(P...), EmulatedPlaces<I...>, void **arguments) {
    (void)arguments;
    kernel(*static_cast<P *>(arguments[I])...);
}

template <auto kernel, class... P> constexpr auto emulated_thunk(void (*)(P...)) {
    return +[](void **arguments) {
        emulated_apply<kernel>(kernel, typename EmulatedCount<sizeof...(P)>::Places(), arguments);
    };
}

#define GNNC_EXPORT(name) \
    extern "C" { \
    __attribute__((visibility("default"))) EmulatedKernel emulated_##name = \
        {emulated_thunk<&name>(&name), #name}; \
    }

/* synchronization */

enum { EMULATED_SYNC, EMULATED_INDEX, EMULATED_UP, EMULATED_DOWN, EMULATED_XOR,
       EMULATED_BALLOT, EMULATED_ANY, EMULATED_ALL };

inline void emulated_sync_warp(int line, unsigned mask = 0xffffffffu) {
    emulated_warp(line, EMULATED_SYNC, mask, 0, 0, 32);
}

template <class T>
inline T emulated_shuffle(int line, int kind, unsigned mask, T value, int argument, int width = 32) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    bits = emulated_warp(line, kind, mask, bits, argument, width);
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

inline unsigned emulated_vote(int line, int kind, unsigned mask, int predicate) {
    return static_cast<unsigned>(emulated_warp(line, kind, mask, predicate != 0, 0, 32));
}

#define __syncthreads() emulated_barrier(__LINE__)
#define __syncwarp(...) emulated_sync_warp(__LINE__, ##__VA_ARGS__)
#define __shfl_sync(...) emulated_shuffle(__LINE__, EMULATED_INDEX, __VA_ARGS__)
#define __shfl_up_sync(...) emulated_shuffle(__LINE__, EMULATED_UP, __VA_ARGS__)
#define __shfl_down_sync(...) emulated_shuffle(__LINE__, EMULATED_DOWN, __VA_ARGS__)
#define __shfl_xor_sync(...) emulated_shuffle(__LINE__, EMULATED_XOR, __VA_ARGS__)
#define __ballot_sync(mask, predicate) emulated_vote(__LINE__, EMULATED_BALLOT, mask, predicate)
#define __any_sync(mask, predicate) int(emulated_vote(__LINE__, EMULATED_ANY, mask, predicate))
#define __all_sync(mask, predicate) int(emulated_vote(__LINE__, EMULATED_ALL, mask, predicate))
inline void __threadfence() {}
inline void __threadfence_block() {}

/* Atomics: threads run one at a time, so that plain accesses do; the check sees them as atomic. */

#define EMULATED_ATOMIC(name, T, result) \
    __attribute__((noinline, no_sanitize("thread"))) inline T name(int line, T *address, T value) { \
        emulated_atomic(line, address, sizeof(T)); \
        T old = *address; \
        *address = result; \
        return old; \
    }
#define EMULATED_ATOMICS(T) \
    EMULATED_ATOMIC(emulated_add, T, old + value) \
    EMULATED_ATOMIC(emulated_exchange, T, value) \
    EMULATED_ATOMIC(emulated_min, T, value < old ? value : old) \
    EMULATED_ATOMIC(emulated_max, T, value > old ? value : old) \
    __attribute__((noinline, no_sanitize("thread"))) inline T \
    emulated_compare(int line, T *address, T expected, T value) { \
        emulated_atomic(line, address, sizeof(T)); \
        T old = *address; \
        if (old == expected) *address = value; \
        return old; \
    }
EMULATED_ATOMICS(int)
EMULATED_ATOMICS(unsigned)
EMULATED_ATOMICS(long long)
EMULATED_ATOMICS(unsigned long long)
EMULATED_ATOMIC(emulated_add, float, old + value)
EMULATED_ATOMIC(emulated_add, double, old + value)
EMULATED_ATOMIC(emulated_exchange, float, value)
EMULATED_ATOMIC(emulated_or, int, old | value)
EMULATED_ATOMIC(emulated_or, unsigned, old | value)
EMULATED_ATOMIC(emulated_and, int, old & value)
EMULATED_ATOMIC(emulated_and, unsigned, old & value)
#undef EMULATED_ATOMICS
#undef EMULATED_ATOMIC

#define atomicAdd(...) emulated_add(__LINE__, __VA_ARGS__)
#define atomicExch(...) emulated_exchange(__LINE__, __VA_ARGS__)
#define atomicMin(...) emulated_min(__LINE__, __VA_ARGS__)
#define atomicMax(...) emulated_max(__LINE__, __VA_ARGS__)
#define atomicCAS(...) emulated_compare(__LINE__, __VA_ARGS__)
#define atomicOr(...) emulated_or(__LINE__, __VA_ARGS__)
#define atomicAnd(...) emulated_and(__LINE__, __VA_ARGS__)

/* Copies to shared memory beside other work: they are done as late as they may be, by the thread that awaits them. */

template <int bytes> inline void copy_ahead(void *to, const void *from) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "4, 8 or 16 bytes are copied at once");
    emulated_copy_begin(to, from, bytes);
}
inline void rows_leave() { emulated_copies_leave(); }
template <int groups> inline void rows_arrive() {
    void *to;
    const void *from;
    int bytes;
    while (emulated_copy_end(groups, &to, &from, &bytes))
        for (int k = 0; k < bytes / 4; ++k)
            static_cast<uint32_t *>(to)[k] = static_cast<const uint32_t *>(from)[k];
}

/* functions of CUDA's library that C's lacks */

template <class T> __forceinline__ T __ldg(const T *address) { return *address; }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return powf(10.0f, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

template <class To, class From> inline To emulated_bits(From value) {
    To bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline int __float_as_int(float x) { return emulated_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }
inline float __int_as_float(int x) { return emulated_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return emulated_bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulated_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __mulhi(int x, int y) { return int((long long)x * y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned long long)x * y >> 32; }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned __int128)x * y >> 64;
}

#define EMULATED_MIN_MAX(T) \
    inline T min(T x, T y) { return y < x ? y : x; } \
    inline T max(T x, T y) { return x < y ? y : x; }
EMULATED_MIN_MAX(int)
EMULATED_MIN_MAX(unsigned)
EMULATED_MIN_MAX(long)
EMULATED_MIN_MAX(unsigned long)
EMULATED_MIN_MAX(long long)
EMULATED_MIN_MAX(unsigned long long)
#undef EMULATED_MIN_MAX
inline float min(float x, float y) { return fminf(x, y); }
inline float max(float x, float y) { return fmaxf(x, y); }
inline double min(double x, double y) { return fmin(x, y); }
inline double max(double x, double y) { return fmax(x, y); }
