// SPDX-License-Identifier: MIT
// Panels: the samples that some terms (input channels and taps) of a pass read for a box of
// outputs, as one operand of a matrix product. A row of a panel belongs to one term and has no gaps
// between the rows, planes and images of the box. This is an implicit im2col, made from packed
// inputs (pass.h). Also the limits of these products (decision 17).
#ifndef PARTITA_CONV_PANEL_H
#define PARTITA_CONV_PANEL_H

#include "base/sizes.h"
#include "pass.h"
#include "product/product.h"

enum {
    // Terms of a panel: three vectors of 32 bytes of each and the taps of eight channels fill an L1
    // cache of 32 KiB; derived. With vectors of 64 bytes they do not fit, but 128 terms are slower
    // (docs/notes/0017-matrix-products.md).
    PANEL_TERMS = 256,
    // Outputs of a box: a panel and its taps fill an L2 cache, and inputs are packed for few
    // splits; measured. At least so many under a tight workspace limit; chosen.
    PANEL_OUTPUTS = 400,
    PANEL_MIN_OUTPUTS = 16,
    // Output channels of a split; measured.
    PANEL_CHANNELS = 512,
    // Of rows that are a plane apart: their number times the largest power of 2 that divides the
    // plane's bytes, with which they take half of an L2 cache; derived.
    PANEL_MAX_SPREAD = 512 << 10,
};

// The operands of a product are exchanged if its multiply-adds are then below this share of those
// without, since one more operand is transposed; measured.
#define PANEL_EXCHANGE 0.95

// Whether products may be those of pairs of bf16 (kernels->conv_pairs).
static inline bool panel_pairs(const struct request *request)
{
    return request->model->pairs && request->shape->signal == PARTITA_BF16;
}

// Chooses a box of at most max_outputs outputs, so that all boxes together have few vectors. The
// chunk must have been chosen before.
void panel_choose_box(struct conv_pass *pass, size_t max_outputs);

// n scalars in an odd number of blocks: rows that are so far apart do not fall into the same sets
// of a cache.
static inline size_t panel_row(const struct conv_pass *pass, size_t n)
{
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    return (ceil_div(n, lanes) | 1) * lanes;
}

// Scalars from one row of a panel to the next: a whole box.
static inline size_t panel_stride(const struct conv_pass *pass)
{
    return panel_row(pass, conv_pass_box_outputs(pass));
}

// Whether the packed inputs of a box already have the layout of a panel.
bool panel_is_packed(const struct conv_pass *pass);

// Whether `rows` rows that are `step` scalars apart crowd only a few sets of a cache.
static inline bool panel_crowds(const struct conv_pass *pass, size_t rows, size_t step)
{
    const size_t bytes = step * pass->scalar_bytes;
    return rows * (bytes & -bytes) > PANEL_MAX_SPREAD;
}

// Bytes of a panel of that many rows, with the block that the last row of a box may write beyond
// its end.
size_t panel_bytes(const struct conv_pass *pass, size_t rows);

// The packed inputs of a box.
struct panel_source {
    const struct kernels *kernels;
    const struct conv_pass *pass;
    const struct conv_index *index;
    const char *packed;
};

// n rows of a panel from packed inputs at these offsets; zeros up to the end of the last vector.
void panel_gather(const struct panel_source *from, char *panel, const size_t *offset, size_t n);

// Prefetches adjacent channels of an array at a box of one tap.
void panel_prefetch(struct product_prefetch *prefetch, const struct conv_pass *pass,
                    const struct conv_index *index, const char *from,
                    const struct sample_strides *strides, const size_t channels[2]);

// Multiply-adds of a term of a product with n scalars along the vectors and that many rows.
double panel_products(const struct conv_pass *pass, size_t n, size_t rows);

#endif
