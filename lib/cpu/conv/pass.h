// SPDX-License-Identifier: MIT
// A layer as passes. A pass is a correlation with stride 1 over inputs that are grouped by their
// residues modulo the stride: forward is one pass, in which each tap reads the residue of its
// position modulo the stride; backward data is one pass for each residue of gx, with the taps that
// contribute to it. A pass is computed box by box: the samples that a box of outputs reads are
// packed with zeros for padding, and a tap becomes one offset into the packed samples. Source:
// polyphase decomposition, Crochiere & Rabiner, Multirate Digital Signal Processing (1983), 3.3.
#ifndef PARTITA_CONV_PASS_H
#define PARTITA_CONV_PASS_H

#include "base/mem.h"
#include "core/problem.h"
#include "kernels/kernels.h"

struct partita_plan;

// One axis of a pass. Output m is sample first + spread*m; tap j of the pass is tap tap_first +
// tap_spread*j of the kernel and reads input sample step*m + base + slope*j.
struct conv_axis {
    size_t size, out_size; // samples of the input and of the output array
    size_t step;
    size_t first, spread, count;
    size_t kernel, taps, tap_first, tap_spread;
    ptrdiff_t base, slope;
    size_t residues; // number of residues of base + slope*j modulo step that occur
    ptrdiff_t low;   // least (base + slope*j) / step, rounded down
    size_t reach;    // difference between the greatest and `low`
};

// How many outputs a box holds and how their inputs are packed. Axis 0 is the slowest.
struct conv_box {
    size_t images, count[3];
    size_t extent[3]; // samples of one residue: count + reach
    size_t volume;    // of all images of one residue
    size_t channel;   // of all residues, with the reads of kernels beyond its last block
    size_t positions; // from the first output of the box to the last, in whole blocks
    size_t boxes[3], image_boxes; // along each axis; along the batch
};

struct conv_pass {
    struct conv_axis axis[3];
    size_t terms;                    // number of taps of the pass
    size_t batch, groups;            // as the shape's
    size_t in, out;                  // channels of a group
    bool pairs;                      // an input channel is a pair of adjacent ones of bf16
    bool odd;                        // .. and the last one a channel and zeros
    bool flip;                       // taps are read backwards
    size_t scalar_bytes;             // of a packed sample
    size_t sample_bytes;             // of a sample of x
    struct sample_strides from, to;  // of the arrays of inputs and of outputs
    bool channels_last;              // in both arrays
    const struct partita_plan *plan; // of a call; else NULL
    size_t chunk;                    // input channels packed at once
    struct conv_box box;
};

// One box: its first item of the batch and its first output along each axis, and the numbers of
// both, which are smaller at the end of an axis.
struct conv_index {
    size_t item, items;
    size_t at[3], count[3];
};

// Makes pass i of a direction, without chunk, box and functions; false if it has no output.
// Backward weight has the same pass as forward. Axes with one tap, no stride and no padding are
// merged into the last one, so that a layer of 1x1 taps has long rows.
bool conv_pass_make(const struct shape *shape, enum partita_direction direction, size_t i,
                    struct conv_pass *ret);

// Whether an output is the sum of the inputs at its own position, and positions are one axis.
bool conv_pass_is_identity(const struct conv_pass *pass);

// conv_pass_count: passes of a direction; backward data has one for each residue of gx that any tap
// contributes to (a product over the axes, which saturates). conv_pass_covers: whether n passes
// that have outputs cover all outputs.
size_t conv_pass_count(const struct shape *shape, enum partita_direction direction);
bool conv_pass_covers(const struct shape *shape, enum partita_direction direction, size_t n);

// Classes of passes that do not differ in anything that a box or its cost depends on: they have the
// same numbers of outputs and taps and the same reach. Fills the first pass of each class and how
// many there are; returns the number of classes.
enum { CONV_MAX_CLASSES = 64 }; // along an axis numbers of outputs and taps differ by at most 1
struct conv_class {
    size_t first, n;
};
size_t conv_pass_classes(const struct shape *shape, enum partita_direction direction,
                         struct conv_class ret[CONV_MAX_CLASSES]);
bool conv_pass_same_class(const struct conv_pass *a, const struct conv_pass *b);

// Chooses a box of one image whose packed channel has at most max_bytes, unless the smallest box
// needs more. The choice does not depend on the number of threads.
void conv_pass_choose_box(struct conv_pass *pass, size_t max_bytes);

// Computes the other fields of the box from its images and counts.
void conv_pass_layout_box(struct conv_pass *pass);

// Number of boxes of a pass; maximum number of outputs of a box; box number `box`.
size_t conv_pass_boxes(const struct conv_pass *pass);
size_t conv_pass_box_outputs(const struct conv_pass *pass);
struct conv_index conv_pass_index(const struct conv_pass *pass, size_t box);

static inline size_t conv_index_outputs(const struct conv_index *index)
{
    return index->items * index->count[0] * index->count[1] * index->count[2];
}

// Number of outputs rounded up to whole vectors, in samples.
static inline size_t conv_pass_vectors(const struct conv_pass *pass, size_t outputs)
{
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    return (outputs + lanes - 1) / lanes * lanes;
}

// Index, in the array of outputs, of the first output of row (d, h) of item `item` of a box;
// `channel` counts over all groups. The outputs of the row are axis[2].spread positions apart.
size_t conv_pass_output_row(const struct conv_pass *pass, const struct conv_index *index,
                            size_t channel, size_t item, size_t d, size_t h);

// The same index within the plane of its channel.
size_t conv_pass_output_sample(const struct conv_pass *pass, const struct conv_index *index,
                               size_t d, size_t h);

// Bytes of one packed channel, and of the packed inputs of one chunk.
static inline size_t conv_pass_channel_bytes(const struct conv_pass *pass)
{
    return pass->box.channel * pass->scalar_bytes;
}

static inline size_t conv_pass_packed_bytes(const struct conv_pass *pass)
{
    return mem_round(size_mul(pass->chunk, conv_pass_channel_bytes(pass)));
}

// Packs n channels of x from `channel` on, counted over all groups, for a box.
void conv_pass_pack(const struct conv_pass *pass, const struct conv_index *index, void *packed,
                    const void *x, size_t channel, size_t n);

// One row of a packed box: from position `to` on, every step-th sample, from sample `first` on, of
// the row of x that begins at sample `row` of the plane; extent[2] samples in all. Samples outside
// the axis are zeros.
struct conv_row {
    size_t to, row;
    ptrdiff_t first;
    bool zero; // the whole row is zero
};

// conv_pass_rows: number of rows of one image of a box. conv_pass_each_row: calls `each` for all of
// them, residue after residue; the box must hold one image.
size_t conv_pass_rows(const struct conv_pass *pass);
void conv_pass_each_row(const struct conv_pass *pass, const struct conv_index *index,
                        void (*each)(void *context, const struct conv_row *row), void *context);

// offset[n][terms] of n packed channels: index of the inputs of the box's first output in the
// packed samples, tap after tap; conv_pass_offsets_by_tap uses the order of the caller's taps.
void conv_pass_offsets(const struct conv_pass *pass, size_t *offset, size_t n);
void conv_pass_offsets_by_tap(const struct conv_pass *pass, size_t *offset, size_t n);

// The tap of the kernel that belongs to a term of the pass, as an index into the caller's taps of
// one path.
size_t conv_pass_tap(const struct conv_pass *pass, size_t term);

#endif
