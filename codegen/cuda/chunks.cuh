/* Words of kernels that an emulator has otherwise: the block's shared memory, whose length is given
   at the launch, and what makes a kernel known outside. */
#ifndef GNNC_EMULATED
#define GNNC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#define GNNC_EXPORT(name)
#endif

/* How the rows of a nest are shared among blocks, and how what blocks have summed is added up: in
   their order, whatever the device. */

/* Where part `c` of `chunks` of `size` rows begins. */
static __device__ __forceinline__ int64_t part(int64_t size, int64_t c, int64_t chunks)
{
    const int64_t more = size % chunks;
    return size / chunks * c + (c < more ? c : more);
}

/* The first piece of a row in a table of (row, begin, end), which has some. */
static __device__ __forceinline__ int64_t first_piece(const int64_t *pieces, int64_t count, int64_t row)
{
    int64_t lo = 0, hi = count;
    while (lo < hi) {
        const int64_t middle = (lo + hi) / 2;
        if (pieces[3 * middle] < row)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* out[e] = the sum over c of partial[c][e]. A warp's width of columns a block; its warps take parts
   of the chunks, which are added in order. `room` is shared memory for a number of each thread. */
template <class T>
static __device__ void
add_chunks(const T *partial, int64_t chunks, int count, T *out, unsigned char *shared)
{
    T *const room = (T *)shared;
    const int e = blockIdx.x * 32 + threadIdx.x % 32, warps = blockDim.x / 32, warp = threadIdx.x / 32;
    T sum = 0;
    if (e < count)
        for (int64_t c = part(chunks, warp, warps); c < part(chunks, warp + 1, warps); ++c)
            sum += partial[c * count + e];
    room[threadIdx.x] = sum;
    __syncthreads();
    if (warp == 0 && e < count) {
        for (int w = 1; w < warps; ++w) sum += room[w * 32 + threadIdx.x];
        out[e] = sum;
    }
    __syncthreads();
}

/* out[key][e] = the sum of the partials with a key, which follow each other; two places a chunk, of
   which those without a key are empty. */
template <class T>
static __device__ void
add_shared(const T *partial, const int64_t *keys, int64_t chunks, int count, T *out)
{
    const int threads = blockDim.x * gridDim.x;
    for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < count; e += threads) {
        int64_t last = -1;
        T sum = 0;
        for (int64_t s = 0; s < 2 * chunks; ++s) {
            const int64_t key = keys[s];
            if (key < 0) continue;
            if (key != last) {
                if (last >= 0) out[last * count + e] = sum;
                last = key;
                sum = 0;
            }
            sum += partial[s * count + e];
        }
        if (last >= 0) out[last * count + e] = sum;
    }
}
