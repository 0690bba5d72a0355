// SPDX-License-Identifier: MIT
// Spectra of parts of lines and the way back, by transforms within a thread block or by cuFFT: what
// cuda/blocks and spectra as objects have in common (decisions 24 and 28).
#ifndef PARTITA_CUDA_PARTS_H
#define PARTITA_CUDA_PARTS_H

#include "cuda/device/device.h"
#include "cuda/kernels/spectra.h"

// Transforms of one size, for samples of the plan's type.
struct cuda_parts {
    struct cuda_fft fft;
    int planes;
    void *twist; // of the second plane, in the device's memory; NULL: not prepared
};

// Prepares them, so many a call of long ones, complete when the call returns; `paired`: with what
// the second plane of complex samples takes. Call on the plan's device; cuda_parts_destroy is to
// follow, whatever was returned. Errors: those of cuda_fft_create.
enum partita_status cuda_parts_create(const struct partita_plan *plan, size_t points,
                                      size_t transforms, bool paired, struct cuda_parts *ret);
void cuda_parts_destroy(const struct partita_plan *plan, struct cuda_parts *parts);

struct cuda_kit cuda_parts_kit(const struct cuda_parts *parts);

// Transforms of one call of long ones, about as many as fill a device and no more than `most`; 1 of
// short ones.
size_t cuda_parts_transforms(size_t points, bool f64, size_t most);

// Bytes of so many spectra, rounded up to whole calls of long transforms; SIZE_MAX if that is more
// than memory.
size_t cuda_parts_bytes(size_t spectra, size_t planes, size_t points, size_t transforms, bool f64);

// Output blocks that one thread sums: enough threads for a large device, if there are as many.
size_t cuda_parts_of_thread(size_t bins, size_t lines, size_t blocks);

// The transforms of one call. A lease is that of long ones, whose plan of cuFFT is the call's until
// its end.
struct cuda_transforms {
    const struct partita_plan *plan;
    const struct cuda_parts *parts;
    struct cuda_kit kit;
    struct cuda_fft_lease *lease;
};

// area: cuda_fft_area bytes of the device's. cuda_transforms_end is to follow, whatever was
// returned: it waits for what was queued if there is a lease to give back, and returns the first
// failure, `status` being an earlier one.
enum partita_status cuda_transforms_begin(const struct partita_plan *plan,
                                          const struct cuda_parts *parts, void *area,
                                          struct cuda_transforms *ret);
enum partita_status cuda_transforms_end(struct cuda_transforms *transforms,
                                        enum partita_status status);

// Queue spectra [lines][windows][planes][points] of windows of lines of x.
enum partita_status cuda_transforms_forward(const struct cuda_transforms *transforms, void *to,
                                            const struct cuda_windows *windows, size_t lines,
                                            const void *x);

// Queue so many long transforms back, in place, of spectra one after the other; nothing of short
// ones.
enum partita_status cuda_transforms_long(const struct cuda_transforms *transforms, void *spectra,
                                         size_t count);

// Queue the results of spectra [sink's lines][blocks][planes][points], which are destroyed; block 0
// begins at `position`.
enum partita_status cuda_transforms_back(const struct cuda_transforms *transforms,
                                         const struct cuda_sink *sink, void *from,
                                         ptrdiff_t position, size_t blocks);

#endif
