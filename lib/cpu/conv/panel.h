// SPDX-License-Identifier: MIT
// Panels: the samples that some terms (input channels and taps) of a pass read for a box of
// outputs. A row of a panel belongs to one term and has no gaps between the rows, planes and images
// of the box. This is an implicit im2col, made from packed inputs (pass.h).
#ifndef PARTITA_CONV_PANEL_H
#define PARTITA_CONV_PANEL_H

#include "kernels/kernels.h"
#include "pass.h"

// Chooses a box of at most max_outputs outputs, so that all boxes together have few vectors. The
// chunk must have been chosen before.
void conv_panel_choose_box(struct conv_pass *pass, size_t max_outputs);

// Samples from one row of a panel to the next: a whole box, rounded up to an odd number of blocks
// of CONV_BLOCK_BYTES.
size_t conv_panel_stride(const struct conv_pass *pass);

// Whether the packed inputs of a box already have the layout of a panel.
bool conv_panel_is_packed(const struct conv_pass *pass);

// Bytes of a panel of that many rows.
size_t conv_panel_bytes(const struct conv_pass *pass, size_t rows);

// The packed inputs of a box.
struct conv_packed {
    const struct kernels *kernels;
    const struct conv_pass *pass;
    const struct conv_index *index;
    const void *samples;
};

// n rows of a panel from packed inputs at these offsets; zeros up to the end of the last vector.
void conv_panel_gather(const struct conv_packed *from, void *panel, const size_t *offset, size_t n);

#endif
