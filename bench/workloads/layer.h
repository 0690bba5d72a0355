// SPDX-License-Identifier: MIT
// Layers as workloads: sizes, data, oracle, and the table of named cases.
#ifndef BENCH_LAYER_H
#define BENCH_LAYER_H

#include "workloads/workload.h"

// One of three axes, defaults filled in.
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

// The problem of a workload that is a layer, types and batch filled in.
struct partita_problem layer_problem(const struct workload *w);

// Whether samples have two bytes.
static inline bool layer_is_half(enum partita_type type)
{
    return type == PARTITA_F16 || type == PARTITA_BF16;
}

// workload_create, oracle_positions, oracle_error and the gate of direct sums, for layers;
// layer_measure sets sizes only.
void layer_create(struct workload *w, bool quick);
void layer_measure(struct workload *w, bool quick);
size_t layer_positions(struct workload *w, size_t **ret_positions);
double layer_error(struct workload *w);
double gate_layer(const struct workload *w);

// One case. A network that it belongs to has `depth` layers of this shape.
struct layer_case {
    struct workload workload;
    struct layer layer;
    char name[48], network[32]; // network: of the rows that tools/bench_table.py sums, "" if none
    unsigned depth;
};

// The suffix of a case's name for each direction.
enum { N_DIRECTIONS = 3 };
extern const struct direction_name {
    const char *name;
    enum partita_direction direction;
} direction_names[N_DIRECTIONS];

// All cases in all directions, in memory that lives as long as the program. Those that take long
// are `extra`.
struct layer_case *layer_cases(size_t *ret_n);

// The same layers, of sweeps those with kernels of the standard sizes, each with 1, 16 and 64
// images, and channels first and last. The oracle knows no results with channels last.
struct layer_case *layer_pick_cases(size_t *ret_n);

#endif
