/* One device, its memory and its kernels: see device.h. All is done on the default stream, so that
 * copies wait for the kernels before them. */
#include "device.h"

#include "driver.h"

/* CUresult and CUdevice_attribute, of cuda.h. */
enum { NO_BINARY = 209, MAJOR = 75, MINOR = 76 };
enum { OLDEST = 8 };

/* A block of the host, and the memory of the device that stands for it. */
typedef struct Copy {
    const void *host;
    void *device;
    int64_t bytes;
    struct Copy *next;
} Copy;

static Driver driver;
static const char *doing = "the start";
static Copy *copies;
static int64_t reserved;
static void **kernels;
static const char *failed_kernel;

void during(const char *what) { doing = what; }

/* The driver's words for a status: it has none for numbers that it does not know. */
static const char *text_of(int (*told)(int, const char **), int status)
{
    const char *text = NULL;
    return told(status, &text) == 0 && text ? text : "unknown";
}

static void check(int status, const char *call)
{
    if (status)
        fail("%s failed during %s: %s (%s, %d)", call, doing, text_of(driver.error_text, status),
             text_of(driver.error_name, status), status);
}

static int use_device(void)
{
    int device, major, minor;
    char name[256];
    void *context;
    check(driver.init(0), "cuInit");
    check(driver.device_get(&device, 0), "cuDeviceGet");
    check(driver.device_name(name, sizeof name, device), "cuDeviceGetName");
    check(driver.device_attribute(&major, MAJOR, device), "cuDeviceGetAttribute");
    check(driver.device_attribute(&minor, MINOR, device), "cuDeviceGetAttribute");
    if (major < OLDEST)
        fail("%s has compute capability %d.%d, the program needs %d.0 or newer (A100, RTX 30 and later)",
             name, major, minor, OLDEST);
    check(driver.context_retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(driver.context_use(context), "cuCtxSetCurrent");
    return 10 * major + minor;
}

static void *load_kernels(int capability)
{
    void *module;
    for (int k = 0; k < image_count; k++) {
        const int status = driver.module_load(&module, images[k]);
        if (status == 0) return module;
        if (status != NO_BINARY) check(status, "cuModuleLoadData");
    }
    fail("the program has no kernels for a device of compute capability %d.%d: build it again where "
         "nvcc or NVRTC knows it", capability / 10, capability % 10);
}

void begin_device(void)
{
    driver = load_driver();
    void *module = load_kernels(use_device());
    kernels = reserve_items(kernel_count, sizeof *kernels);
    for (int k = 0; k < kernel_count; k++) {
        const int status = driver.module_function(&kernels[k], module, kernel_names[k]);
        if (status)
            fail("cuModuleGetFunction finds no kernel %s: %s", kernel_names[k],
                 text_of(driver.error_text, status));
    }
}

/* ------------------------------------------------------------ memory */

static Address address(const void *device) { return (Address)(uintptr_t)device; }

void *reserve_on_device(int64_t bytes)
{
    Address found;
    const int64_t length = bytes ? bytes : 1; /* an empty one has an address of its own too */
    const int status = driver.memory_alloc(&found, (size_t)length);
    if (status)
        fail("cuMemAlloc of %lld bytes failed during %s, with %lld in use by the program: %s (%s, %d)",
             (long long)length, doing, (long long)reserved, text_of(driver.error_text, status),
             text_of(driver.error_name, status), status);
    reserved += length;
    return (void *)(uintptr_t)found;
}

static Copy *copy_of(const void *host)
{
    Copy *c = copies;
    while (c && c->host != host) c = c->next;
    return c;
}

void refresh(const void *host)
{
    const Copy *c = copy_of(host);
    if (c && c->bytes) check(driver.copy_in(address(c->device), host, (size_t)c->bytes), "cuMemcpyHtoD");
}

void fetch(void *host)
{
    const Copy *c = copy_of(host);
    if (c && c->bytes) check(driver.copy_out(host, address(c->device), (size_t)c->bytes), "cuMemcpyDtoH");
}

void *on_device(const void *host, int64_t bytes)
{
    const Copy *found = copy_of(host);
    if (found) return found->device;
    Copy *made = reserve(sizeof *made);
    *made = (Copy){.host = host, .device = reserve_on_device(bytes), .bytes = bytes, .next = copies};
    copies = made;
    refresh(host);
    return made->device;
}

void copy_on_device(void *to, const void *from, int64_t bytes)
{
    if (bytes) check(driver.copy(address(to), address(from), (size_t)bytes), "cuMemcpyDtoD");
}

const void *number_on_device(const void *device, int64_t bytes)
{
    static int64_t number;
    check(driver.copy_out(&number, address(device), (size_t)bytes), "cuMemcpyDtoH");
    return &number;
}

/* ------------------------------------------------------------ kernels */

void *const *device_kernels(void) { return kernels; }

static const char *name_of_kernel(const void *kernel)
{
    int k = 0;
    while (k < kernel_count - 1 && kernels[k] != kernel) k++;
    return kernel_names[k];
}

int launch(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
           unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
           void **extra)
{
    const int status = driver.launch(kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                                     stream, arguments, extra);
    if (status) failed_kernel = name_of_kernel(kernel);
    return status;
}

void finish(int status)
{
    if (status)
        fail("cuLaunchKernel of %s failed during %s: %s (%s, %d)", failed_kernel, doing,
             text_of(driver.error_text, status), text_of(driver.error_name, status), status);
    check(driver.wait(NULL), "cuStreamSynchronize");
}
