// SPDX-License-Identifier: MIT
// Shared by the files of cpu/gemm: its limits and costs (decision 17).
#ifndef PARTITA_GEMM_H
#define PARTITA_GEMM_H

#include "base/sizes.h"
#include "cpu/conv/passes.h"
#include "kernels/kernels.h"
#include "product/product.h"

struct conv_weight_method;

enum {
    // Terms of a panel: three vectors of 32 bytes of each and the taps of eight channels fill an L1
    // cache of 32 KiB; derived. With vectors of 64 bytes they do not fit, but 128 terms are slower
    // (docs/notes/0017-matrix-products.md).
    GEMM_MAX_TERMS = 256,
    // Outputs of a box: a panel and its taps fill an L2 cache, and inputs are packed for few
    // splits; measured.
    GEMM_MAX_OUTPUTS = 400,
    // Of backward weight, for panels or for splits of more than GEMM_WEIGHT_CHANNELS channels: with
    // more of both, gy, sums and prefetched data do not fit an L2 cache of 1 MiB; measured.
    GEMM_MAX_WEIGHT_OUTPUTS = 256,
    GEMM_WEIGHT_CHANNELS = 256,
    // Terms of a chunk where panels are not packed, as many as the predicted error allows
    // (conv/cost.c). They are summed in segments of GEMM_MAX_TERMS.
    GEMM_LONG_TERMS = 512,
};

static const struct {
    size_t min_outputs, max_channels, min_tasks, min_channels, weight_tasks;
    size_t max_spread, max_prepared;
    double transposed_gain;
} GEMM = {
    // Minimum outputs of a box, under a tight workspace limit; chosen. Channels of a split;
    // measured.
    .min_outputs = 16,
    .max_channels = 512,
    // With fewer tasks output channels are split, and inputs packed for each split; minimum
    // channels of such a split. Chosen.
    .min_tasks = 8,
    .min_channels = 128,
    .weight_tasks = 8, // backward weight: with fewer tasks the boxes are split; measured
    // Of rows that are a plane apart: their number times the largest power of 2 that divides the
    // plane's bytes, with which they take half of an L2 cache; derived.
    .max_spread = 512 << 10,
    // Bytes of gy that are transposed before the tasks of backward weight; chosen: they stay in the
    // last cache.
    .max_prepared = 8 << 20,
    // Products with output channels along the vectors are chosen if their cost is below this share
    // of the cost with positions along the vectors, since they need one more packing of panels and
    // a transposition of the sums; measured.
    .transposed_gain = 0.95,
};

// Panels (panel.c): the samples that some terms (input channels and taps) of a pass read for a box
// of outputs. A row of a panel belongs to one term and has no gaps between the rows, planes and
// images of the box. This is an implicit im2col, made from packed inputs (conv/pass.h).

// Chooses a box of at most max_outputs outputs, so that all boxes together have few vectors. The
// chunk must have been chosen before.
void gemm_panel_choose_box(struct conv_pass *pass, size_t max_outputs);

// Samples from one row of a panel to the next: a whole box, rounded up to an odd number of blocks
// of CONV_BLOCK_BYTES.
size_t gemm_panel_stride(const struct conv_pass *pass);

// Whether the packed inputs of a box already have the layout of a panel.
bool gemm_panel_is_packed(const struct conv_pass *pass);

// Bytes of a panel of that many rows.
size_t gemm_panel_bytes(const struct conv_pass *pass, size_t rows);

// The packed inputs of a box.
struct gemm_packed {
    const struct kernels *kernels;
    const struct conv_pass *pass;
    const struct conv_index *index;
    const void *samples;
};

// n rows of a panel from packed inputs at these offsets; zeros up to the end of the last vector.
void gemm_panel_gather(const struct gemm_packed *from, void *panel, const size_t *offset, size_t n);

// Adjacent channels of an array at a box, counted over all groups.
struct gemm_planes {
    const void *array;
    const struct conv_index *index;
    size_t channel, n;
};

// Prefetches the samples of an array of inputs, or of outputs, at a box (prefetch.c).
void gemm_prefetch(struct product_prefetch *prefetch, const struct conv_pass *pass,
                   const struct gemm_planes *planes, bool outputs);

// Whether channels come last and the arrays are the matrices: layers of one tap. Nothing is packed
// or transposed, and sums are added up in the results.
bool gemm_is_rows(const struct conv_pass *pass);

// One worker's memory.
struct gemm_scratch {
    char *packed; // inputs of a chunk
    char *panel;  // [term][position]; NULL where the packed inputs are one
    char *sums;   // [channel][position], transposed [position][channel]; NULL: in the results
    // Transposed:
    char *groups;  // the panel as [eight positions][term][position]
    char *columns; // sums of a block of channels as [channel][position]
};

// Whether output channels lie along the vectors instead of positions: small maps fill the vectors
// worse than many channels do. Such channels are packed in blocks of a strip.
static inline bool gemm_is_transposed(const struct conv_layout *layout)
{
    return layout->oc_block > CONV_CHANNELS;
}

// The layout of a pass (layout.c), and its memory. A worker's memory is taken from the arena.
void gemm_layout(const struct request *request, struct conv_layout *layout);
void gemm_count_work(const struct conv_layout *layout, struct conv_work *work);
struct gemm_scratch gemm_layout_scratch(const struct conv_layout *layout, struct arena *arena);
size_t gemm_worker_bytes(const struct conv_layout *layout);

// Samples from one position's sums to the next when transposed, an odd number of blocks.
size_t gemm_sums_stride(const struct conv_layout *layout);

// Whether the panels of a box are where they are: samples adjacent, channels a plane apart, whose
// rows do not crowd a few sets of the L2 cache.
bool gemm_layout_is_in_place(const struct conv_layout *layout);

// Whether its sums are added up in the array of results: whole vectors, in rows a plane apart.
bool gemm_layout_sums_in_place(const struct conv_layout *layout);

// Backward weight (weight.c).
extern const struct conv_weight_method gemm_weight_method;

#endif
