/* NVIDIA's driver as far as built programs call it, with the emulator (runtime/emulator) as the
   device. FAKE_KERNELS names the emulator's object with the kernels; whatever image is loaded stands
   for it. Memory of the device cannot be touched by the host but by the copies here, and holds no
   zeros at first. What goes wrong is chosen by variables:
   FAKE_CAPABILITY "7.5"    the compute capability (9.0)
   FAKE_DEVICES 0           there is no device
   FAKE_MEMORY N            the device has N bytes
   FAKE_REFUSED N           so many images are for other devices
   FAKE_FAILS N             the Nth launch fails
   FAKE_FAILS_LATER N       the kernel of the Nth launch fails, which is seen when it is waited for */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { OUT_OF_MEMORY = 2, NO_DEVICE = 100, NO_BINARY = 209, NOT_FOUND = 500 };
enum { ILLEGAL_ADDRESS = 700, OUT_OF_RESOURCES = 701, LAUNCH_FAILED = 719 };
enum { BLOCKS = 4096, PAGE = 4096 };

static struct {
    char *at;
    size_t bytes, mapped;
} blocks[BLOCKS];
static int block_count, launches, refused, later;
static size_t in_use;
static void *library;
static int (*emulated_launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, void *, void **, void **);
static const char *(*emulated_error)(void);
static void (*emulated_allow)(const void *, int64_t, int);

static long chosen(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static void open_memory(int open)
{
    for (int k = 0; k < block_count; k++)
        mprotect(blocks[k].at, blocks[k].mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/* Whether the bytes lie in one block, without which a copy would be an error of the caller. */
static int holds(uint64_t at, size_t bytes)
{
    for (int k = 0; k < block_count; k++) {
        const uint64_t begin = (uint64_t)(uintptr_t)blocks[k].at;
        if (at >= begin && at + bytes <= begin + blocks[k].bytes) return 1;
    }
    return 0;
}

int cuInit(unsigned flags) { return flags ? 1 : chosen("FAKE_DEVICES", 1) ? 0 : NO_DEVICE; }

int cuDeviceGet(int *device, int number)
{
    *device = 7;
    return number ? 1 : 0;
}

int cuDeviceGetName(char *name, int room, int device)
{
    snprintf(name, (size_t)room, "The emulator");
    return device != 7;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const char *text = getenv("FAKE_CAPABILITY");
    int major = 9, minor = 0;
    if (text) sscanf(text, "%d.%d", &major, &minor);
    *value = attribute == 75 ? major : attribute == 76 ? minor : -1;
    return device != 7;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = &library;
    return device != 7;
}

int cuCtxSetCurrent(void *context) { return context != &library; }

int cuModuleLoadData(void **module, const void *image)
{
    if (!image) return 1;
    if (refused++ < chosen("FAKE_REFUSED", 0)) return NO_BINARY;
    library = dlopen(getenv("FAKE_KERNELS"), RTLD_NOW);
    if (!library) return 1;
    *(void **)&emulated_launch = dlsym(library, "emulated_launch");
    *(void **)&emulated_error = dlsym(library, "emulated_error");
    *(void **)&emulated_allow = dlsym(library, "emulated_allow");
    *module = library;
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    char exported[512];
    snprintf(exported, sizeof exported, "emulated_%s", name);
    *function = dlsym(module, exported);
    return *function ? 0 : NOT_FOUND;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    const size_t mapped = (bytes + PAGE - 1) / PAGE * PAGE;
    if (!bytes || block_count == BLOCKS) return 1;
    if (in_use + bytes > (size_t)chosen("FAKE_MEMORY", 1L << 40)) return OUT_OF_MEMORY;
    char *at = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return OUT_OF_MEMORY;
    memset(at, 0xff, mapped);
    mprotect(at, mapped, PROT_NONE);
    blocks[block_count].at = at;
    blocks[block_count].bytes = bytes;
    blocks[block_count++].mapped = mapped;
    in_use += bytes;
    emulated_allow(at, (int64_t)bytes, 1);
    *address = (uint64_t)(uintptr_t)at;
    return 0;
}

static int copied(void *to, const void *from, size_t bytes, int known)
{
    if (!known || !bytes) return 1;
    open_memory(1);
    memcpy(to, from, bytes);
    open_memory(0);
    return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    return copied((void *)(uintptr_t)to, from, bytes, holds(to, bytes) && !holds((uintptr_t)from, 1));
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    return copied(to, (void *)(uintptr_t)from, bytes, holds(from, bytes) && !holds((uintptr_t)to, 1));
}

int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes)
{
    const int known = holds(to, bytes) && holds(from, bytes);
    return copied((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, known);
}

int cuLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void *stream,
                   void **arguments, void **extra)
{
    launches++;
    if (launches == chosen("FAKE_FAILS", 0)) return OUT_OF_RESOURCES;
    later |= launches == chosen("FAKE_FAILS_LATER", 0);
    open_memory(1);
    const int failed = emulated_launch(kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                                       stream, arguments, extra);
    open_memory(0);
    return failed ? LAUNCH_FAILED : 0;
}

int cuStreamSynchronize(void *stream) { return stream ? 1 : later ? ILLEGAL_ADDRESS : 0; }

int cuGetErrorName(int status, const char **text)
{
    *text = status == OUT_OF_MEMORY    ? "CUDA_ERROR_OUT_OF_MEMORY"
            : status == NO_DEVICE      ? "CUDA_ERROR_NO_DEVICE"
            : status == OUT_OF_RESOURCES ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
            : status == ILLEGAL_ADDRESS  ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                         : NULL;
    return *text ? 0 : 1;
}

int cuGetErrorString(int status, const char **text)
{
    *text = status == OUT_OF_MEMORY    ? "out of memory"
            : status == NO_DEVICE      ? "no CUDA-capable device is detected"
            : status == NOT_FOUND      ? "named symbol not found"
            : status == OUT_OF_RESOURCES ? "too many resources requested for launch"
            : status == ILLEGAL_ADDRESS  ? "an illegal memory access was encountered"
            : status == LAUNCH_FAILED    ? emulated_error()
                                         : NULL;
    return *text ? 0 : 1;
}
