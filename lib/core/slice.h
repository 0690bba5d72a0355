// SPDX-License-Identifier: MIT
// Converts a caller's slice to indices of the full result.
#ifndef PARTITA_INTERNAL_SLICE_H
#define PARTITA_INTERNAL_SLICE_H

#include "base/log.h"
#include "base/ranges.h"

// Indices in the full result, from 0; size 0 if the slice is empty or malformed.
struct range slice_resolve(enum partita_op op, size_t n, size_t m,
                           const struct partita_slice *slice);

// Says that a slice is empty or malformed.
enum partita_status slice_error(const struct partita_log *log, size_t n, size_t m);

// A slice of x[n] convolved or correlated with h[m], as partita_convolve and partita_correlate
// define it.
struct one_shot {
    enum partita_op op;
    enum partita_type type;
    const void *x, *h;
    size_t n, m;
    struct range range; // of the full result
};

// Sets the range. False if the slice or an array is wrong, as the log says, for the public
// function of this name.
bool one_shot_resolve(struct one_shot *call, const char *function, const void *y,
                      const struct partita_slice *slice, const struct partita_log *log);

#endif
