// SPDX-License-Identifier: MIT
// What the engines with transforms of one axis share: which problem they run, the search for a
// size, what transforms cost, and filters as spectra.
#ifndef PARTITA_CUDA_SPECTRAL_H
#define PARTITA_CUDA_SPECTRAL_H

#include "cuda/device/device.h"
#include "cuda/kernels/fft.h"
#include "cuda/kernels/windows.h"

// A filter: spectra of its cells [out_channels][group_in][points], divided by the number of points.
struct cuda_spectra {
    void *taps, *bias; // in the device's memory; bias NULL: none
};

// The problem that a direction runs as a forward one: the plan's own, or of backward data its
// adjoint. False where there is none; ret_reason says why.
bool cuda_spectral_shape(const struct request *request, struct shape *ret, char *ret_reason,
                         size_t size);

// Samples of a window of so many points; and points of so many samples, 0 if no transform has them.
size_t cuda_spectral_samples(const struct shape *shape, size_t points);
size_t cuda_spectral_points(const struct shape *shape, size_t samples);

// Of all sizes of a thread block that `consider` fills an estimate for, the one that takes the
// fewest seconds. A request for one size is kept to.
typedef bool cuda_consider_fn(const struct request *request, const struct shape *shape,
                              size_t points, struct estimate *ret);
void cuda_spectral_search(const struct request *request, const struct shape *shape,
                          cuda_consider_fn *consider, struct estimate *ret);

// What an engine does on a device in one call, counted.
struct cuda_work {
    double launches;
    double slots; // times that a lane takes to issue a multiply-add or the like
    double bytes; // moved from and to the device's memory
    double lanes; // that can work at once
};
double cuda_work_seconds(const struct request *request, const struct cuda_work *work);

// Slots of `n` transforms; of products of so many pairs of spectra, one of each from memory, or
// both at hand in a thread block, which may take each of them twice.
double cuda_transform_slots(size_t points, double n);
double cuda_spectral_slots(size_t points, double n);
double cuda_kept_slots(size_t points, double n);

// Relative error of a filter by transforms, and of sums of `terms` products in a row of their
// spectra.
double cuda_transform_error(const struct shape *shape, size_t points, double terms);

// Fills spectra from taps in the caller's layout, of a shape that cuda_spectral_shape gave, in
// either memory.
enum partita_status cuda_spectra_create(const struct partita_plan *plan, const struct shape *shape,
                                        const struct cuda_fft *fft, const void *taps,
                                        struct cuda_spectra **ret);
enum partita_status cuda_spectra_bias(struct partita_filter *filter, const void *bias);
void cuda_spectra_destroy(struct partita_filter *filter);

// The windows of the first inputs of all groups, from position `first` on, `hop` apart, in order of
// jobs (save.h).
struct cuda_windows cuda_input_windows(const struct shape *shape, ptrdiff_t first, size_t hop,
                                       size_t windows, size_t length);

// Bytes of the arrays of a call.
size_t cuda_input_bytes(const struct shape *shape);
size_t cuda_output_bytes(const struct shape *shape);

#endif
