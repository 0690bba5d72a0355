// SPDX-License-Identifier: MIT
// Converts a caller's slice to indices of the full result.
#ifndef PARTITA_INTERNAL_SLICE_H
#define PARTITA_INTERNAL_SLICE_H

#include <partita/problem.h>

// The index in the full result, from 0, of the slice's first sample, and the number of its samples;
// 0 if the slice is empty or malformed.
struct range {
    ptrdiff_t first;
    size_t size;
};

struct range slice_resolve(enum partita_op op, size_t n, size_t m,
                           const struct partita_slice *slice);

#endif
