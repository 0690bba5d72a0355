// SPDX-License-Identifier: MIT
// Transforms of a plan: tables for those in a thread block, plans of cuFFT for longer ones. cuFFT
// is opened on first use and never linked: the module loads and works without it.
#ifndef PARTITA_CUDA_DEVICE_FFT_H
#define PARTITA_CUDA_DEVICE_FFT_H

#include "cuda/kernels/fft.h"
#include "device.h"

struct cuda_cufft_plan;

// One transform of a plan.
struct cuda_fft {
    struct cuda_fft_form form;
    size_t points;
    bool f64, in_block;
    void *twiddles; // in device memory; of a long negacyclic transform the roots e^(-pi i j / 2n),
                    // j < points, that its samples are multiplied by
    struct cuda_cufft *cufft; // NULL: in a thread block
};

// Whether there is cuFFT. PARTITA_CUFFT names another file than libcufft.so.12 or .11.
bool cuda_fft_has_long(void);

// The least power of two >= n that is a transform's number of points; 0: there is none. Those
// beyond cuda_fft_max take cuFFT.
size_t cuda_fft_size(size_t n);

// Prepares transforms for a plan, complete when the call returns; `points` is one of cuda_fft_size,
// `batch` the transforms of one call of cuFFT. Call on the plan's device (cuda_enter).
// cuda_fft_destroy is to follow, whatever was returned. Errors: PARTITA_ERR_NOMEM, _DEVICE;
// _UNSUPPORTED: a long one without cuFFT.
enum partita_status cuda_fft_create(const struct partita_plan *plan, size_t points, bool negacyclic,
                                    size_t batch, struct cuda_fft *ret);
void cuda_fft_destroy(const struct partita_plan *plan, struct cuda_fft *fft);

// The roots e^(-2 pi i j / period), j < n, in device memory, complete when the call returns.
enum partita_status cuda_fft_roots(const struct partita_plan *plan, size_t n, size_t period,
                                   void **ret_roots);

// Long transforms. A call acquires a plan of cuFFT, which one thread uses at a time, and returns it
// when its work is done; the work area of cuda_fft_work_bytes bytes is the call's own. cuda_fft_run
// queues cuda_fft_batch transforms in place.
size_t cuda_fft_work_bytes(const struct cuda_fft *fft); // 0 of short ones
size_t cuda_fft_batch(const struct cuda_fft *fft);      // 1 of short ones
enum partita_status cuda_fft_acquire(const struct partita_plan *plan, const struct cuda_fft *fft,
                                     void *work_area, struct cuda_cufft_plan **ret);
enum partita_status cuda_fft_run(const struct partita_plan *plan, const struct cuda_fft *fft,
                                 const struct cuda_cufft_plan *cufft_plan, void *spectra,
                                 bool inverse);
void cuda_fft_return(const struct cuda_fft *fft, struct cuda_cufft_plan *cufft_plan);

#endif
