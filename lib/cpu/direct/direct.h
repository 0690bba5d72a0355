// SPDX-License-Identifier: MIT
// Shared by the files of cpu/direct: its limits and costs, and the variant for layers.
#ifndef PARTITA_DIRECT_H
#define PARTITA_DIRECT_H

#include "core/plan.h"

// "Derived": from an L1 cache of 32 KiB and an L2 cache of 1 MiB; "chosen": by hand, see decision
// 12.
static const struct {
    size_t tile, stream_chunk, max_positions, max_packed, max_terms, min_tasks, min_channels;
    size_t max_gy, weight_tasks, lanes_vectors, width, width_of_few, width_of_gradient;
    size_t max_resampled, max_taps, tap_copies;
    double loads, far_copies;
} DIRECT = {
    .tile = 1024,          // outputs of a signal computed together: x, y and taps in L1; derived
    .stream_chunk = 1024,  // input frames of a stream at once, if the stride is not larger; chosen
    .max_positions = 1024, // of a box: sums of eight channels, or four of gy, in L1; derived
    .max_packed = 256 << 10, // bytes of packed inputs: a quarter of L2; derived
    .max_terms = 512,        // summed in registers before a sum is rounded into memory; derived
    // With fewer tasks output channels are split, and inputs packed for each split; minimum
    // channels of such a split. Chosen.
    .min_tasks = 8,
    .min_channels = 64,
    .max_taps = 640 << 10, // bytes of the inputs of all taps of a box, in L2; derived
    // Inputs of so many taps for each channel of gy cost as much as reading gy in place gains;
    // measured.
    .tap_copies = 3,
    .max_gy = 64,       // channels of gy packed at once; derived
    .weight_tasks = 32, // backward weight: with fewer tasks the boxes are split; chosen
    .lanes_vectors = 8, // vectors of positions that take as long as adding a sum's lanes; measured
    // Vectors of a kernel's rectangle of eight channels, of fewer channels, and of the four
    // channels of a gradient. `loads`: loads per vector of inputs, which are rarely aligned.
    .width = 3,
    .width_of_few = 6,
    .width_of_gradient = 6,
    .loads = 2,
    // Copies of a packed sample that waiting for it costs where nothing else waits; measured.
    .far_copies = 4,
    .max_resampled = 8 << 10, // resampling: samples that the outputs of a tile read; derived
};

// Outputs first .. first+n-1 of a channel of a bounded signal, to which an input of its group is
// added.
struct direct_tile {
    const struct partita_filter *filter;
    size_t channel, in; // output channel; input of the group
    const char *x;      // the input's signal
    char *y, *scratch;
    size_t first, n;
};

// Layers, in all directions and of any rank (layer.c): everything but streams, complex types and
// signals of few channels. Backward weight is in weight.c.
extern const struct conv_methods direct_layer_methods;
extern const struct conv_weight_method direct_weight_method;

#endif
