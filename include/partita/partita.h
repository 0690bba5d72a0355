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
// threads only inside partita_forward and the helpers below (OpenMP), and with a stream whose options.threads is above
// 1; after fork() use them in the child only if the parent did not.
#ifndef PARTITA_PARTITA_H
#define PARTITA_PARTITA_H

#include <partita/layer.h>
#include <partita/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

// Which part of a full result to compute, SciPy's words.
enum partita_mode {
    PARTITA_RANGE = 0, // [first, last) of the full result, which is zero outside itself
    PARTITA_FULL,      // everything: n + m - 1 samples
    PARTITA_SAME,      // n samples, centred on the full result
    PARTITA_VALID,     // where both overlap completely: max(n, m) - min(n, m) + 1 samples
};

// A slice of a result; NULL or all zeros means PARTITA_FULL. `first` and `last` count only in PARTITA_RANGE. For
// convolution they index the full result from 0; for correlation they are lags: y[lag] = sum_i x[i + lag] conj(h[i]),
// the full result holding lags -(m-1) to n-1.
struct partita_slice {
    enum partita_mode mode;
    ptrdiff_t first, last;
};

// Samples that a slice of x[n] with h[m] holds; 0 if it is empty or malformed, or n or m is 0. Any thread.
PARTITA_API size_t partita_slice_size(enum partita_op op, size_t n, size_t m, const struct partita_slice *slice);

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

#ifdef __cplusplus
}
#endif

#endif
