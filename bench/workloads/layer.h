// SPDX-License-Identifier: MIT
// Layers as workloads: their sizes, and the table of named cases.
#ifndef BENCH_LAYER_H
#define BENCH_LAYER_H

#include "runner/runner.h"

// One axis of three, defaults filled in.
struct layer_axis {
    size_t kernel, size, stride, dilation, out;
    ptrdiff_t pad;
};

struct layer_sizes {
    size_t batch, in, out, group_in, group_out; // channels
    struct layer_axis axis[3];                  // those beyond the rank have one sample and one tap
    size_t plane, outputs, taps;                // products over the axes
};

struct layer_sizes layer_sizes(const struct partita_problem *problem);

// Multiply-adds of the direct sums.
size_t layer_terms(const struct layer_sizes *s);

// A case that belongs to a network: `depth` layers of it are like this one.
struct layer_case {
    struct workload workload;
    struct layer layer;
    char name[48], network[32]; // network: of the rows summed by tools/bench-table.py, "" if none
    unsigned depth;
};

// All cases in all directions, in memory that lives as long as the program. The ones that take long are `extra`.
struct layer_case *layer_cases(size_t *ret_n);

#endif
