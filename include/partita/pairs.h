// SPDX-License-Identifier: MIT
// Correlations of many pairs of signals at lags from -max_lag to max_lag, summed over the samples
// of one window or of many.
//
//   const size_t list[3][2] = {{0, 1}, {0, 2}, {1, 2}};
//   struct partita_pairs_options array = {
//       .signals = 3, .max_lag = 1000, .pairs = list[0], .n_pairs = 3};
//   partita_pairs_create(&array, &pairs);
//   partita_pairs_add(pairs, x, n, 0, n, 0); // float x[3][n]
//   partita_pairs_read(pairs, y, 1);         // float y[3][2001]
//
// Result p is that of pair p = (i, j):
//
//   y[p][max_lag + l] = scale * sum over t of  x_i[t] * x_j[t + l],   -max_lag <= l <= max_lag
//
// where samples outside the window are zeros. A lag above 0 means that signal j is later than i.
// Result -l of (j, i) is that of (i, j) at l.
//
// Scheme: a window is cut into blocks. A block of every signal is transformed twice, alone and with
// max_lag samples before and after it; the products of these spectra are summed over the blocks,
// for each pair. Each pair is transformed back once, when its result is read.
//
// Rounding: with the unit roundoff u of the type, the error of a result relative to the norms of
// its two signals is that of a transform, some u sqrt(log2 N), and that of a sum of n blocks of
// 4 max_lag samples or more, 16 at a time: at most u (16 + n / 16), and typically the square root
// of that times u.
//
// Bits: results do not depend on the number of threads, on the other pairs and signals, or on how a
// window is cut into calls whose n_frames are multiples of options.block.
#ifndef PARTITA_PAIRS_H
#define PARTITA_PAIRS_H

#include <partita/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

struct partita_pairs;

// Plain data; zero-initialise it and set what differs; a zero means the default given in brackets.
struct partita_pairs_options {
    enum partita_type type; // of samples and results: f32 or f64 [f32]
    size_t signals;         // 1 to 2^20, no default
    size_t max_lag;         // at most 2^24 [0]
    // [n_pairs][2] numbers of signals, copied; fast where pairs of one first signal and of second
    // ones that follow each other stand together.
    const size_t *pairs;
    size_t n_pairs;
    // Samples of a block, at most 2^24. Short windows need no longer one [some 4 max_lag and more].
    size_t block;
    int threads;                        // [OpenMP's default: all cores]
    struct partita_log log;             // [none, or what PARTITA_LOG says]
    struct partita_allocator allocator; // [C library]
};

// Creates sums of pairs, which are zero.
// Errors:  PARTITA_ERR_ARG for a field out of range (the log line names it);
//          PARTITA_ERR_UNSUPPORTED for a field that the library does not know; PARTITA_ERR_NOMEM.
// Memory:  N scalars for each pair and 32 N for each signal, N at most 8 max_lag + 1024, or with a
//          block 4/3 (block + 2 max_lag) + 16; the length of windows has no influence.
// Threads: any.
// Source:  Welch, The use of fast Fourier transform for the estimation of power spectra, IEEE
//          Transactions on Audio and Electroacoustics 15 (1967), for sums of products of spectra.
PARTITA_API enum partita_status
partita_pairs_create_sized(const struct partita_pairs_options *options, size_t options_bytes,
                           struct partita_pairs **ret_pairs);
static inline enum partita_status partita_pairs_create(const struct partita_pairs_options *options,
                                                       struct partita_pairs **ret_pairs)
{
    return partita_pairs_create_sized(options, sizeof *options, ret_pairs);
}

// Releases sums of pairs. NULL is allowed.
// Threads: any; no thread may still use them.
PARTITA_API void partita_pairs_destroy(struct partita_pairs *pairs);

// Adds the products of a window, or of a part of one:
//
//   sum over t from 0 to n_frames - 1 of  x_i[t] * x_j[t + l]
//
// where x_j is zero before -before and from n_frames + after on. A window has neither. A part of a
// window has max_lag samples on both sides, or as many as the window has.
// Shapes:  x [signals], the signals pitch samples apart, aligned to its scalar; it points to t = 0.
// Ranges:  a sample that is infinite or NaN makes the results of all pairs of its signal infinite
//          or NaN, until they are read, and no others.
// Errors:  PARTITA_ERR_ARG for NULL, or samples that are not aligned.
// Memory:  none.
// Threads: one at a time.
PARTITA_API enum partita_status partita_pairs_add(struct partita_pairs *pairs, const void *x,
                                                  size_t pitch, size_t before, size_t n_frames,
                                                  size_t after);

// Writes the results of all windows, and sets the sums to zero.
// Shapes:  y [n_pairs][2 * max_lag + 1], aligned to its scalar.
// Errors:  PARTITA_ERR_ARG for NULL, also without pairs, or for y that is not aligned.
// Memory, Threads: as partita_pairs_add.
PARTITA_API enum partita_status partita_pairs_read(struct partita_pairs *pairs, void *y,
                                                   double scale);

#ifdef __cplusplus
}
#endif

#endif
