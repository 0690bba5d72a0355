// SPDX-License-Identifier: MIT
// Kernels with and without races in shared memory.
#ifndef TESTS_RACES_H
#define TESTS_RACES_H

#include <cuda_runtime_api.h>

enum races_kernel {
    RACES_NONE,
    RACES_READ_AFTER_WRITE,
    RACES_WRITE_AFTER_READ,
    RACES_WRITE_AFTER_WRITE,
    RACES_BYTE, // one of a float's bytes
    RACES_MISALIGNED,
    N_RACES
};

#ifdef __cplusplus
extern "C"
#endif
    cudaError_t
    races_launch(enum races_kernel kernel, float *to);

#endif
