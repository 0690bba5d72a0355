// SPDX-License-Identifier: MIT
// What the files of cpu/gemm share: its limits and costs (decision 17).
#ifndef PARTITA_GEMM_H
#define PARTITA_GEMM_H

#include "kernels/kernels.h"

struct conv_weight_method;

enum {
    // Terms of a panel: three vectors of 32 bytes of each and the taps of eight channels fill an L1
    // cache of 32 KiB; derived. With vectors of 64 bytes they do not fit, but 128 terms are slower
    // (notes/0017).
    GEMM_MAX_TERMS = 256,
    // Outputs of a box of backward weight: panel, gy and sums of a task fill an L2 cache of 1 MiB;
    // derived.
    GEMM_MAX_WEIGHT_OUTPUTS = 256,
    GEMM_STRIP_VECTORS = 3, // vectors of a rectangle of eight rows in kernels->conv
    GEMM_STRIP = GEMM_STRIP_VECTORS * CONV_BLOCK_BYTES, // bytes of each term in the L1 cache
};

static const struct {
    size_t max_outputs, min_outputs, max_channels, min_tasks, min_channels, weight_tasks;
    double transposed_gain;
} GEMM = {
    // Outputs of a box and channels of a split: a panel and its taps fill an L2 cache, and inputs
    // are packed for few splits; measured. Minimum outputs, under a tight workspace limit; chosen.
    .max_outputs = 384,
    .min_outputs = 16,
    .max_channels = 512,
    // With fewer tasks output channels are split, and inputs packed for each split; minimum
    // channels of such a split. Chosen.
    .min_tasks = 8,
    .min_channels = 128,
    .weight_tasks = 16, // backward weight: with fewer tasks the boxes are split; chosen
    // Products with output channels along the vectors are chosen if their cost is below this share
    // of the cost with positions along the vectors, since they need one more packing of panels and
    // a transposition of the sums; measured.
    .transposed_gain = 0.95,
};

// Backward weight (weight.c).
extern const struct conv_weight_method gemm_weight_method;

#endif
