// SPDX-License-Identifier: MIT
// Transforms of a plan: tables for transforms in a thread block, plans of cuFFT (gpu/cufft.h) for
// longer ones.
#ifndef PARTITA_CUDA_DEVICE_FFT_H
#define PARTITA_CUDA_DEVICE_FFT_H

#include "cuda/kernels/spectra.h"
#include "device.h"

// The transforms of a plan: negacyclic for real samples, cyclic for complex samples.
struct cuda_fft {
    struct cuda_fft_params params; // the kernels' part
    void *twiddles, *twist;        // the tables of params, in device memory
    struct cuda_cufft *cufft;      // NULL: in a thread block
};

// Whether cuFFT can be loaded.
bool cuda_fft_has_long(void);

// The smallest power of two >= n that is a transform's number of points; 0: there is none. Those
// beyond cuda_fft_max need cuFFT.
size_t cuda_fft_size(size_t n);

// Prepares transforms of `points` points, a result of cuda_fft_size, for a plan; they are ready
// when the call returns. `batch`: transforms in one call of cuFFT. `planes`: also make the factors
// of the second plane of complex samples. The caller must call
// cuda_fft_destroy, whatever was returned. Errors: PARTITA_ERR_NOMEM; PARTITA_ERR_DEVICE;
// PARTITA_ERR_UNSUPPORTED for a long transform without cuFFT.
enum partita_status cuda_fft_create(const struct partita_plan *plan, size_t points, size_t batch,
                                    bool planes, struct cuda_fft *ret);
void cuda_fft_destroy(const struct partita_plan *plan, struct cuda_fft *fft);

// cuda_fft_work_bytes: bytes of cuFFT's work area; 0 for short transforms. cuda_fft_batch:
// transforms of one call of cuFFT; 1 for short transforms.
size_t cuda_fft_work_bytes(const struct cuda_fft *fft);
size_t cuda_fft_batch(const struct cuda_fft *fft);

// Only one call at a time may use cuFFT's plan, from cuda_fft_begin, which takes the call's work
// area, to cuda_fft_end, which must follow whatever was returned. Between them cuda_fft_long queues
// `count` transforms in place, rounded up to whole batches; the area must last until they are
// done. For short transforms these three do nothing. Where launches only load kernels
// (cuda_thread), cuda_fft_long computes one batch of its own and waits for it: cuFFT loads its
// kernels with its first transforms.
enum partita_status cuda_fft_begin(const struct partita_plan *plan, const struct cuda_fft *fft,
                                   void *work_area);
enum partita_status cuda_fft_long(const struct partita_plan *plan, const struct cuda_fft *fft,
                                  void *spectra, size_t count, bool inverse);
void cuda_fft_end(const struct cuda_fft *fft);

#endif
