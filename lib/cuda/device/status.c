// SPDX-License-Identifier: MIT
#include "status.h"

#include <stdio.h>

#include "device.h"

// The status of a call that was refused before it did anything, which leaves the device as it was;
// PARTITA_OK for other errors. (Descriptions of cudaError_t in the CUDA Runtime API: those after
// which "the process must be terminated and relaunched" are not here, nor are those that say
// nothing about queued work.)
static enum partita_status status_of_refusal(cudaError_t error)
{
    switch (error) {
    case cudaErrorInvalidValue:          // also an array that its owner has released
    case cudaErrorInvalidResourceHandle: // another device's queue
        return PARTITA_ERR_ARG;
    case cudaErrorInvalidConfiguration: // a launch beyond the limits of a grid
    case cudaErrorLaunchOutOfResources:
    case cudaErrorInvalidDeviceFunction: // the module has no code that runs on this GPU
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidPtx:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorNotSupported:
        return PARTITA_ERR_UNSUPPORTED;
    default: // All nine errors of captured streams lie between these.
        return error >= cudaErrorStreamCaptureUnsupported &&
                       error <= cudaErrorStreamCaptureWrongThread
                   ? PARTITA_ERR_STATE
                   : PARTITA_OK;
    }
}

enum partita_status cuda_status(const struct partita_plan *plan, cudaError_t error,
                                const char *call, const char *file, int line)
{
    if (error == cudaSuccess) return PARTITA_OK;
    cudaGetLastError(); // or the next call would return it again
    if (error == cudaErrorMemoryAllocation) return PARTITA_ERR_NOMEM;
    const enum partita_status refused = status_of_refusal(error);
    if (refused != PARTITA_OK) {
        log_line(&plan->log, "cuda:%d: %s at %s:%d: %s", cuda_device_of(plan)->gpu->index,
                 cudaGetErrorName(error), file, line, call);
        return refused;
    }
    if (!atomic_exchange(&cuda_device_of(plan)->lost, true))
        log_line(&plan->log, "cuda:%d: %s (%s) at %s:%d: %s", cuda_device_of(plan)->gpu->index,
                 cudaGetErrorName(error), cudaGetErrorString(error), file, line, call);
    return PARTITA_ERR_DEVICE;
}

enum partita_status cuda_missing(cudaError_t error, char *text, size_t size)
{
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
        snprintf(text, size, "no CUDA device: driver not installed");
    else if (error == cudaErrorInsufficientDriver)
        snprintf(text, size, "no CUDA device: the driver is for CUDA %d.%d, older than %d.%d",
                 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                 CUDART_VERSION % 1000 / 10);
    else snprintf(text, size, "no CUDA device: %s", cudaGetErrorString(error));
    return PARTITA_ERR_DEVICE;
}
