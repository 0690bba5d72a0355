// SPDX-License-Identifier: MIT
// Panels: what some terms (input channels and taps) of a pass read for a box of outputs, row by row
// and without gaps between the rows, planes and images of the box: an implicit im2col, made from
// packed inputs (conv_pass.h).
#ifndef PARTITA_CONV_PANEL_H
#define PARTITA_CONV_PANEL_H

#include "kernels/kernels.h"
#include "pass.h"

// Chooses a box of at most so many outputs, so that the boxes have few vectors in all. The chunk is
// chosen already.
void conv_panel_cut(struct conv_pass *pass, size_t most);

// Samples from one row of a panel to the next: the most outputs a box has, in an odd number of
// lines.
size_t conv_panel_stride(const struct conv_pass *pass);

// Whether the packed inputs of a box are a panel as they are.
bool conv_panel_is_packed(const struct conv_pass *pass);

// Bytes of a panel of so many rows.
size_t conv_panel_bytes(const struct conv_pass *pass, size_t rows);

// Outputs of the box at a place, and the extents of its planes and rows.
size_t conv_panel_extent(const struct conv_pass *pass, const struct conv_place *place,
                         size_t extent[3]);

static inline size_t conv_panel_vectors(const struct conv_pass *pass, size_t positions)
{
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    return (positions + lanes - 1) / lanes * lanes;
}

// n rows from the packed inputs of a box and their offsets; zeros up to the end of the last vector.
void conv_panel_gather(const struct kernels *kernels, const struct conv_pass *pass,
                       const struct conv_place *place, void *panel, const void *packed,
                       const size_t *offset, size_t n);

#endif
