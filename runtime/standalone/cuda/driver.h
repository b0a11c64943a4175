/* The functions of NVIDIA's driver that programs call, by pointers that are found at run time. A
 * status is 0 where a call went well; addresses of the device are numbers of 64 bits. */
#ifndef GNNC_DRIVER_H
#define GNNC_DRIVER_H
#include <stddef.h>
#include <stdint.h>

#include "device.h"

typedef uint64_t Address;

typedef struct {
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int number);
    int (*device_name)(char *name, int room, int device);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*context_retain)(void **context, int device);
    int (*context_use)(void *context);
    int (*module_load)(void **module, const void *image);
    int (*module_function)(void **function, void *module, const char *name);
    int (*memory_alloc)(Address *address, size_t bytes);
    int (*copy_in)(Address to, const void *from, size_t bytes);
    int (*copy_out)(void *to, Address from, size_t bytes);
    int (*copy)(Address to, Address from, size_t bytes);
    launcher launch;
    int (*wait)(void *stream);
    int (*error_name)(int status, const char **text);
    int (*error_text)(int status, const char **text);
} Driver;

/* Loads the library. Ends the process where it is not there, or lacks a function. */
Driver load_driver(void);
#endif
