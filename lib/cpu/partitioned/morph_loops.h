// SPDX-License-Identifier: MIT
// The inner loop of morphs, which sums spectra of filters with weights.
#ifndef PARTITA_PARTITIONED_MORPH_LOOPS_H
#define PARTITA_PARTITIONED_MORPH_LOOPS_H

#include <stddef.h>

#include "base/cpu.h"

enum { MORPH_TERMS = 8 };

struct morph_term {
    const void *x;
    size_t pitch; // from one line to the next, in lines
    double weight;
};

struct morph_operands {
    void *y, *change;
    size_t y_pitch, change_pitch, n_terms;
    struct morph_term term[MORPH_TERMS];
};

struct morph_loops {
    // Line by line: y = sum over k < n_terms of weight_k * x_k, in order of k, with weights rounded
    // to the precision of the lines, and change = that sum minus the former y. All lines are
    // 64-byte aligned; none overlap.
    void (*sum)(const struct morph_operands *operands, size_t n_lines);
};

// Never NULL: as kernels_select.
const struct morph_loops *morph_loops_of(enum cpu_isa isa, bool f64);

#endif
