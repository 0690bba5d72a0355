// SPDX-License-Identifier: MIT
// Which part of a full result to compute.
#ifndef PARTITA_SLICE_H
#define PARTITA_SLICE_H

#include <partita/problem.h>

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

// The problem whose outputs are a slice of x[n] with h[m]: for callers of partita_convolve or partita_correlate who
// want options, a device for example. Plan it and call partita_forward_once. Errors:  PARTITA_ERR_ARG if the slice is
// empty or malformed, or n or m is 0. Threads: any.
PARTITA_API enum partita_status partita_slice_problem(enum partita_op op, enum partita_type type, size_t n, size_t m,
                                                      const struct partita_slice *slice,
                                                      struct partita_problem *ret_problem);

#ifdef __cplusplus
}
#endif

#endif
