// SPDX-License-Identifier: MIT
// The spectral seam of the device (decision 23): transforms of n complex points whose bins lie in
// an order of their own, so that spectra may be multiplied, conjugated products included, and
// added, and nothing else. Two forms:
//   cyclic    complex samples x[n]; products wrap cyclically after n samples.
//   turned    2n real samples as the points x[j] - i x[j+n] modulo u^n + i; products wrap
//   negacyclically after 2n
//             samples (decision 2). No bin is special, no bin needs its mirror image.
// Transforms up to cuda_fft_most points run inside a thread block, in the registers and shared
// memory of whoever fuses them with loading and storing (fft.cuh). Longer ones are passes over
// memory by cuFFT, which is opened when the first of them is asked for (cufft.h).
#ifndef PARTITA_CUDA_FFT_H
#define PARTITA_CUDA_FFT_H

#include <cuda_runtime_api.h>
#include <partita/common.h>
#include <stdbool.h>
#include <stddef.h>

struct partita_plan;
struct cuda_fft_lease;

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_FFT_POINTS = 16,       // that one thread of a transform holds
    CUDA_FFT_MOST_F32 = 8192,   // points of a transform in a thread block: 512 threads,
    CUDA_FFT_MOST_F64 = 4096,   // and 256
    CUDA_FFT_LONGEST = 1 << 26, // points of one by cuFFT
};

static inline size_t cuda_fft_most(bool f64)
{
    return f64 ? CUDA_FFT_MOST_F64 : CUDA_FFT_MOST_F32;
}

// What a kernel knows of a transform.
struct cuda_fft_form {
    const void *factors; // the device's: of each pass from the longest nodes on, of each node c and
                         // c^4 (fft.cuh)
    int log2_points;
    int last; // index of the first node's factors of the last pass
    bool turned;
};

// Passes divide by 16, then by what is left over, then by 16 down to single points: log2 of the
// second one's divisor.
#define CUDA_FFT_SECOND_RADIX(log2_points) (((log2_points)-1) % 4 + 1)

// Threads of one transform within a block; bytes of shared memory that it needs.
static inline int cuda_fft_threads(size_t points)
{
    return (int)(points / CUDA_FFT_POINTS);
}

// Transforms that share a thread block, so that short ones fill it too.
static inline int cuda_fft_rows(size_t points)
{
    enum { FULL = 128 }; // threads
    return cuda_fft_threads(points) < FULL ? FULL / cuda_fft_threads(points) : 1;
}

static inline size_t cuda_fft_shared(size_t points, bool f64)
{
    return (points + points / 16) * 2 * (f64 ? 8 : 4);
}

// One transform of a plan: its tables, and of a long one the plans of cuFFT.
struct cuda_fft {
    struct cuda_fft_form form;
    size_t points;
    size_t extent[3]; // of its axes; 1 but for the last: one axis
    bool f64, within; // a thread block
    void *factors;    // the device's: of a long turned one e^(-pi i j / 2n), j < points, which its
                      // samples are turned by
    struct cuda_fft_long *passes;
};

// The least power of two from n on that is a transform's number of points; 0 if there is none.
// Longer ones than cuda_fft_most need cuFFT: cufft_missing (cufft.h) says why there is none.
size_t cuda_fft_size(size_t n);

// Prepares transforms for a plan, complete when the call returns; `points` is one of cuda_fft_size,
// `batch` how many a long transform's call makes at once. Call on the plan's device (cuda_enter).
// cuda_fft_destroy is to follow, whatever was returned. Errors: PARTITA_ERR_NOMEM, _DEVICE;
// _UNSUPPORTED: a long one without cuFFT.
enum partita_status cuda_fft_create(const struct partita_plan *plan, size_t points, bool turned,
                                    size_t batch, struct cuda_fft *ret);
void cuda_fft_destroy(const struct partita_plan *plan, struct cuda_fft *fft);

// The same for cyclic transforms along up to three axes of n samples each, by cuFFT, whatever their
// size; spectra are in natural order.
enum partita_status cuda_fft_create_box(const struct partita_plan *plan, const size_t n[3],
                                        size_t batch, struct cuda_fft *ret);

// Long transforms. A call borrows a plan of cuFFT, which one thread uses at a time, and gives it
// back when its work is done; the work area is the call's own, of cuda_fft_area bytes. cuda_fft_run
// queues `batch` transforms in place.
size_t cuda_fft_area(const struct cuda_fft *fft);
size_t cuda_fft_batch(const struct cuda_fft *fft);
enum partita_status cuda_fft_borrow(const struct partita_plan *plan, const struct cuda_fft *fft,
                                    void *area, struct cuda_fft_lease **ret);
enum partita_status cuda_fft_run(const struct partita_plan *plan, const struct cuda_fft *fft,
                                 const struct cuda_fft_lease *lease, void *spectra, bool back);
void cuda_fft_give_back(const struct cuda_fft *fft,
                        struct cuda_fft_lease *lease); // NULL is allowed

#ifdef __cplusplus
}
#endif

#endif
