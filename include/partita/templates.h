// SPDX-License-Identifier: MIT
// Finds templates in a signal: thousands of short recordings of several channels, by the sum over
// channels of their normalised correlations. Only matches leave.
//
//   struct partita_match_options search = {.templates = 1, .channels = 3, .samples = events,
//                                          .lengths = lengths, .delays = moveouts, .mad = 8,
//                                          .zero_mean = true, .report = print_match};
//   partita_match_templates(&search, x, n);
//
// The correlation of a template h with channel c, and the value of the template at time t, are
//
//   r[c][s]  = sum over i of h[c][i] * x[c][s + i]  /  (norm of h[c] * norm of x[c][s ..])
//   value[t] = sum over c of weights[c] * r[c][t + delays[c]]
//
// where the norm of x is that of the samples under the template; with zero_mean both have their
// mean subtracted. Values exist from time 0 on, where the signal has all samples. r is 0 where the
// signal is silent or, with zero_mean, constant. There is no value where a sample under the
// template is infinite or NaN, which is how gaps are given; other values are not affected.
//
// A match is a value whose magnitude reaches the threshold, is larger than those of all times that
// are earlier by less than the distance, and not smaller than those that are later by less. (A
// smaller maximum beside it is no match, even if a third one is between them and larger.)
//
// Chunks: the signal is split evenly into chunks. With `mad` the threshold of a chunk is that
// multiple of the median magnitude of its values, without those that are exactly 0. (Of values
// around 0 that is the median absolute deviation.)
//
// Scheme: the signal of a chunk is transformed in blocks, once for all templates, and multiplied
// by the spectrum of each template. Norms are running sums in double that begin anew in
// each block: they do not drift.
//
// Bits: values do not depend on chunks, on the number of threads, or on templates other than the
// longest one, which determines the blocks.
#ifndef PARTITA_TEMPLATES_H
#define PARTITA_TEMPLATES_H

#include <partita/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

// Where a template is in the signal.
struct partita_match {
    size_t template_index;
    size_t time; // of the template's first sample without delay
    double value;
};

// Templates and how they are searched. Plain data; zero-initialise it and set what differs; a zero
// means the default given in brackets.
struct partita_match_options {
    size_t templates, channels;  // channels: 1 to 2^16 [0, 1]
    const float *const *samples; // [templates] pointers to [channels][length], no default
    const size_t *lengths;       // [templates], 1 to 2^24, no default
    const size_t *delays;        // [templates][channels] samples, at most 2^24 [0]
    const double *weights;       // [templates][channels] to 2^64; 0: not read [1 / channels]
    bool zero_mean;              // subtract means from template and signal
    double threshold, mad;       // at least one is above 0; of both the larger threshold holds
    size_t distance;             // of matches of one template, to 2^24 [the longest length]
    size_t chunk;                // samples at most [2^18]
    int threads;                 // that share the templates [1]
    // Takes a match, of a template in order of time: on any of the threads, but one call at a time.
    // No default.
    void (*report)(void *context, const struct partita_match *match);
    void *context;
    struct partita_log log;             // [none, or what PARTITA_LOG says]
    struct partita_allocator allocator; // [C library]
};

// Finds all matches of all templates.
// Shapes:  x [channels] pointers to n samples.
// Ranges:  squares of samples are in the range of float. A value has the error of a transform,
//          about 2^-24 times the norm of the signal in a block of the transform, of 12 times the
//          longest template, divided by that under the template. Where the latter is below 2^-18 of
//          the largest in the block, r is 0.
// Errors:  PARTITA_ERR_ARG for a field out of range, or a template that is not finite or is silent
//          (with zero_mean: constant) in a channel that it reads; the log line names it.
//          PARTITA_ERR_UNSUPPORTED for a field that the library does not know; PARTITA_ERR_NOMEM.
// Memory:  for each channel and sample of a chunk 4 bytes and 4 more for each thread; for each
//          thread and sample of a chunk 4; for each template and channel some 50 times the longest
//          template, at least 16 KiB.
// Time:    for each template, channel and block a product and an inverse transform; templates of
//          equal length that follow each other share their norms.
// Threads: any.
// Source:  Gibbons and Ringdal, The detection of low magnitude seismic events using array-based
//          waveform correlation, Geophysical Journal International 165 (2006).
PARTITA_API enum partita_status
partita_match_templates_sized(const struct partita_match_options *options, size_t options_bytes,
                              const float *const *x, size_t n);
static inline enum partita_status
partita_match_templates(const struct partita_match_options *options, const float *const *x,
                        size_t n)
{
    return partita_match_templates_sized(options, sizeof *options, x, n);
}

#ifdef __cplusplus
}
#endif

#endif
