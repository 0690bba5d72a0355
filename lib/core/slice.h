// SPDX-License-Identifier: MIT
// What a caller's slice means.
#ifndef PARTITA_INTERNAL_SLICE_H
#define PARTITA_INTERNAL_SLICE_H

#include <partita/slice.h>

// Index of the full result's first sample that a slice starts with, counted from 0, and how many it
// takes; 0 if it is empty or malformed.
struct range {
    ptrdiff_t first;
    size_t size;
};

struct range slice_resolve(enum partita_op op, size_t n, size_t m,
                           const struct partita_slice *slice);

#endif
