// SPDX-License-Identifier: MIT
// Partita: linear filters for endless streams, signals of any length and layers of images, through
// one API. (Layers are real; complex problems have one axis.)
//
// A stream, in four steps: describe it, plan it, prepare the taps, process.
//
//   struct partita_problem room = {.in_channels = 2, .out_channels = 2, .groups = 2,
//                                  .kernel = {4096}, .size = {PARTITA_UNBOUNDED},
//                                  .block = 256, .latency = 4096};
//   struct partita_plan *plan;
//   struct partita_filter *hall;
//   struct partita_stream *stream;
//   if (partita_plan_create(&room, NULL, &plan) ||       // chooses an engine
//       partita_filter_create(plan, hall_taps, &hall) || // hall_taps[2][1][4096]
//       partita_stream_open(plan, hall, &stream))
//       return false;                                    // with PARTITA_LOG=stderr: why
//   partita_stream_process(stream, out, in, n);          // any n; never allocates, locks or fails
//
// A layer, forward and backward:
//
//   struct partita_problem conv = {.op = PARTITA_CORRELATE, .batch = 16,
//                                  .in_channels = 64, .out_channels = 128, .kernel = {5, 5},
//                                  .size = {56, 56}, .pad_begin = {2, 2}, .pad_end = {2, 2}};
//   struct partita_taps taps = {.dense = w, .dense_count = 128 * 64 * 5 * 5, .bias = bias};
//   if (partita_plan_create(&conv, NULL, &plan) ||          // forward and both gradients
//       partita_filter_create_from(plan, &taps, &filter) || // w[128][64][5][5], bias[128]
//       partita_forward(plan, filter, y, x, NULL) ||        // y[16][128][56][56]
//       partita_backward_data(plan, filter, gx, gy, NULL) ||
//       partita_backward_weight(plan, gw, x, gy, NULL) ||
//       partita_backward_bias(plan, gb, gy, NULL))
//       return false;
//
// Conventions: every call that can fail returns enum partita_status; results come last (ret_...)
// and are not changed on failure; outputs come before inputs, as in memcpy; sizes and latencies
// count frames (one sample of every channel); a zero in a struct means its documented default;
// destroy and close accept NULL.
//
// Threads: plans and spectra are immutable and may be shared, and so may filters, except that no
//          other call may use one during partita_filter_update; wisdom has a lock. One thread at a
//          time may process a stream; others may swap its filter and read its status and
//          statistics. Global state: the lock around FFTW's planner, the size of the last cache,
//          the properties and the memory pool of each GPU that was used, and settings that are read
//          once per process: PARTITA_CPU=c|avx2|avx512|neon lowers the instruction set (avx512 is
//          AVX-512 without AVX512-BF16),
//          PARTITA_FFT=native|fftw prefers a transform, PARTITA_LOG=stderr prints reasons,
//          PARTITA_CUDA_MODULE and PARTITA_CUFFT name files for devices. The library starts threads
//          inside calls of bounded problems, of spectra and of the functions below (OpenMP), and
//          for a stream whose options.threads is above 1. If a process has used these, a child that
//          it makes by fork() computes such calls on the calling thread, and may only close streams
//          of its parent whose options.threads is above 1; it may open others. It cannot use
//          devices that its parent has used. While one thread forks, others may be in
//          any call: fork() waits for those that plan by FFTW or use wisdom. The child may not use
//          a stream, a bank or a filter that another thread was changing then. The library leaves
//          signals, locale and floating-point mode of the process as they are.
#ifndef PARTITA_PARTITA_H
#define PARTITA_PARTITA_H

#include <partita/adaptive.h>
#include <partita/advanced.h>
#include <partita/bank.h>
#include <partita/channelizer.h>
#include <partita/correction.h>
#include <partita/decode.h>
#include <partita/design.h>
#include <partita/equalizer.h>
#include <partita/filter.h>
#include <partita/pairs.h>
#include <partita/plan.h>
#include <partita/problem.h>
#include <partita/sequence.h>
#include <partita/stream.h>
#include <partita/templates.h>

