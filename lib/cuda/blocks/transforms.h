// SPDX-License-Identifier: MIT
// Forward and inverse transforms of blocks of rows, in a thread block or by cuFFT, for cuda/blocks
// and for spectra as objects (decisions 24 and 28).
#ifndef PARTITA_CUDA_BLOCK_TRANSFORMS_H
#define PARTITA_CUDA_BLOCK_TRANSFORMS_H

#include "cuda/device/fft.h"
#include "kernels.h"

// Number of transforms in one call of cuFFT: enough to fill a device, at most `max`; 1 for short
// transforms.
size_t cuda_blocks_fft_batch(size_t points, bool f64, size_t max);

// Bytes of that many spectra, rounded up to whole batches; SIZE_MAX on overflow.
size_t cuda_blocks_bytes(size_t spectra, size_t planes, size_t points, size_t batch, bool f64);

// Output blocks that one thread sums: few enough to keep a large device busy, but not too few.
size_t cuda_blocks_per_thread(size_t bins, size_t rows, size_t blocks);

// To be called between cuda_fft_begin and cuda_fft_end. cuda_blocks_forward queues spectra
// [rows][windows][planes][points] of windows of rows of x. cuda_blocks_back queues the results of
// spectra [sink's rows][blocks][planes][points], which are destroyed; block 0 begins at `position`.
enum partita_status cuda_blocks_forward(const struct partita_plan *plan, const struct cuda_fft *fft,
                                        void *to, const struct cuda_windows *windows, size_t rows,
                                        const void *x);
enum partita_status cuda_blocks_back(const struct partita_plan *plan, const struct cuda_fft *fft,
                                     const struct cuda_sink *sink, void *from, ptrdiff_t position,
                                     size_t blocks);

#endif
