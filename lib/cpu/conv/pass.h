// SPDX-License-Identifier: MIT
// A layer as passes. A pass is a correlation with stride 1 over inputs that are sorted by their
// residues: forward is one pass, in which each tap reads the residue of its position modulo the
// stride; backward data is one pass for each residue of gx, with the taps that reach it. A pass is
// computed box by box: the samples that a box of outputs reads are packed with zeros for padding,
// and a tap becomes one offset into the packed samples. Source: polyphase decomposition, Crochiere
// & Rabiner, Multirate Digital Signal Processing (1983), 3.3.
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
    size_t extent[3];             // samples of one residue: count + reach
    size_t volume;                // of all images of one residue
    size_t channel;               // of all residues; the last block may be read beyond its end
    size_t positions;             // from the first output of the box to the last, in whole blocks
    size_t boxes[3], image_boxes; // along each axis; along the batch
};

struct conv_pass {
    struct conv_axis axis[3];
    size_t terms;         // taps of the pass
    size_t batch, groups; // as the shape's
    size_t in, out;       // channels of a group
    bool flip;            // taps are read backwards
    size_t scalar_bytes;  // of a packed sample
    size_t sample_bytes;  // of a sample of x
    convert_fn *widen;    // from the latter to the former; NULL: they are the same
    size_t chunk;         // input channels packed at once
    struct conv_box box;
};

// One box: its first item of the batch and outputs along each axis, and how many of them it has,
// which is fewer at the end of an axis.
struct conv_index {
    size_t item, items;
    size_t at[3], count[3];
};

// Makes pass i of a direction, without chunk and box; false if it has no output. Backward weight
// has the pass of forward. Axes along which nothing happens (one tap, no stride, no padding) are
// merged into the last one, so that a layer of 1x1 taps has long rows.
bool conv_pass_make(const struct shape *shape, enum partita_direction direction, size_t i,
                    struct conv_pass *ret);

// Passes of a direction; of backward data one for each residue of gx that any tap reaches, as a
// product over the axes that saturates. Whether so many that have outputs cover all outputs.
size_t conv_pass_count(const struct shape *shape, enum partita_direction direction);
bool conv_pass_covers(const struct shape *shape, enum partita_direction direction, size_t n);

// Changes a pass of backward data into the next one, except for chunk and box; false after the
// last.
bool conv_pass_next(const struct shape *shape, struct conv_pass *pass);

// Classes of passes that differ in nothing that a box or its cost depends on: they agree in the
// numbers of outputs and taps and in reach. Fills the first pass of each class and how many there
// are; returns the number of classes.
enum { CONV_MAX_CLASSES = 64 }; // along an axis numbers of outputs and of taps differ by one
struct conv_class {
    size_t first, n;
};
size_t conv_pass_classes(const struct shape *shape, enum partita_direction direction,
                         struct conv_class ret[CONV_MAX_CLASSES]);
bool conv_pass_same_class(const struct conv_pass *a, const struct conv_pass *b);

// Chooses chunk and box: at most max_positions and max_bytes packed, where there is a choice.
// box_vectors is what a box costs the engine besides, in vectors of positions. A box is shared by
// `tasks`: few of them get smaller boxes. The same for any number of threads.
struct conv_box_limits {
    size_t max_positions, max_bytes, tasks, box_vectors;
};
void conv_pass_choose_box(struct conv_pass *pass, const struct conv_box_limits *limits);

// Completes the box from its images and counts.
void conv_pass_layout_box(struct conv_pass *pass);

// Boxes of a pass; outputs that a box has at most.
size_t conv_pass_boxes(const struct conv_pass *pass);
size_t conv_pass_box_outputs(const struct conv_pass *pass);
struct conv_index conv_pass_index(const struct conv_pass *pass, size_t box);

static inline size_t conv_index_outputs(const struct conv_index *index)
{
    return index->items * index->count[0] * index->count[1] * index->count[2];
}

// Samples that outputs fill in whole vectors.
static inline size_t conv_pass_vectors(const struct conv_pass *pass, size_t outputs)
{
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    return (outputs + lanes - 1) / lanes * lanes;
}

// Row (d, h) of item `item` of a box: which sample of the array of outputs, where `channel` counts
// over all groups, its first output is. Its outputs are axis[2].spread samples apart.
size_t conv_pass_output_row(const struct conv_pass *pass, const struct conv_index *index,
                            size_t channel, size_t item, size_t d, size_t h);

// Copies a box of one channel of gy, a pass of spread 1, to rows and planes of these extents.
void conv_pass_read_outputs(const struct conv_pass *pass, const struct conv_index *index,
                            char *packed, const size_t extent[3], const char *gy, size_t channel);

// Bytes of one packed channel.
static inline size_t conv_pass_channel_bytes(const struct conv_pass *pass)
{
    return pass->box.channel * pass->scalar_bytes;
}

// Packs n channels from `channel` on, counted over all groups, of x [batch][groups * in][size] for
// a box.
void conv_pass_pack(const struct conv_pass *pass, const struct conv_index *index, void *packed,
                    const void *x, size_t channel, size_t n);

// One row of a packed box: from position `to` on, extent[2] samples of x along the last axis, first
// and every step-th, of the row that begins at sample `row` of the plane. Outside of the axis there
// are zeros.
struct conv_row {
    size_t to, row;
    ptrdiff_t first;
    bool zero; // all of it
};

// Rows of one image of a box; calls `each` for all of them, residue after residue, where a box
// holds one image.
size_t conv_pass_rows(const struct conv_pass *pass);
void conv_pass_each_row(const struct conv_pass *pass, const struct conv_index *index,
                        void (*each)(void *context, const struct conv_row *row), void *context);

// offset[n][terms] of n packed channels: where the inputs of the box's first output lie, tap after
// tap; by tap in the order of the caller's taps.
void conv_pass_offsets(const struct conv_pass *pass, size_t *offset, size_t n);
void conv_pass_offsets_by_tap(const struct conv_pass *pass, size_t *offset, size_t n);

// The kernel's tap of a term of the pass, as an index into the caller's taps of one path.
size_t conv_pass_tap(const struct conv_pass *pass, size_t term);

#endif
