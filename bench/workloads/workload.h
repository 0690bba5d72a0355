// SPDX-License-Identifier: MIT
// A workload is the data and the filter of one case; an oracle knows some samples of its result.
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "base/basics.h"

// A layer and one direction of it. The arrays x, h and y of its workload are then x, w and y
// forward; gy, w and gx backward data; x, gy and gw backward weight. Types and batch of the problem
// are the workload's.
struct layer {
    struct partita_problem problem;
    enum partita_direction direction;
};

// One case: y = h * x, as a causal stream in blocks of `block`, or as the full result of a bounded
// signal (block 0). Values in brackets are the defaults.
struct workload {
    const char *name;
    enum partita_type signal, taps;
    size_t n_frames, n_taps;
    size_t block, latency; // streams: frames a call, added delay allowed
    size_t warm;           // streams: the first frames, which fill the history and are not timed
    size_t up;             // streams of f32: interpolation, before the filter [1]
    size_t stride;         // decimation [1]
    size_t in_channels, out_channels; // [1]; every output depends on every input of its group
    size_t groups;                    // [1]
    size_t lags; // signals: correlate, and keep the lags from -lags to lags only [convolve]
    struct partita_parts imposed; // signals: sizes of parts for cpu/blocks in divisions [none]
    int repetitions;              // [the suite's]
    bool extra;                   // run only with --all, or when --case names it
    // If not NULL, one of these replaces all of the above but name and types.
    const struct layer *layer;
    const struct network *network;
    void (*shape)(struct workload *w); // changes the noise that workload_create made [leaves it]
    // Filled by workload_create:
    size_t x_bytes, h_bytes, y_bytes;
    size_t layer_batch;
    size_t timed;    // n_frames - warm
    size_t n_out;    // output frames a channel
    char *x, *h, *y; // x [in][n_frames], h [out][in/groups][n_taps], y [out][n_out]
    struct oracle *oracle;
    double *expected; // layers: the oracle's values
    size_t n_expected;
    struct network_part *parts; // networks: layers and their directions (network.h)
    size_t n_parts;
};

// A bank of independent channels as a stream, timed after its history has filled.
#define BENCH_BANK(name_, channels_, block_, n_taps_, n_timed_)                                    \
    .name = name_, .in_channels = channels_, .out_channels = channels_, .groups = channels_,       \
    .block = block_, .n_taps = n_taps_, .warm = n_taps_, .n_frames = (n_taps_) + (n_timed_)

// Fills in defaults and data. `quick` takes an eighth of the frames that are timed.
void workload_create(struct workload *w, bool quick);
void workload_destroy(struct workload *w);

// The problem of a workload that is not a layer.
struct partita_problem workload_problem(const struct workload *w);

// The problem of a signal, stream or layer without the arrays of its workload, which need not have
// been created.
struct partita_problem workload_planned(const struct workload *w);

// The cases of bench_signal, bench_stream and bench_fir.
const struct workload *signal_cases(size_t *ret_n);
const struct workload *stream_cases(size_t *ret_n);
const struct workload *fir_cases(size_t *ret_n);

// Relative L2 error of w->y against direct sums, in float64 for f32 signals and in long double for
// the others, at about a thousand positions: both ends and random ones. The sums are computed once
// and stored in the workload. y[0] is sample -delay of the result.
double oracle_error(struct workload *w, size_t delay);

// Which samples of w->y oracle_error(w, 0) reads, in memory that the caller frees; returns their
// number. Of signals and layers.
size_t oracle_positions(struct workload *w, size_t **ret_positions);

// The largest error that counts as a right answer, as in the tests: 4 u sqrt(taps) for direct sums,
// 3 u sqrt(log2 n) for transforms. That of peers is wider: it finds wrong answers, not less exact
// ones.
double gate_direct(const struct workload *w);
double gate_transform(const struct workload *w);
double gate_peer(const struct workload *w);

#endif
