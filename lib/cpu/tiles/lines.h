// SPDX-License-Identifier: MIT
// Lines of tiles: which channel and which position of the batch each lane of a transform has, and
// where its samples and its spectrum are.
#ifndef PARTITA_TILES_LINES_H
#define PARTITA_TILES_LINES_H

#include "tiles.h"

// The lanes of a line: positions of one channel; a few positions of each of several channels;
// channels at one position.
enum tiles_order { TILES_POSITIONS, TILES_INTERLEAVED, TILES_CHANNELS };

// One array that is split into tiles and transformed, or written after the inverse transform.
struct tiles_array {
    const struct tiles_call *call;
    const char *data;
    char *spectra;
    size_t bin;      // from one bin of the spectra to the next
    bool outputs;    // the grid's outputs, else its inputs
    size_t channels; // of a group, branches included
    size_t first, n; // the selected channels
    struct sample_strides strides;
    enum tiles_order order;
};

// Lanes with adjacent samples at one position, which are channels that come last, `pace` lanes
// apart; n = 0: the lane is of another run, or has no samples.
struct lane_run {
    size_t n, pace;
};

// One line of tiles: where each lane's samples are.
struct line {
    char *plane[TILE_MAX_LANES];
    size_t position; // samples from one position of a plane to the next
    size_t size[3], step[3];
    ptrdiff_t at[TILE_MAX_LANES][3]; // sample of element 0 along each axis; may lie outside
    struct tile_range range[TILE_MAX_LANES][3]; // elements whose samples exist
    struct tile_range any[3];                   // elements that any lane has
    struct tile_range all;                      // elements along the last axis that every lane has
    struct lane_run run[TILE_MAX_LANES];        // those that begin at each lane, if is_spread
};

// A lane's channel, counted from the array's first, and position of the batch. Lanes of padding
// have a channel or position that there is not.
struct lane {
    size_t channel, position;
};

// tiles_line_count: lines of an array. tiles_lane: a lane of a line. tiles_line_spectrum: where the
// line's spectrum is.
size_t tiles_line_count(const struct tiles_array *array);
struct lane tiles_lane(const struct tiles_array *array, size_t line, size_t lane);
struct tile_spectrum tiles_line_spectrum(const struct tiles_array *array, size_t line);

void tiles_open_line(const struct tiles_array *array, size_t index, struct line *line);

// Whether adjacent elements along the last axis are not adjacent samples.
static inline bool is_spread(const struct line *line)
{
    return line->step[2] * line->position != 1;
}

static inline bool in_range(const struct tile_range *range, size_t i)
{
    return range->begin <= i && i < range->end;
}

// Position of element (d, h, 0) of a lane, counted from its plane along the first two axes.
static inline ptrdiff_t row_at(const struct line *line, size_t l, size_t d, size_t h)
{
    const ptrdiff_t at_d = line->at[l][0] + (ptrdiff_t)(line->step[0] * d);
    const ptrdiff_t at_h = line->at[l][1] + (ptrdiff_t)(line->step[1] * h);
    return (at_d * (ptrdiff_t)line->size[1] + at_h) * (ptrdiff_t)line->size[2];
}

#endif
