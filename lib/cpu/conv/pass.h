// SPDX-License-Identifier: MIT
// A layer as passes. A pass is a correlation with stride 1 over inputs dealt out by their residues:
// forward is one pass, in which each tap reads the residue of its position modulo the stride;
// backward data is one pass for each residue of gx, with those taps that reach it. A pass is
// computed box by box: the samples that a box of outputs reads are packed into memory with zeros
// for padding, and a tap becomes one offset into it. Source: polyphase decomposition, Crochiere &
// Rabiner, Multirate Digital Signal Processing (1983), 3.3.
#ifndef PARTITA_CONV_PASS_H
#define PARTITA_CONV_PASS_H

#include "base/mem.h"
#include "core/problem.h"
#include "kernels/kernels.h"

// One axis of a pass. Output m is sample first + spread*m; tap j of the pass is tap tap_first +
// tap_spread*j of the kernel and meets input sample step*m + base + slope*j.
struct conv_axis {
    size_t size, out_size; // samples of the input and of the output array
    size_t step;
    size_t first, spread, count;
    size_t kernel, taps, tap_first, tap_spread;
    ptrdiff_t base, slope;
    size_t phases; // residues of base + slope*j modulo step that occur
    ptrdiff_t low; // least (base + slope*j) / step, rounded down
    size_t reach;  // from there to the greatest
};

// How many outputs a box holds and how their inputs are packed. Axis 0 is the slowest.
struct conv_box {
    size_t images, count[3];
    size_t extent[3];   // samples of one residue: count + reach
    size_t volume;      // of all images of one residue
    size_t channel;     // of all residues, with room for the last block to be read beyond its end
    size_t positions;   // from the first output of the box to the last, in whole blocks
    size_t boxes[3];    // along each axis
    size_t image_boxes; // along the batch
};

struct conv_pass {
    struct conv_axis axis[3];
    size_t terms;         // taps of the pass
    size_t batch, groups; // as the shape's
    size_t in, out;       // channels of a group
    bool flip;            // taps are read backwards
    size_t scalar_bytes;  // of a packed sample
    size_t sample_bytes;  // of one in x
    convert_fn *widen;  // from the latter to the former; NULL: they are the same. Set by who packs,
                        // after the cut
    size_t chunk;       // input channels packed at once
    size_t box_vectors; // what a box costs the engine besides, in vectors of positions: for
                        // conv_pass_cut
    struct conv_box box;
};

// Where a box begins: item of the batch, output along each axis.
struct conv_place {
    size_t item, at[3];
};

// Both leave chunk and box open. Axes along which nothing happens (one tap, no stride, no padding)
// are merged into the last one, so that a layer of 1x1 taps has long rows.

// The one pass of forward.
void conv_pass_forward(const struct shape *shape, struct conv_pass *ret);

// Residues of gx along each axis that any tap reaches; saturates. Pass i of their product.
size_t conv_pass_count(const struct shape *shape);
void conv_pass_backward(const struct shape *shape, size_t i, struct conv_pass *ret);

// Makes the pass behind it of one, except for its cut; false behind the last.
bool conv_pass_next(const struct shape *shape, struct conv_pass *pass);

// Passes of backward data that differ in nothing a cut or its cost depends on: how many outputs and
// taps there are and how far they reach. The first one of a kind and how many there are; returns
// the number of kinds.
enum { CONV_KINDS = 64 }; // at most: along an axis one output and one tap more or less
struct conv_kind {
    size_t first, n;
};
size_t conv_pass_kinds(const struct shape *shape, struct conv_kind ret[CONV_KINDS]);
bool conv_pass_alike(const struct conv_pass *a, const struct conv_pass *b);

// Chooses chunk and box: at most so many positions and bytes packed, as far as there is a choice.
// One box is shared by `tasks`: if they are few, boxes stay small enough to make up for it. The
// same for any number of threads.
void conv_pass_cut(struct conv_pass *pass, size_t most_positions, size_t most_bytes, size_t tasks);

// Completes the box from its images and counts.
void conv_pass_measure(struct conv_pass *pass);

size_t conv_pass_boxes(const struct conv_pass *pass);
struct conv_place conv_pass_place(const struct conv_pass *pass, size_t box);

// Outputs of the box at a place along an axis; items of the batch.
size_t conv_place_count(const struct conv_pass *pass, const struct conv_place *place, int axis);
size_t conv_place_items(const struct conv_pass *pass, const struct conv_place *place);

// Bytes of one channel that is packed.
static inline size_t conv_channel_bytes(const struct conv_pass *pass)
{
    return pass->box.channel * pass->scalar_bytes;
}

// Packs n channels from `channel` on, counted over all groups, of x [batch][groups * in][size] for
// a box.
void conv_pass_pack(const struct conv_pass *pass, const struct conv_place *place, void *packed,
                    const void *x, size_t channel, size_t n);

// One line of a packed box: from position `to` on, `extent[2]` samples of x along the last axis,
// first and every step-th, of the row that begins at sample `row` of the plane. Outside of the axis
// there are zeros.
struct conv_line {
    size_t to, row;
    ptrdiff_t first;
    bool zero; // all of it
};

// Lines of one image of a box; calls `each` for all of them, residue after residue.
size_t conv_pass_lines(const struct conv_pass *pass);
void conv_pass_each_line(const struct conv_pass *pass, const struct conv_place *place,
                         void (*each)(void *context, const struct conv_line *line), void *context);

// offset[n][terms] of n packed channels: where the inputs of the box's first output lie, tap after
// tap.
void conv_pass_offsets(const struct conv_pass *pass, size_t *offset, size_t n);

// The same in the order of the caller's taps: backwards within a channel where they are.
void conv_pass_taps_offsets(const struct conv_pass *pass, size_t *offset, size_t n);

// The kernel's tap behind a term of the pass, as an index into the caller's taps of one cell.
size_t conv_pass_tap(const struct conv_pass *pass, size_t term);

#endif
