// SPDX-License-Identifier: MIT
// Normalised correlation of a stream: divides each result by the norms of the template and of the
// signal under it, as partita_correlate_normalised does for signals in memory. With several inputs
// for one output (a matrix) the norms are those of all of them together. Magnitudes are at most 1,
// except for rounding. With zero_mean the norms are those of differences to the means: that of each
// input under the template, and that of the template, which template_subtract_means has subtracted.
//
// What a result is divided by depends only on the samples under the template and on their
// positions: sums begin at multiples of the template's length, counted from frame 0 of the signal.
// The division adds a relative error of at most (c / 2 + 8) 2^-53 for c inputs of an output,
// whatever the length, and with zero_mean (c / 2 + 9 n + 15) 2^-53 for n frames (see
// window_norm.c).
#ifndef PARTITA_APPS_WINDOW_NORM_H
#define PARTITA_APPS_WINDOW_NORM_H

#include <partita/problem.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

// For zero_mean: subtracts its mean from each of `rows` templates, whose type is f64 or cf64.
void template_subtract_means(void *template, enum partita_type type, size_t rows, size_t length);

struct window_norm;

struct window_norm_request {
    enum partita_type signal, template_type;
    const void *template; // [out_channels][in_channels/groups][length]
    size_t length, in_channels, out_channels, groups;
    int64_t origin; // frame of the signal that is fed first
    int64_t wanted; // frame that is last under the template in the first result to divide
    size_t stride;  // frames from one result to the next
    bool zero_mean; // divides by what varies; a window that varies by less than 2^-40 is constant
};

bool window_norm_open(struct window_norm **ret, const struct window_norm_request *request,
                      struct fault *fault);

// Adds the next n interleaved frames of the signal; NULL: silence. Keeps a double of each group for
// every result that is not divided yet.
bool window_norm_feed(struct window_norm *norm, const void *x, size_t n, struct fault *fault);

// Divides the next n interleaved frames of results, whose signal has been fed. They become 0 where
// the template or the signal under it is silent, with zero_mean constant.
void window_norm_divide(struct window_norm *norm, void *y, size_t n);
void window_norm_close(struct window_norm *norm); // NULL is allowed

#endif
