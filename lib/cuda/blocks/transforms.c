// SPDX-License-Identifier: MIT
#include "transforms.h"

#include "base/sizes.h"

size_t cuda_blocks_fft_batch(size_t points, bool f64, size_t max)
{
    enum { TARGET_POINTS = 1 << 20 }; // of one call: fewer do not fill a large device
    if (points <= cuda_fft_max(f64)) return 1;
    size_t batch = points < TARGET_POINTS ? TARGET_POINTS / points : 1;
    while (batch > 1 && batch > max) batch /= 2;
    return batch;
}

size_t cuda_blocks_bytes(size_t spectra, size_t planes, size_t points, size_t batch, bool f64)
{
    const size_t arrays = size_mul(spectra, planes);
    if (arrays == SIZE_MAX) return SIZE_MAX;
    return size_mul(size_mul(ceil_div(arrays, batch), batch), points * (f64 ? 16 : 8));
}

size_t cuda_blocks_per_thread(size_t bins, size_t rows, size_t blocks)
{
    enum { TARGET_THREADS = 1 << 18, MIN_BLOCKS = 15 };
    const size_t threads = ceil_div(TARGET_THREADS, bins * rows);
    return size_max(ceil_div(blocks, threads), MIN_BLOCKS);
}

enum partita_status cuda_blocks_forward(const struct partita_plan *plan, const struct cuda_fft *fft,
                                        void *to, const struct cuda_windows *windows, size_t rows,
                                        const void *x)
{
    const struct cuda_fft_params *params = &fft->params;
    const enum partita_status status =
        CU(plan, cuda_launch_windows(params, to, windows, (int64_t)rows, x));
    const size_t transforms = rows * (size_t)(windows->count * params->planes);
    return status == PARTITA_OK ? cuda_fft_long(plan, fft, to, transforms, false) : status;
}

enum partita_status cuda_blocks_back(const struct partita_plan *plan, const struct cuda_fft *fft,
                                     const struct cuda_sink *sink, void *from, ptrdiff_t position,
                                     size_t blocks)
{
    const struct cuda_fft_params *params = &fft->params;
    const size_t transforms = (size_t)(sink->rows * params->planes) * blocks;
    const enum partita_status status = cuda_fft_long(plan, fft, from, transforms, true);
    if (status != PARTITA_OK) return status;
    return CU(plan, cuda_launch_results(params, sink, from, position, (int64_t)blocks));
}
