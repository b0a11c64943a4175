/* The memory and the kernels of one NVIDIA GPU, through the driver's library, which is loaded when
 * the program begins: no header of CUDA, nothing to link with. What fails ends the process; the
 * message names the call of the driver, and what the program was doing. */
#ifndef GNNC_DEVICE_H
#define GNNC_DEVICE_H
#include "base.h"

/* As cuLaunchKernel. */
typedef int (*launcher)(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        void *stream, void **arguments, void **extra);

/* What image.c has: machine code, of which the first that the device can run is loaded, and the
 * names of its kernels in the order in which phases count them. */
extern const unsigned char *const images[];
extern const int image_count;
extern const char *const kernel_names[];
extern const int kernel_count;

/* Loads the driver (GNNC_LIBCUDA, else libcuda.so.1), takes its first device, loads the kernels. */
void begin_device(void);
/* What the program does from here on, for messages. */
void during(const char *what);

/* Memory of the device that nothing was written to. */
void *reserve_on_device(int64_t bytes);
/* The device's copy of a block of the host, which is made where there is none. The host's has to stay
 * where it is. */
void *on_device(const void *host, int64_t bytes);
/* Send a block's numbers to its copy, or bring those of the copy back; nothing where it has none. */
void refresh(const void *host);
void fetch(void *host);
void copy_on_device(void *to, const void *from, int64_t bytes);
/* A single number of the device, at most 8 bytes, until the next one is asked for. */
const void *number_on_device(const void *device, int64_t bytes);

/* What a phase is called with: the kernels, and what launches one. */
void *const *device_kernels(void);
int launch(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
           unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
           void **extra);
/* Waits for the kernels of a phase; `status` is what its function has given. */
void finish(int status);
#endif
