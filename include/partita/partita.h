// SPDX-License-Identifier: MIT
// Partita: linear filters for streams without end, signals of any length and layers of images, through one API. (Layers
// are real; complex problems have one axis.)
//
//   struct partita_problem room = {.in_channels = 2, .out_channels = 2, .groups = 2, .kernel = {4096},
//                                  .size = {PARTITA_UNBOUNDED}, .block = 256, .latency = 4096};
//   struct partita_plan *plan;
//   struct partita_filter *hall;
//   struct partita_stream *stream;
//   partita_plan_create(&room, NULL, &plan);          // chooses an engine; partita_plan_explain says which and why
//   partita_filter_create(plan, hall_taps, &hall);    // hall_taps[2][1][4096]
//   partita_stream_open(plan, hall, &stream);
//   partita_stream_process(stream, out, in, n);       // audio thread: any n, never allocates, locks or fails
//
// Conventions: every call that can fail returns enum partita_status, results come last (ret_...) and stay untouched on
// failure; outputs come before inputs, as in memcpy; sizes and latencies count frames (one sample of every channel);
// zero in a struct means its documented default; destroy and close accept NULL.
// Threads: plans, filters and wisdom are immutable while in use (wisdom: locked by itself) and may be shared; a stream
// belongs to one thread at a time. The library keeps no global state but the lock around FFTW's planner. It starts
// threads only inside calls of bounded problems and spectra and the helpers below (OpenMP), and with a stream whose
// options.threads is above 1; after fork() use them in the child only if the parent did not.
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

// Convolves a signal with taps, at the cost of the slice asked for: scipy.signal.convolve(x, h, mode).
// Shapes:  x [n], h [m], y [partita_slice_size(PARTITA_CONVOLVE, n, m, slice)], all of `type`.
// Ranges:  n, m >= 1; y must not overlap x or h.
// Errors:  PARTITA_ERR_ARG for NULL, zero sizes or an empty slice; PARTITA_ERR_NOMEM.
// Memory:  allocates working memory; use a plan to do without.   Time: all cores; plans each time.
// Threads: any.
PARTITA_API enum partita_status partita_convolve(enum partita_type type, void *y, const void *x, size_t n,
                                                 const void *h, size_t m, const struct partita_slice *slice);

// Cross-correlates a signal with a template: scipy.signal.correlate(x, h, mode), conjugating h.
// Shapes, ranges, errors, threads: as partita_convolve; PARTITA_RANGE counts lags.
PARTITA_API enum partita_status partita_correlate(enum partita_type type, void *y, const void *x, size_t n,
                                                  const void *h, size_t m, const struct partita_slice *slice);

// The same, divided by the lengths of the template and of the signal under it:
//   y[lag] = sum_i x[i + lag] conj(h[i]) / sqrt(sum_i |x[i + lag]|^2 * sum_i |h[i]|^2),  i < m,
// of magnitude 1 at most but for rounding; 0 where either is silent. Lengths are summed in double without differences,
// so a quiet passage after a loud one is divided by its own; the sum above may come from transforms, whose rounding
// errors are those of the loud passage beside it: for quiet passages 100 dB below take PARTITA_F64.
// The CPU's alone, as the two above: they take no options that could name a device. For one that is named,
// partita_spectrum_correlate makes the sums there.
// Memory:  besides, one double for each output or template sample, whichever are fewer.
PARTITA_API enum partita_status partita_correlate_normalised(enum partita_type type, void *y, const void *x, size_t n,
                                                             const void *h, size_t m,
                                                             const struct partita_slice *slice);

#ifdef __cplusplus
}
#endif

#endif
