// SPDX-License-Identifier: MIT
// What the files of cpu/direct share: its limits and costs, and the variant for layers.
#ifndef PARTITA_DIRECT_H
#define PARTITA_DIRECT_H

#include "core/plan.h"

// "Derived": from an L1 cache of 32 KiB and an L2 cache of 1 MiB; "typed": chosen, see decision 12.
struct direct_limits {
    size_t tile;         // outputs of a signal at once: x, y and taps of a tile stay in L1; derived
    size_t stream_chunk; // input frames of a stream at once, if the stride is not larger; typed
    size_t max_positions; // of a box: sums of eight channels, or four of gy, stay in L1; derived
    size_t max_packed;    // bytes of packed inputs: a quarter of L2; derived
    size_t max_terms;     // summed in registers before a sum is rounded into memory; derived
    size_t min_tasks;     // fewer tasks pack the same inputs again for ..
    size_t min_channels;  // .. splits of so many output channels; typed
    size_t max_gy;        // channels of gy packed at once; derived
    size_t weight_tasks;  // backward weight: fewer tasks split the boxes; typed
    // Vectors of positions that adding the lanes of a gradient's sum takes as long as; measured.
    size_t lanes_vectors;
    // Vectors of a rectangle of eight channels, of fewer channels, and of a gradient's four: as the
    // kernels have them. Loads of each vector of inputs, which are rarely aligned.
    size_t width, width_of_few, width_of_gradient;
    double loads;
};
static const struct direct_limits DIRECT = {
    .tile = 1024,
    .stream_chunk = 1024,
    .max_positions = 1024,
    .max_packed = 256 << 10,
    .max_terms = 512,
    .min_tasks = 8,
    .min_channels = 64,
    .max_gy = 64,
    .weight_tasks = 32,
    .lanes_vectors = 8,
    .width = 3,
    .width_of_few = 6,
    .width_of_gradient = 6,
    .loads = 2,
};

// Layers, in all directions and of any rank (layer.c): everything but streams, complex types and
// signals of few channels. As the functions of struct engine of the same names.
void direct_layer_estimate(const struct request *request, struct estimate *ret);
enum partita_status direct_layer_plan_create(struct partita_plan *plan,
                                             const struct request *request);
void direct_layer_run(const struct partita_plan *plan, const struct partita_filter *filter,
                      const struct operands *operands, void *workspace);

// Backward weight of layers (weight.c).
extern const struct conv_weight_method direct_weight_method;

#endif
