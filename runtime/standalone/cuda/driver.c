/* Finds the driver's library and its functions: see driver.h. */
#include "driver.h"

#include <dlfcn.h>
#include <stdlib.h>

Driver load_driver(void)
{
    const char *named = getenv("GNNC_LIBCUDA"), *path = named ? named : "libcuda.so.1";
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        fail("there is no NVIDIA driver (%s): install one, or name its library in GNNC_LIBCUDA", dlerror());
    Driver found;
    const struct {
        const char *name;
        void *to;
    } functions[] = {
        {"cuInit", &found.init},
        {"cuDeviceGet", &found.device_get},
        {"cuDeviceGetName", &found.device_name},
        {"cuDeviceGetAttribute", &found.device_attribute},
        {"cuDevicePrimaryCtxRetain", &found.context_retain},
        {"cuCtxSetCurrent", &found.context_use},
        {"cuModuleLoadData", &found.module_load},
        {"cuModuleGetFunction", &found.module_function},
        {"cuMemAlloc_v2", &found.memory_alloc},
        {"cuMemcpyHtoD_v2", &found.copy_in},
        {"cuMemcpyDtoH_v2", &found.copy_out},
        {"cuMemcpyDtoD_v2", &found.copy},
        {"cuLaunchKernel", &found.launch},
        {"cuStreamSynchronize", &found.wait},
        {"cuGetErrorName", &found.error_name},
        {"cuGetErrorString", &found.error_text},
    };
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        void *function = dlsym(library, functions[k].name);
        if (!function) fail("%s has no %s: it is not the NVIDIA driver, or too old", path, functions[k].name);
        __builtin_memcpy(functions[k].to, &function, sizeof function);
    }
    return found;
}
