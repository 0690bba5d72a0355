// SPDX-License-Identifier: MIT
// The functions of cuFFT that the library uses, which is opened on first use and never linked: the
// module loads and works without it.
#ifndef PARTITA_CUDA_CUFFT_H
#define PARTITA_CUDA_CUFFT_H

#include <cuda_runtime_api.h>
#include <stddef.h>

// Values and types of its header in CUDA 11 to 13 (cufftHandle and the enumerations are ints).
enum { CUFFT_C2C = 0x29, CUFFT_Z2Z = 0x69, CUFFT_FORWARD = -1, CUFFT_INVERSE = 1 };
enum { // results, of which 0 is success
    CUFFT_ALLOC_FAILED = 2,
    CUFFT_INTERNAL_ERROR = 5,
    CUFFT_EXEC_FAILED = 6,
    CUFFT_SETUP_FAILED = 7
};

struct cuda_cufft_library {
    const struct cuda_cufft_library *next; // NULL: the last
    int (*create)(int *handle);
    int (*auto_allocation)(int handle, int wanted);
    int (*make_plan)(int handle, int rank, long long *n, long long *in_extent, long long in_stride,
                     long long in_distance, long long *out_extent, long long out_stride,
                     long long out_distance, int type, long long batch, size_t *work_bytes);
    int (*set_stream)(int handle, cudaStream_t stream);
    int (*set_work_area)(int handle, void *area);
    int (*c2c)(int handle, void *from, void *to, int direction);
    int (*z2z)(int handle, void *from, void *to, int direction);
    int (*destroy)(int handle);
};

// The libraries that could be loaded, in the order in which they are to be tried: that of a CUDA
// which is newer than the driver loads, but makes no plans. NULL: there is none. They are
// libcufft.so.12 and .11, or those of the environment variable PARTITA_CUFFT, files with colons
// between them.
const struct cuda_cufft_library *cuda_cufft_libraries(void);

#endif
