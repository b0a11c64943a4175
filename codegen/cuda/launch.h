/* What launches kernels: a pointer of the shape of CUDA's cuLaunchKernel, so that this text needs no
   header of CUDA, and an emulator is another pointer. */
#include <stdint.h>

#define GNNC_PHASE __attribute__((visibility("default")))

typedef int (*launcher)(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        void *stream, void **arguments, void **extra);

static int64_t fewer(int64_t a, int64_t b) { return a < b ? a : b; }

/* Chunks of rows that carry about `grain` units of work each. */
static int64_t chunk_count(int64_t rows, int64_t work, int64_t grain, int64_t most)
{
    const int64_t wanted = (work + grain - 1) / grain;
    return fewer(fewer(wanted, most), rows);
}
