// SPDX-License-Identifier: MIT
// Shared by filters and gradients in overlapping windows: sizes of transforms, the search for one,
// and its cost.
#ifndef PARTITA_CUDA_SPECTRAL_H
#define PARTITA_CUDA_SPECTRAL_H

#include "cuda/device/bounded_call.h"
#include "cuda/device/fft.h"
#include "cuda/device/rates.h"
#include "cuda/kernels/lags.h"
#include "long_rows.h"

// Samples of a window whose transform has `points` points.
size_t cuda_spectral_samples(const struct shape *shape, size_t points);

// Fills the estimate of one variant with transforms of `points` points; false if it does not apply.
typedef bool cuda_try_fn(const struct request *request, const struct shape *shape, size_t points,
                         int variant, struct estimate *ret);

// Fills *ret with the fastest of the variants below `count` that the request allows and of all
// transform sizes of a thread block, or of the size that the request names. If count is 0
// ANY_VARIANT is tried, whatever the request's variant is.
void cuda_spectral_search(const struct request *request, const struct shape *shape,
                          cuda_try_fn *try_size, int count, struct estimate *ret);

// Slots of `n` transforms.
double cuda_transform_slots(size_t points, double n);

// Slots of a product of two bins, counted in the code of fft.cuh for sm_90 (decision 46), not
// measured: with a filter's bin, whose loads wait for the caches; with one that the thread block
// already has in registers or shared memory.
static const double CUDA_PRODUCT_SLOTS = 12, CUDA_CACHED_PRODUCT_SLOTS = 9.5;

// Relative error of a filter by transforms with sums of `terms` products of spectra.
double cuda_transform_error(const struct shape *shape, size_t points, double terms);

// The parameters of a transform that a kernel needs, without its tables.
struct cuda_fft_form cuda_form_of(const struct shape *shape, size_t points);

// The decision of an estimate of a filter, in windows that hold all taps or as long rows
// (long_rows.h).
struct cuda_filter_decision {
    size_t points;
    int launches;   // K of overlap-add; 0: overlap-save
    bool long_rows; // of the layout blocks, shared_bytes and cache_bytes are used
    struct cuda_filter_layout layout;
};

// Fills *ret where long rows apply, the request allows them, and they cost less than its estimate;
// not its reason.
void cuda_long_rows_search(const struct request *request, const struct shape *shape,
                           struct estimate *ret);

// The parameters of the kernel; false if it does not apply.
bool cuda_long_rows_of(const struct shape *shape, const struct cuda_fft_form *form,
                       struct cuda_filtering *ret);

// A plan for the gradient of the taps of one axis (lags.h), and the decision of its estimate.
struct cuda_gradient_plan {
    struct cuda_fft fft;
    struct cuda_lags kernel;
    int sums; // that a thread block computes, 1 or 2
};
struct cuda_gradient_decision {
    size_t points, splits;
    int sums;
};

// Splits the problem into `splits` splits, or if that is 0 chooses their number; false if the
// kernel does not apply or the sums would take more than `limit` bytes.
bool cuda_gradient_split(const struct shape *shape, size_t points, int sums, size_t limit,
                         size_t splits, struct cuda_lags *ret);
// Bytes of the sums of all splits.
size_t cuda_gradient_bytes(const struct shape *shape, const struct cuda_lags *gradient);
cuda_try_fn cuda_gradient_try; // variants: 1 sum, 2 sums

// For a plan of cuda_gradient_try's choice; the caller must call cuda_fft_destroy(plan, &ret->fft).
enum partita_status cuda_gradient_create(struct partita_plan *plan, struct cuda_gradient_plan *ret);
enum partita_status cuda_gradient_run(const struct partita_plan *plan,
                                      const struct cuda_gradient_plan *gradient,
                                      const struct operands *operands, void *workspace);

#endif
