// SPDX-License-Identifier: MIT
// What the calling thread's launches do. cuda_enter and cuda_leave set it (device/device.h).
#ifndef PARTITA_CUDA_THREAD_H
#define PARTITA_CUDA_THREAD_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_thread {
    cudaStream_t stream; // that work is queued on
    bool loads;          // kernels are brought to the device, but not queued
};

const struct cuda_thread *cuda_thread(void);

#ifdef __cplusplus
}
#endif

#endif
