// SPDX-License-Identifier: MIT
// Devices that problems can run on, by the names that options.device takes: "cpu", "cuda" (the first one), "cuda:1".
// What runs on NVIDIA's GPUs is a module of its own, libpartita-cuda.so, that is loaded when such a device is first
// asked for; without it, or without a driver, everything else works. It is looked for beside the library, then where
// the system looks; PARTITA_CUDA_MODULE in the environment names another file.
//
// Calls on what was planned for a CUDA device make that device the calling thread's current one (cudaSetDevice) and
// leave it so: a caller with several devices sets its own again. Memory that calls give back stays with the process,
// in the device's default pool; cudaMemPoolTrimTo returns it to the system.
#ifndef PARTITA_DEVICE_H
#define PARTITA_DEVICE_H

#include <partita/common.h>

#ifdef __cplusplus
extern "C" {
#endif

// Says in one line what a device is, or what is missing: "no CUDA device: driver not installed".
// Shapes:  text[size], terminated when size > 0 and cut if need be.
// Errors:  PARTITA_ERR_ARG for NULL (text is untouched); PARTITA_ERR_DEVICE if there is no such device; text says why.
// Threads: any.
PARTITA_API enum partita_status partita_device_describe(const char *device, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
