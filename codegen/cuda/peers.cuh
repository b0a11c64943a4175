/* Rows of other ranks. A place has the rank in its upper 16 bits, below these the number of the row there. */
template <class T>
static __device__ __forceinline__ const T *
peer_row(const void *const *peers, const uint64_t *places, int64_t i, int numbers)
{
    const uint64_t place = places[i];
    return (const T *)peers[place >> 48] + (int64_t)(place & 0xffffffffffffull) * numbers;
}

/* Words that are copied to shared memory while a thread goes on: what it copies until `rows_leave` is one group, and
   `rows_arrive<N>` returns when all but its N latest groups are there. */
#ifndef GNNC_EMULATED
template <int bytes> static __device__ __forceinline__ void copy_ahead(void *to, const void *from)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from), "n"(bytes) : "memory");
}

static __device__ __forceinline__ void rows_leave()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int groups> static __device__ __forceinline__ void rows_arrive()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}
#endif
