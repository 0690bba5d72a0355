// SPDX-License-Identifier: MIT
// Lines of tiles or of taps: which channel and which position each lane of a transform has, and
// where its samples and its spectrum are.
#ifndef PARTITA_TILES_LINES_H
#define PARTITA_TILES_LINES_H

#include "tiles.h"

// An array that is split into lines. Of taps and of their gradient, channels are the input channels
// and positions the output channels.
struct tiles_array {
    const struct tiles_call *call;
    enum tiles_kind kind;
    bool outputs, taps; // the grid's outputs, else its inputs; taps or their gradient
    char *data;
    size_t channels; // of a group, branches included
    size_t first, n; // the selected channels
    // Spectra, in scalars: from one bin, channel or position to the next, from real to imaginary
    // parts. Transposed products have another order of x and of y.
    char *spectra;
    size_t bin, channel, position, im;
    // Lanes are `adjacent` positions of a channel, then these of the next one of `padded` channels,
    // then further positions, of which the first `valid` exist.
    size_t adjacent, padded, positions, valid;
    size_t lines; // of a task
    size_t bytes; // of an element of data
    bool half;    // elements are widened as they are read, and narrowed as they are stored
    struct sample_strides strides;
};
struct tiles_array tiles_array_of(const struct tiles_call *call, enum tiles_kind kind);

// A lane's channel, counted from the array's first, and position. `rows` lanes from there is the
// same position of the next channel; they begin with position `group`.
struct lane {
    size_t channel, position, group, rows;
};
struct lane tiles_lane(const struct tiles_array *array, size_t at); // counted over all lines
void tiles_next_lane(const struct tiles_array *array, struct lane *lane);

// Branches that are channels of the array.
static inline size_t tiles_branches(const struct tiles_array *array)
{
    const struct tile_grid *grid = &array->call->p->grid;
    return array->outputs == grid->branches_out ? grid->branches : 1;
}

// One line: where each lane's samples are.
struct line {
    char *plane[TILE_MAX_LANES]; // NULL: the lane has no samples
    size_t position;             // samples from one position of a plane to the next
    size_t size[3];
    ptrdiff_t step[3];
    ptrdiff_t at[TILE_MAX_LANES][3]; // sample of element 0 along each axis; may lie outside
    struct tile_range range[TILE_MAX_LANES][3]; // elements whose samples exist
    struct tile_range any[3];                   // elements that any lane has
    struct tile_range all;                      // elements along the last axis that every lane has
};
void tiles_open_line(const struct tiles_array *array, size_t index, struct line *line);
struct tile_spectrum tiles_line_spectrum(const struct tiles_array *array, size_t line);

static inline size_t tiles_line_count(const struct tiles_array *array)
{
    return ceil_div(array->padded * array->positions, array->call->p->lanes);
}

// Whether adjacent elements along the last axis are not adjacent samples.
static inline bool is_spread(const struct line *line)
{
    return line->step[2] * (ptrdiff_t)line->position != 1;
}

static inline bool in_range(const struct tile_range *range, size_t i)
{
    return range->begin <= i && i < range->end;
}

// Position of element (d, h, i) of a lane, counted from its plane.
static inline ptrdiff_t element_at(const struct line *line, size_t l, size_t d, size_t h, size_t i)
{
    const ptrdiff_t at_d = line->at[l][0] + line->step[0] * (ptrdiff_t)d;
    const ptrdiff_t at_h = line->at[l][1] + line->step[1] * (ptrdiff_t)h;
    return (at_d * (ptrdiff_t)line->size[1] + at_h) * (ptrdiff_t)line->size[2] + line->at[l][2] +
           line->step[2] * (ptrdiff_t)i;
}

// Taps (taps.c). tiles_write_taps: writes a line's gradient; its elements are at z, rows and planes
// of them `step` elements apart; `staged` is scratch. tiles_store_factors: stores the spectra of n
// lines of taps from `first` on, [bin][line][re, im], in the layout of the product.
void tiles_write_taps(const struct tiles_call *call, const struct line *line, char *staged,
                      const char *z, const size_t step[2]);
void tiles_store_factors(const struct tiles_array *taps, size_t first, size_t n,
                         const char *spectra);

#endif
