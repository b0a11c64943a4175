"""Kernels that CUDA defines give its results, in every order, and no fault."""

import numpy as np
import pytest

from .launching import ORDERS, frozen, run

TREE = """
__global__ void __launch_bounds__(128)
k(const float *__restrict__ x, float *__restrict__ y, int n) {
    GNNC_SHARED(memory);
    float *part = reinterpret_cast<float *>(memory);
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += x[i];
    #pragma unroll
    for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;
        for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        if (threadIdx.x == 0) y[blockIdx.x] = sum;
    }
}
GNNC_EXPORT(k)
"""


@pytest.mark.parametrize("order", ORDERS)
def test_tree_reduction(order):
    x, y = frozen(np.arange(1000, dtype=np.float32)), np.zeros(5, np.float32)
    run(TREE, x, y, np.int32(1000), grid=5, block=128, shared=16, order=order)
    expected = [sum(x[i] for i in range(1000) if i // 128 % 5 == b) for b in range(5)]
    np.testing.assert_array_equal(y, expected)


PRODUCT = """
template <int T>
__device__ __forceinline__ float dot(const float *a, const float *b) {
    float sum = 0.0f;
    #pragma unroll
    for (int i = 0; i < T; ++i) sum = fmaf(a[i], b[i * T], sum);
    return sum;
}

extern "C" __global__ void k(const float *a, const float *b, float *c, int n) {
    GNNC_SHARED(memory);
    float *left = (float *)memory, *right = left + 64;
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 8 + x, row = blockIdx.y * 8 + y;
    float sum = 0.0f;
    for (int t = 0; t < n; t += 8) {
        left[y * 8 + x] = a[row * n + t + x];
        right[y * 8 + x] = b[(t + y) * n + column];
        __syncthreads();
        sum += dot<8>(left + y * 8, right + x);
        __syncthreads();
    }
    c[row * n + column] = sum;
}
GNNC_EXPORT(k)
"""


@pytest.mark.parametrize("order", ORDERS)
def test_tiles_with_barriers(order):
    rng = np.random.default_rng(0)
    a, b = (frozen(rng.integers(-4, 4, (32, 32)).astype(np.float32)) for _ in range(2))
    c = np.zeros((32, 32), np.float32)
    run(PRODUCT, a, b, c, np.int32(32), grid=(4, 4), block=(8, 8), shared=512, order=order)
    np.testing.assert_array_equal(c, a @ b)


SUBWARPS = """
__global__ void k(const int *x, int64_t *y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
    unsigned mask = 0xffu << (threadIdx.x % 32 / 8 * 8);
    if (row >= rows) return;
    for (int i = 0; i <= row % 3; ++i) {
        int64_t v = x[row * 8 + lane] + i;
        for (int d = 4; d; d /= 2) v += __shfl_xor_sync(mask, v, d, 8);
        if (lane == i) y[row * 3 + i] = __shfl_sync(1u << (threadIdx.x % 32), v, lane, 8);
    }
}
GNNC_EXPORT(k)
"""


@pytest.mark.parametrize("order", ORDERS)
def test_masks_of_parts_of_a_warp(order):
    """Groups of eight lanes go through loops of different lengths, and some return early."""
    x, y = np.arange(13 * 8, dtype=np.int32), np.full((13, 3), -1, np.int64)
    run(SUBWARPS, x, y, np.int32(13), grid=2, block=64, order=order)
    sums = x.reshape(13, 8).sum(1)
    for row in range(13):
        for i in range(3):
            assert y[row, i] == (sums[row] + 8 * i if i <= row % 3 else -1)


SYNCWARP = """
__global__ void k(const int *x, int *y) {
    GNNC_SHARED(memory);
    int *tile = (int *)memory, t = threadIdx.x, lane = t % 16;
    unsigned half = t % 32 < 16 ? 0xffffu : 0xffff0000u;
    tile[t] = x[t];
    __syncwarp(half);
    int other = tile[t - lane + 15 - lane];
    __syncwarp();
    tile[t] = other;
    __syncwarp();
    y[t] = tile[t / 32 * 32 + 31 - t % 32];
}
GNNC_EXPORT(k)
"""


@pytest.mark.parametrize("order", ORDERS)
def test_syncwarp_orders_lanes(order):
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    run(SYNCWARP, x, y, block=64, shared=256, order=order)
    halves = x.reshape(4, 16)[:, ::-1].reshape(2, 32)
    np.testing.assert_array_equal(y.reshape(2, 32), halves[:, ::-1])


ATOMICS = """
__global__ void k(float *sums, double *total, int *count, unsigned long long *most, int *old) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&sums[i % 3], float(i));
    atomicAdd(total, double(i));
    old[i] = atomicAdd(count, 1);
    atomicMax(most, (unsigned long long)i);
}
GNNC_EXPORT(k)
"""


def atomics(order: int) -> list[int]:
    sums, total = np.zeros(3, np.float32), np.zeros(1)
    count, most, old = np.zeros(1, np.int32), np.zeros(1, np.uint64), np.zeros(80, np.int32)
    run(ATOMICS, sums, total, count, most, old, grid=2, block=40, order=order)
    assert sums.tolist() == [sum(range(i, 80, 3)) for i in range(3)]
    assert (total[0], count[0], most[0]) == (80 * 79 / 2, 80, 79)
    return old.tolist()


def test_atomics_are_no_races_and_show_the_order():
    orders = [atomics(order) for order in ORDERS]
    assert orders[0] == list(range(80))
    assert orders[1] == list(range(79, -1, -1))
    assert len({tuple(order) for order in orders}) == 4
    assert all(sorted(order) == list(range(80)) for order in orders)
    assert atomics(3) == orders[3]


BYTES = """
__global__ void k(const uint8_t *a, uint8_t *b, uint32_t *words) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = a[i] + 1;
    if (i % 4 == 0) words[i / 4] = words[i / 4] + 1;
    __syncthreads();
    if (i % 4 == 1) reinterpret_cast<uint16_t *>(words)[i / 2] = 7;
    if (i % 4 == 2) reinterpret_cast<uint8_t *>(words)[i + 1] = 9;
}
GNNC_EXPORT(k)
"""


@pytest.mark.parametrize("order", ORDERS)
def test_neighbouring_bytes_of_two_threads_are_no_race(order):
    a, b, words = np.arange(64, dtype=np.uint8), np.zeros(64, np.uint8), np.zeros(16, np.uint32)
    run(BYTES, frozen(a), b, words, grid=2, order=order)
    np.testing.assert_array_equal(b, a + 1)
    np.testing.assert_array_equal(words.view(np.uint8).reshape(16, 4), [[7, 0, 0, 9]] * 16)


VECTORS = """
static const float table[4] = {1.0f, 2.0f, 4.0f, 8.0f};
struct Sizes { int rows; int64_t columns; };

__global__ void k(const float4 *x, double2 *y, Sizes sizes, float scale, uint8_t *copy) {
    int i = threadIdx.x;
    if (i >= sizes.rows) return;
    float4 v = x[i], w = make_float4(v.w, v.z, v.y, v.x);
    float local[4] = {};
    memcpy(local, &x[i], sizes.columns);
    float sum = 0.0f;
    for (int j = 0; j < 4; ++j) sum += table[(i + j) % 4] * local[j];
    y[i] = {w.x + __ldg(&x[i]).y * scale, sum};
    memcpy(copy + i * 16, x + i, 16);
    memset(copy + i * 16, i, 4);
}
GNNC_EXPORT(k)
"""


def test_vectors_static_data_and_copies():
    rng = np.random.default_rng(0)
    x = frozen(rng.integers(0, 9, (20, 4)).astype(np.float32))
    y, copy = np.zeros((20, 2)), np.zeros((20, 4), np.float32)
    sizes = np.array((20, 16), np.dtype([("rows", "i4"), ("columns", "i8")], align=True))
    run(VECTORS, x, y, sizes, np.float32(0.5), copy)
    np.testing.assert_array_equal(y[:, 0], x[:, 3] + x[:, 1] / 2)
    table = [[2.0 ** ((i + j) % 4) for j in range(4)] for i in range(20)]
    np.testing.assert_array_equal(y[:, 1], (table * x).sum(1))
    np.testing.assert_array_equal(copy[:, 1:], x[:, 1:])
    assert copy.view(np.uint8)[:, :4].tolist() == [[i] * 4 for i in range(20)]


VOTES = """
__global__ void k(const int *x, unsigned *votes, float *shuffled) {
    int t = threadIdx.x;
    unsigned mask = t < 32 ? 0xffffffffu : 0xffu;
    votes[t * 3] = __ballot_sync(mask, x[t] > 3);
    votes[t * 3 + 1] = __any_sync(mask, x[t] > 3);
    votes[t * 3 + 2] = __all_sync(mask, x[t] >= 0);
    float v = float(t);
    if (t < 32) {
        shuffled[t * 4] = __shfl_sync(mask, v, 19, 8);
        shuffled[t * 4 + 1] = __shfl_up_sync(mask, v, 3, 16);
        shuffled[t * 4 + 2] = __shfl_down_sync(mask, v, 3, 16);
        shuffled[t * 4 + 3] = __shfl_xor_sync(mask, v, 9, 8);
    }
}
GNNC_EXPORT(k)
"""


@pytest.mark.parametrize("order", ORDERS)
def test_votes_and_shuffles(order):
    x = np.zeros(40, np.int32)
    x[[5, 9]] = 4
    votes, shuffled = np.zeros((40, 3), np.uint32), np.zeros((32, 4), np.float32)
    run(VOTES, x, votes, shuffled, block=40, order=order)
    assert votes[:32].tolist() == [[1 << 5 | 1 << 9, 1, 1]] * 32
    assert votes[32:].tolist() == [[0, 0, 1]] * 8
    for t, row in enumerate(shuffled.tolist()):
        up = t - 3 if t % 16 >= 3 else t
        down = t + 3 if t % 16 < 13 else t
        xor = t ^ 9 if t ^ 9 < t // 8 * 8 + 8 else t
        assert row == [t // 8 * 8 + 19 % 8, up, down, xor]


FUNCTIONS = """
__global__ void k(float *f, long long *i) {
    if (threadIdx.x) return;
    f[0] = rsqrtf(4.0f), f[1] = __expf(0.0f), f[2] = max(1.0f, f[1]), f[3] = fmaxf(-INFINITY, 3.0f);
    f[4] = __int_as_float(__float_as_int(1.5f)), f[5] = __fdividef(1.0f, 4.0f), f[6] = NAN;
    i[0] = max(3, 4) + min(7u, 9u), i[1] = __clz(1) + __popc(255u) + __ffs(8);
    i[2] = __umulhi(0x80000000u, 6u), i[3] = (long long)__umul64hi(1ull << 63, 10ull);
    i[4] = INT32_MAX, i[5] = __mulhi(-1, 2), i[6] = __double_as_longlong(0.0);
}
GNNC_EXPORT(k)
"""


def test_functions_of_the_library():
    f, i = np.zeros(7, np.float32), np.zeros(7, np.int64)
    run(FUNCTIONS, f, i)
    np.testing.assert_array_equal(f, np.float32([0.5, 1, 1, 3, 1.5, 0.25, np.nan]))
    assert i.tolist() == [11, 31 + 8 + 4, 3, 5, 2**31 - 1, -1, 0]


PHASES = """
__global__ void k(const float *x, float *y, int n) {
    GNNC_SHARED(memory);
    float *ring = (float *)memory;
    int t = threadIdx.x;
    float sum = 0.0f;
    ring[t] = x[t];
    for (int i = 0; i < n; ++i) {
        __syncthreads();
        for (int j = 0; j < 64; ++j) sum += ring[i % 2 * 64 + j];
        ring[(i + 1) % 2 * 64 + t] = ring[i % 2 * 64 + (t + 1) % 64];
    }
    y[blockIdx.x * 64 + t] = sum;
}
GNNC_EXPORT(k)
"""


@pytest.mark.parametrize("order", ORDERS)
def test_many_phases_on_two_buffers(order):
    x, y = frozen(np.arange(64, dtype=np.float32)), np.zeros((3, 64), np.float32)
    run(PHASES, x, y, np.int32(40), grid=3, block=64, shared=512, order=order)
    np.testing.assert_array_equal(y, np.full((3, 64), x.sum() * 40))


def test_three_dimensions():
    text = """
    __global__ void k(int *y) {
        unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        y[b * blockDim.x * blockDim.y * blockDim.z + t] = b * 1000 + t;
    }
    GNNC_EXPORT(k)
    """
    y = np.zeros((24, 30), np.int32)
    run(text, y, grid=(2, 3, 4), block=(5, 3, 2))
    np.testing.assert_array_equal(y, np.arange(24)[:, None] * 1000 + np.arange(30))