#ifdef __cplusplus
extern "C" {
#endif

// Convolves a signal with taps, at the cost of the requested slice: scipy.signal.convolve(x, h,
// mode).
// Shapes:  x [n], h [m], y [partita_slice_size(PARTITA_CONVOLVE, n, m, slice)], all of `type`.
// Ranges:  n, m >= 1; y must not overlap x or h. x, y and h are aligned to their scalar.
//          options: as for the plan of a bounded problem, but directions and filter_uses must be 0;
//          NULL means defaults.
// Errors:  PARTITA_ERR_ARG for NULL, zero sizes, an empty or malformed slice, misaligned arrays,
//          a y that overlaps x or h, or an option out of range (the log line names it);
//          PARTITA_ERR_UNSUPPORTED if no engine fits the options; PARTITA_ERR_DEVICE;
//          PARTITA_ERR_NOMEM.
// Memory:  allocates working memory; a plan of your own avoids that, and small signals need none.
// Devices: on a device, arrays may be in its memory or in host memory.
// Time:    plans in each call, and by default uses as many threads as the work pays for. Signals of
//          up to 2^18 real products (outputs times samples of the shorter operand; four times as
//          many for complex types) are summed directly, without a plan, unless an option requires
//          one.
// Threads: any.
PARTITA_API enum partita_status partita_convolve_sized(enum partita_type type, void *y,
                                                       const void *x, size_t n, const void *h,
                                                       size_t m, const struct partita_slice *slice,
                                                       const struct partita_options *options,
                                                       size_t options_bytes);
static inline enum partita_status partita_convolve(enum partita_type type, void *y, const void *x,
                                                   size_t n, const void *h, size_t m,
                                                   const struct partita_slice *slice,
                                                   const struct partita_options *options)
{
    return partita_convolve_sized(type, y, x, n, h, m, slice, options, sizeof *options);
}

// Cross-correlates a signal with a template, conjugating h: scipy.signal.correlate(x, h, mode).
// Shapes, Ranges, Errors, Memory, Devices, Time, Threads: as partita_convolve; PARTITA_RANGE counts
// lags.
PARTITA_API enum partita_status partita_correlate_sized(enum partita_type type, void *y,
                                                        const void *x, size_t n, const void *h,
                                                        size_t m, const struct partita_slice *slice,
                                                        const struct partita_options *options,
                                                        size_t options_bytes);
static inline enum partita_status partita_correlate(enum partita_type type, void *y, const void *x,
                                                    size_t n, const void *h, size_t m,
                                                    const struct partita_slice *slice,
                                                    const struct partita_options *options)
{
    return partita_correlate_sized(type, y, x, n, h, m, slice, options, sizeof *options);
}

// As partita_correlate, but each lag is divided by the norms of the template and of the signal
// under the template:
//   y[lag] = sum_i x[i + lag] conj(h[i]) / sqrt(sum_i |x[i + lag]|^2 * sum_i |h[i]|^2),  i < m.
// With options.zero_mean the mean of h is subtracted from h first, and from the m samples x[i +
// lag] their mean; samples beyond the ends of x are zeros and count. y is 0 where template or
// signal is silent, with zero_mean where one varies by less than 2^-40 of its level.
//
// Magnitudes are at most 1, except for rounding, at any level. Everything is computed in double,
// and both operands are scaled by powers of two, so that a power of two on either changes no bit of
// y, unless samples are subnormal. The norms of a quiet passage after a loud one are its own. The
// numerator may come from transforms, where a quiet passage has the rounding errors of a loud
// passage beside it, and with zero_mean those of the mean: about 1e-16 of the louder one, which
// shows where that is 1e8 times louder and more.
//
// Shapes, Time, Threads: as partita_correlate.
// Ranges:  as partita_correlate; zero_mean is an option of this function alone.
// Errors:  as partita_correlate; PARTITA_ERR_UNSUPPORTED for f16 and bf16.
// Memory:  as partita_correlate for f64 or cf64, copies of x, h and y in that type, and 40
//          bytes for each output or each template sample, whichever are fewer.
// Devices: a device computes the numerator and the CPU the norms: all arrays are in host memory.
PARTITA_API enum partita_status
partita_correlate_normalised_sized(enum partita_type type, void *y, const void *x, size_t n,
                                   const void *h, size_t m, const struct partita_slice *slice,
                                   const struct partita_options *options, size_t options_bytes);
static inline enum partita_status
partita_correlate_normalised(enum partita_type type, void *y, const void *x, size_t n,
                             const void *h, size_t m, const struct partita_slice *slice,
                             const struct partita_options *options)
{
    return partita_correlate_normalised_sized(type, y, x, n, h, m, slice, options, sizeof *options);
}

// Estimates the impulse response h of what lies between a signal that was played, usually a sweep,
// and its recording, by division of their spectra: H = R conj(S) q / (q^2 + t^2) / p, where p is
// the largest |S|^2, q = |S|^2 / p and t = 1e-6. Within the band of the signal H is R / S; 60 dB
// below its strongest frequency H goes to 0, where a division would amplify noise. The response of
// a path of gain 1 to a signal of limited band has a peak below 1, which is that of the response of
// the signal to itself.
// Shapes:  recording [n], signal [m], h [n]: h[0] is the response at the lag at which recording and
//          signal begin together.
// Ranges:  n, m >= 1, n + m <= 402653184. All samples are finite. h may be recording or signal. A
//          signal of zeros has the response 0.
// Errors:  PARTITA_ERR_ARG for NULL, zero sizes, or one of the allocator's functions without the
//          other; PARTITA_ERR_UNSUPPORTED for more samples; PARTITA_ERR_NOMEM. h is then unchanged.
// Memory:  allocates up to 56 bytes for each sample of n + m by `allocator`; NULL means malloc.
// Time:    three transforms of n + m samples, on the calling thread.
// Threads: any.
PARTITA_API enum partita_status partita_deconvolve(double *h, const double *recording, size_t n,
                                                   const double *signal, size_t m,
                                                   const struct partita_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
