// SPDX-License-Identifier: MIT
// The contexts of the devices, and the functions of the driver that change a thread's current one.
#include <string.h>

#include "internal.h"

// As in CUDA a device has one context, which is made when first used. A thread has a current
// context, which functions of the driver set, too; without one the device that cudaSetDevice set
// last is current.
static struct CUctx_st {
    bool made;
} contexts[DEVICES];
static _Thread_local struct CUctx_st *context;
static _Thread_local int set_device;

static int current_without_context(void)
{
    return context ? (int)(context - contexts) : set_device;
}

int device_current(void)
{
    context = &contexts[current_without_context()];
    context->made = true;
    return current_without_context();
}

bool hostdev_has_context(int device)
{
    return contexts[device].made;
}

// Functions of the driver. These two do not fail, and are not counted.
static cudaError_t get_context(struct CUctx_st **ret)
{
    *ret = context;
    return cudaSuccess;
}

static cudaError_t set_context(struct CUctx_st *next)
{
    context = next;
    return cudaSuccess;
}

static cudaError_t retain_context(struct CUctx_st **ret, int device)
{
    const cudaError_t error = call_begin();
    *ret = &contexts[device];
    if (error == cudaSuccess) contexts[device].made = true;
    return call_end(error);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    static const struct {
        const char *name;
        void *function;
    } known[] = {
        {"cuCtxGetCurrent", (void *)get_context},
        {"cuCtxSetCurrent", (void *)set_context},
        {"cuDevicePrimaryCtxRetain", (void *)retain_context},
    };
    const cudaError_t error = call_begin();
    (void)version;
    *result = cudaDriverEntryPointSymbolNotFound;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!flags && !strcmp(symbol, known[i].name)) {
            *function = known[i].function;
            *result = cudaDriverEntryPointSuccess;
        }
    return call_end(error);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current_without_context();
    return call_end(call_begin());
}

// Makes the device's context, as the run-time does from CUDA 12 on. Also sets it when it returns an
// error of an earlier call.
cudaError_t cudaSetDevice(int device)
{
    const cudaError_t error = call_begin();
    if (device < 0 || device >= DEVICES) return call_end(cudaErrorInvalidDevice);
    set_device = device;
    context = NULL;
    device_current();
    return call_end(error);
}
