// SPDX-License-Identifier: MIT
// Transforms of a plan: tables for those in a thread block, plans of cuFFT for longer ones. cuFFT
// is opened on first use and never linked: the module loads and works without it.
#ifndef PARTITA_CUDA_DEVICE_FFT_H
#define PARTITA_CUDA_DEVICE_FFT_H

#include "cuda/kernels/spectra.h"
#include "device.h"

// The transforms of a plan, negacyclic ones of real samples, cyclic ones of complex samples.
struct cuda_fft {
    struct cuda_fft_params params; // what kernels know
    void *twiddles, *twist;        // in device memory, of the params
    struct cuda_cufft *cufft;      // NULL: in a thread block
};

// Whether there is cuFFT. PARTITA_CUFFT names another file than libcufft.so.12 or .11.
bool cuda_fft_has_long(void);

// The least power of two >= n that is a transform's number of points; 0: there is none. Those
// beyond cuda_fft_max take cuFFT.
size_t cuda_fft_size(size_t n);

// Prepares transforms of `points` points, one of cuda_fft_size, for a plan, complete when the call
// returns: `batch` of them in one call of cuFFT; `planes`: with the factors of the second plane of
// complex samples. Call on the plan's device (cuda_enter). cuda_fft_destroy is to follow, whatever
// was returned. Errors: PARTITA_ERR_NOMEM, _DEVICE; _UNSUPPORTED: a long one without cuFFT.
enum partita_status cuda_fft_create(const struct partita_plan *plan, size_t points, size_t batch,
                                    bool planes, struct cuda_fft *ret);
void cuda_fft_destroy(const struct partita_plan *plan, struct cuda_fft *fft);

// Long transforms: bytes of cuFFT's work area, 0 of short ones; transforms of one call, 1 of short
// ones.
size_t cuda_fft_work_bytes(const struct cuda_fft *fft);
size_t cuda_fft_batch(const struct cuda_fft *fft);

// One call at a time has the plan of cuFFT, from begin, with a work area of its own, to end,
// whatever was returned; between them cuda_fft_long queues so many transforms in place, rounded up
// to whole batches. End waits for what was queued, and returns the first failure, `status` being an
// earlier one. Of short transforms these three do nothing.
enum partita_status cuda_fft_begin(const struct partita_plan *plan, const struct cuda_fft *fft,
                                   void *work_area);
enum partita_status cuda_fft_long(const struct partita_plan *plan, const struct cuda_fft *fft,
                                  void *spectra, size_t count, bool inverse);
enum partita_status cuda_fft_end(const struct partita_plan *plan, const struct cuda_fft *fft,
                                 enum partita_status status);

#endif
