// SPDX-License-Identifier: MIT
// Sums in a fixed order, for several engines; the interface between C and CUDA. All arrays are in
// the device's memory.
#ifndef PARTITA_CUDA_SUMS_H
#define PARTITA_CUDA_SUMS_H

#include "pass.h"

// Queues to[n] = the sum over i < count of sums[i][n], reals, in groups of CUDA_SUMS_GROUP and in
// order; sums are overwritten. `to` may be `sums`.
enum { CUDA_SUMS_GROUP = 32 };
CUDA_C cudaError_t cuda_launch_add_sums(bool f64, void *to, void *sums, int64_t n, int64_t count);

// Queues to[i] = x[i] + y[i], i < n scalars; to may be x or y.
CUDA_C cudaError_t cuda_launch_add(enum cuda_storage storage, void *to, const void *x,
                                   const void *y, int64_t n);

// y [rows][length], reals: bias [channels] of channel row % channels is added, NULL: none; then
// negative outputs become 0 if `relu`.
struct cuda_finish {
    void *y;
    const void *bias;
    int64_t rows, length, channels;
    bool relu;
};
CUDA_C cudaError_t cuda_launch_finish(const struct cuda_finish *finish, bool f64);

// Queues gb[k] = the sum of gy [batch][channels][n] over items and positions, or with `add` that
// sum plus gb[k]; sizes are those three.
CUDA_C cudaError_t cuda_bias_gradient(const int64_t sizes[3], enum cuda_storage storage, void *gb,
                                      const void *gy, bool add);

#endif
