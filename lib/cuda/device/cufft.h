// SPDX-License-Identifier: MIT
// cuFFT, opened when first needed and never linked: the module loads and works without it. Of its
// interface only what long transforms use, with the types of its header in CUDA 11 to 13
// (cufftHandle and the enumerations are ints).
#ifndef PARTITA_CUDA_CUFFT_H
#define PARTITA_CUDA_CUFFT_H

#include <cuda_runtime_api.h>
#include <stddef.h>

enum { CUFFT_C2C = 0x29, CUFFT_Z2Z = 0x69, CUFFT_FORWARD = -1, CUFFT_INVERSE = 1 };

// Results, of which 0 is success.
enum {
    CUFFT_ALLOC_FAILED = 2,
    CUFFT_INTERNAL_ERROR = 5,
    CUFFT_EXEC_FAILED = 6,
    CUFFT_SETUP_FAILED = 7
};

struct cufft {
    int (*create)(int *handle);
    int (*auto_allocation)(int handle, int wanted);
    int (*make_plan)(int handle, int rank, long long *n, long long *in_extent, long long in_stride,
                     long long in_distance, long long *out_extent, long long out_stride,
                     long long out_distance, int type, long long batch, size_t *area);
    int (*set_stream)(int handle, cudaStream_t stream);
    int (*set_area)(int handle, void *area);
    int (*c2c)(int handle, void *from, void *to, int direction);
    int (*z2z)(int handle, void *from, void *to, int direction);
    int (*destroy)(int handle);
};

// NULL: there is none. PARTITA_CUFFT names another file than libcufft.so.12 or .11.
const struct cufft *cufft_open(void);

#endif
