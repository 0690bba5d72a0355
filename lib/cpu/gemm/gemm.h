// SPDX-License-Identifier: MIT
// What the files of cpu/gemm share: its limits and costs (decision 17).
#ifndef PARTITA_GEMM_H
#define PARTITA_GEMM_H

#include "kernels/kernels.h"

struct conv_weight_method;

enum {
    // Terms of a panel: three vectors of each and the taps of eight channels fill an L1 cache of
    // 32 KiB; derived.
    GEMM_MAX_TERMS = 256,
    // Outputs of a box of backward weight: panel, gy and sums of a task fill an L2 cache of 1 MiB;
    // derived.
    GEMM_MAX_WEIGHT_OUTPUTS = 256,
    GEMM_STRIP_VECTORS = 3, // of a rectangle of eight rows: as kernels->conv has them
    GEMM_STRIP = GEMM_STRIP_VECTORS * CONV_BLOCK_BYTES, // bytes of each term in the L1 cache
};

struct gemm_limits {
    // Outputs of a box, at most: a panel and the sums of a split fill an L2 cache with the taps
    // that they meet; derived. At least, under a tight limit of the workspace; typed.
    size_t max_outputs, min_outputs;
    size_t max_channels; // output channels of a split; derived as max_outputs
    size_t min_tasks;    // fewer tasks pack the same inputs again for ..
    size_t min_channels; // .. splits of so many output channels; typed
    size_t weight_tasks; // backward weight: fewer tasks split the boxes; typed
    // Products with output channels along the vectors against those with positions, from which on
    // the former are worth packing panels once more and transposing sums; measured.
    double transposed_gain;
};
static const struct gemm_limits GEMM = {
    .max_outputs = 384,
    .min_outputs = 16,
    .max_channels = 256,
    .min_tasks = 8,
    .min_channels = 128,
    .weight_tasks = 16,
    .transposed_gain = 0.95,
};

// Backward weight (weight.c).
extern const struct conv_weight_method gemm_weight_method;

#endif
