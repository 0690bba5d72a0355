// SPDX-License-Identifier: MIT
// How launches of the calling thread are queued. cuda_enter and cuda_leave restore it.
#ifndef PARTITA_CUDA_THREAD_H
#define PARTITA_CUDA_THREAD_H

#include "interface.h"

struct cuda_thread {
    cudaStream_t stream; // that work is queued on
    bool loads;          // kernels are brought to the device, but not queued
    bool loaded;         // that was done for all kernels that are queued
};

CUDA_C const struct cuda_thread *cuda_thread(void);
CUDA_C void cuda_thread_set(const struct cuda_thread *thread);

#endif
