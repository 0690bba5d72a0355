// SPDX-License-Identifier: MIT
// Sums that several launches left in memory: adding them up, and finishing outputs that were added
// up in place. All arrays are in the device's memory.
#ifndef PARTITA_CUDA_SUMS_H
#define PARTITA_CUDA_SUMS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// sums[0][n] becomes the sum over i < count of sums[i][n], in this order; reals.
cudaError_t cuda_launch_add_sums(bool f64, void *sums, int64_t n, int64_t count,
                                 cudaStream_t stream);

// y [rows][length], reals: bias [channels] of channel row % channels is added, NULL: none; then
// negative outputs become 0 if `relu`.
struct cuda_finish {
    void *y;
    const void *bias;
    int64_t rows, length, channels;
    bool relu;
};
cudaError_t cuda_launch_finish(const struct cuda_finish *finish, bool f64, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
