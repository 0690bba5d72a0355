// SPDX-License-Identifier: MIT
// Devices that can compute, by the names that options.device takes: "cpu", "cuda" (the first GPU),
// "cuda:1". NVIDIA GPUs are served by a module of its own, libpartita-cuda.so, which is loaded when
// such a device is first requested. Without the module, or without a driver, everything else works.
// The module is searched beside the library, then where the system looks; the environment variable
// PARTITA_CUDA_MODULE names another file.
//
// A call on an object that was planned for a CUDA device makes that device current for the calling
// thread (cudaSetDevice) and leaves it so: a caller with several devices sets its own again. Memory
// that calls release stays with the process, in the device's default pool; cudaMemPoolTrimTo
// returns it to the system.
#ifndef PARTITA_DEVICE_H
#define PARTITA_DEVICE_H

#include <partita/common.h>

#ifdef __cplusplus
extern "C" {
#endif

// Describes a device in one line, or says what is missing: "no CUDA device: driver not installed".
// Shapes:  text[size], terminated when size > 0 and truncated if necessary.
// Errors:  PARTITA_ERR_ARG for NULL (text is not changed); PARTITA_ERR_DEVICE if there is no such
//          device; text then says why.
// Threads: any.
PARTITA_API enum partita_status partita_device_describe(const char *device, char *text,
                                                        size_t size);

#ifdef __cplusplus
}
#endif

#endif
