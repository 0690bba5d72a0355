// SPDX-License-Identifier: MIT
// The functions of cuFFT that the module and the peers of bench_gpu use, implemented with FFTW:
// transforms of rows in place.
#ifndef HOSTDEV_CUFFT_H
#define HOSTDEV_CUFFT_H

#include <cuda_runtime_api.h>

typedef int cufftHandle; // 0 is none
typedef float cufftReal;
typedef struct {
    float x, y;
} cufftComplex;
typedef enum { CUFFT_R2C = 0x2a, CUFFT_C2R = 0x2c, CUFFT_C2C = 0x29, CUFFT_Z2Z = 0x69 } cufftType;
typedef enum {
    CUFFT_SUCCESS,
    CUFFT_ALLOC_FAILED = 2,
    CUFFT_INVALID_VALUE = 4,
    CUFFT_EXEC_FAILED = 6,
    CUFFT_SETUP_FAILED = 7,
} cufftResult;
enum { CUFFT_FORWARD = -1, CUFFT_INVERSE = 1 };

cufftResult cufftCreate(cufftHandle *handle);
cufftResult cufftSetAutoAllocation(cufftHandle handle, int wanted);
cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long *n, long long *in_extent,
                                long long in_stride, long long in_distance, long long *out_extent,
                                long long out_stride, long long out_distance, cufftType type,
                                long long batch, size_t *area);
cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream);
cufftResult cufftSetWorkArea(cufftHandle handle, void *area);
cufftResult cufftExecC2C(cufftHandle handle, cufftComplex *from, cufftComplex *to, int direction);
cufftResult cufftExecZ2Z(cufftHandle handle, void *from, void *to, int direction);
cufftResult cufftExecR2C(cufftHandle handle, cufftReal *from, cufftComplex *to);
cufftResult cufftExecC2R(cufftHandle handle, cufftComplex *from, cufftReal *to);
cufftResult cufftDestroy(cufftHandle handle);

// Plans fail with this result, until it is CUFFT_SUCCESS. Tests find it by its name.
void hostdev_cufft_refuse(int result);

#endif
