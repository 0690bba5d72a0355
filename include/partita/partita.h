// SPDX-License-Identifier: MIT
// Partita: linear filters for endless streams, signals of any length and layers of images, through
// one API. (Layers are real; complex problems have one axis.)
//
//   struct partita_problem room = {.in_channels = 2, .out_channels = 2, .groups = 2,
//                                  .kernel = {4096}, .size = {PARTITA_UNBOUNDED},
//                                  .block = 256, .latency = 4096};
//   struct partita_plan *plan;
//   struct partita_filter *hall;
//   struct partita_stream *stream;
//   partita_plan_create(&room, NULL, &plan);        // chooses an engine (partita_plan_explain)
//   partita_filter_create(plan, hall_taps, &hall);  // hall_taps[2][1][4096]
//   partita_stream_open(plan, hall, &stream);
//   partita_stream_process(stream, out, in, n);     // any n; never allocates, locks or fails
//
// Conventions: every call that can fail returns enum partita_status; results come last (ret_...)
// and are not changed on failure; outputs come before inputs, as in memcpy; sizes and latencies
// count frames (one sample of every channel); a zero in a struct means its documented default;
// destroy and close accept NULL.
//
// Threads: plans and filters are immutable and may be shared; wisdom has a lock of its own; a
//          stream belongs to one
// thread at a time. The only global state of the library is the lock around FFTW's planner. The
// library starts threads inside calls of bounded problems, of spectra and of the functions below
// (OpenMP), and for a stream whose options.threads is above 1. After fork() the child may use them
// only if the parent did not.
#ifndef PARTITA_PARTITA_H
#define PARTITA_PARTITA_H

#include <partita/device.h>
#include <partita/layer.h>
#include <partita/slice.h>
#include <partita/spectrum.h>
#include <partita/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

// Convolves a signal with taps, at the cost of the requested slice: scipy.signal.convolve(x, h,
// mode).
// Shapes:  x [n], h [m], y [partita_slice_size(PARTITA_CONVOLVE, n, m, slice)], all of `type`.
// Ranges:  n, m >= 1; y must not overlap x or h.
// Errors:  PARTITA_ERR_ARG for NULL, zero sizes or an empty slice; PARTITA_ERR_NOMEM.
// Memory:  allocates working memory; a plan of your own avoids that.
// Time:    plans in each call; uses all cores.
// Threads: any.
PARTITA_API enum partita_status partita_convolve(enum partita_type type, void *y, const void *x,
                                                 size_t n, const void *h, size_t m,
                                                 const struct partita_slice *slice);

// Cross-correlates a signal with a template, conjugating h: scipy.signal.correlate(x, h, mode).
// Shapes, Ranges, Errors, Memory, Time,
// Threads: as partita_convolve; PARTITA_RANGE counts lags.
PARTITA_API enum partita_status partita_correlate(enum partita_type type, void *y, const void *x,
                                                  size_t n, const void *h, size_t m,
                                                  const struct partita_slice *slice);

// As partita_correlate, divided by the norms of the template and of the signal under it:
//   y[lag] = sum_i x[i + lag] conj(h[i]) / sqrt(sum_i |x[i + lag]|^2 * sum_i |h[i]|^2),  i < m.
// Magnitudes are at most 1, except for rounding; y is 0 where template or signal is silent. The
// norms are summed in double without differences, so a quiet passage after a loud one is divided by
// its own norm. The numerator may come from transforms, whose rounding errors are those of a loud
// passage beside it: for passages 100 dB below their surroundings use PARTITA_F64. The call takes
// no options and runs on the CPU; partita_spectrum_correlate computes the numerator on a device.
// Shapes, Ranges, Time, Threads: as partita_correlate.
// Errors:  as partita_correlate; PARTITA_ERR_UNSUPPORTED for f16 and bf16.
// Memory:  as partita_correlate, and one double for each output or each template sample, whichever
//          are fewer.
PARTITA_API enum partita_status partita_correlate_normalised(enum partita_type type, void *y,
                                                             const void *x, size_t n, const void *h,
                                                             size_t m,
                                                             const struct partita_slice *slice);

#ifdef __cplusplus
}
#endif

#endif
