// SPDX-License-Identifier: MIT
// Spectra of parts of rows and the way back, by transforms in a thread block or by cuFFT: what
// cuda/blocks and spectra as objects have in common (decisions 24 and 28).
#ifndef PARTITA_CUDA_PARTS_H
#define PARTITA_CUDA_PARTS_H

#include "cuda/device/fft.h"
#include "kernels.h"

// Transforms of one size, for samples of the plan's type.
struct cuda_parts {
    struct cuda_fft fft;
    int planes;
    void *twist; // of plane 1, in device memory; NULL: not prepared
};

// Prepares them, so many a call of long ones, complete when the call returns; `planes`: with the
// second plane of complex samples. Call on the plan's device; cuda_parts_destroy is to follow,
// whatever was returned. Errors: those of cuda_fft_create.
enum partita_status cuda_parts_create(const struct partita_plan *plan, size_t points,
                                      size_t transforms, bool planes, struct cuda_parts *ret);
void cuda_parts_destroy(const struct partita_plan *plan, struct cuda_parts *parts);

struct cuda_fft_params cuda_parts_params(const struct cuda_parts *parts);

// Transforms of one call of long ones: enough to fill a device, at most `max`; 1 of short ones.
size_t cuda_parts_transforms(size_t points, bool f64, size_t max);

// Bytes of so many spectra, rounded up to whole calls of long transforms; SIZE_MAX if that is more
// than memory.
size_t cuda_parts_bytes(size_t spectra, size_t planes, size_t points, size_t transforms, bool f64);

// Output blocks that one thread sums: few enough for a large device to be busy, but not too few.
size_t cuda_parts_per_thread(size_t bins, size_t rows, size_t blocks);

// The transforms of one call, with its plan of cuFFT if they are long.
struct cuda_fft_call {
    const struct partita_plan *plan;
    const struct cuda_parts *parts;
    struct cuda_fft_params params;
    struct cuda_cufft_plan *cufft_plan; // NULL: short ones
};

// area: cuda_fft_work_bytes bytes of device memory. cuda_fft_call_end is to follow, whatever was
// returned: it waits for what was queued if it gives a plan of cuFFT back, and returns the first
// failure, `status` being an earlier one.
enum partita_status cuda_fft_call_begin(const struct partita_plan *plan,
                                        const struct cuda_parts *parts, void *area,
                                        struct cuda_fft_call *ret);
enum partita_status cuda_fft_call_end(struct cuda_fft_call *call, enum partita_status status);

// Queue spectra [rows][windows][planes][points] of windows of rows of x.
enum partita_status cuda_fft_call_forward(const struct cuda_fft_call *call, void *to,
                                          const struct cuda_windows *windows, size_t rows,
                                          const void *x);

// Queue the inverses of so many long spectra, in place; nothing of short ones.
enum partita_status cuda_fft_call_long(const struct cuda_fft_call *call, void *spectra,
                                       size_t count);

// Queue the results of spectra [sink's rows][blocks][planes][points], which are destroyed; block 0
// begins at `position`.
enum partita_status cuda_fft_call_back(const struct cuda_fft_call *call,
                                       const struct cuda_sink *sink, void *from, ptrdiff_t position,
                                       size_t blocks);

#endif
