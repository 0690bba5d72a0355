// SPDX-License-Identifier: MIT
// How the transforms of cpu/depthwise split a map into tiles, and the form of a tile's transform. A
// tile is a rectangle of outputs; the window of x that they read begins at the corner of a
// transform of t samples along an axis. Along the last axis a transform is one of t real samples
// modulo u^t + 1, as t/2 complex elements; along the other one it is cyclic. So a spectrum has t *
// t/2 elements and no bin is special. A transform is long enough if samples that wrap around its
// end do not change outputs that are needed; zeros around the map need not be transformed. Source:
// overlap-save after Oppenheim & Schafer, Discrete-Time Signal Processing, 8.7; the real transform
// after Crandall & Fagin, Discrete weighted transforms and large-integer arithmetic (1994).
#ifndef PARTITA_DEPTHWISE_GRID_H
#define PARTITA_DEPTHWISE_GRID_H

#include "depthwise.h"

struct grid_axis {
    size_t size, out; // samples of x and of y
    size_t kernel, dilation, span;
    ptrdiff_t begin;      // sample of x that tap 0 of output 0 reads
    size_t edge;          // samples of a transform
    size_t tiles, length; // number of tiles; outputs of a tile
    struct lanes_dft dft;
};

struct depthwise_grid {
    struct grid_axis axis[2]; // the second one is the last of the shape
    bool flip;                // taps are read backwards
    size_t row;               // elements from one row of a spectrum to the next
    size_t bytes;             // of one spectrum of a lane group
};

// The window of a tile along an axis.
struct grid_window {
    size_t at, length; // outputs
    ptrdiff_t first;   // sample of x at the window's start
    size_t n;          // samples of the window that are in the transform
    size_t begin, end; // samples of the window that exist in x
};

// The cheapest grid for a request whose spectra take at most `bytes` bytes each. edge: the larger
// of the two transform sizes, or the cheapest below it if there is no such size; 0: any.
// ret_seconds: time of transforming all planes of x once, without moving samples. False: there is
// no grid.
bool depthwise_grid_choose(const struct request *request, size_t edge, size_t bytes,
                           struct depthwise_grid *ret, double *ret_seconds);

// Vector operations per lane of transforming all planes of x once. A fused multiply-add counts as
// one.
double depthwise_grid_operations(const struct request *request, const struct depthwise_grid *grid);

// The factors of both axes' transforms.
void depthwise_grid_factors(struct depthwise_grid *grid, bool f64, struct arena *arena);

struct grid_window grid_window(const struct grid_axis *axis, size_t tile);

static inline size_t grid_tiles(const struct depthwise_grid *grid)
{
    return grid->axis[0].tiles * grid->axis[1].tiles;
}

// Index of tap r of an axis in the transform; *negative flips if it has wrapped an odd number of
// times.
size_t grid_tap(const struct grid_axis *axis, size_t r, bool *negative);

enum { ELEMENT_BYTES = 2 * CONV_BLOCK_BYTES };

// A row of t real blocks as t/2 elements, a row and a column of a spectrum, and a column that is
// contiguous, as those of a filter are.
static inline struct lanes_row samples_line(const struct depthwise_grid *grid, char *row)
{
    return (struct lanes_row){row, grid->axis[1].edge / 2, 1};
}

static inline struct lanes_row row_line(const struct depthwise_grid *grid, char *spectrum, size_t i)
{
    return (struct lanes_row){spectrum + i * grid->row * ELEMENT_BYTES, 1, 2};
}

static inline struct lanes_row column_line(const struct depthwise_grid *grid, char *spectrum,
                                           size_t i)
{
    return (struct lanes_row){spectrum + i * ELEMENT_BYTES, 1, 2 * grid->row};
}

static inline struct lanes_row contiguous_line(const struct depthwise_grid *grid,
                                               const char *spectrum, size_t i)
{
    return (struct lanes_row){(char *)spectrum + i * grid->axis[0].edge * ELEMENT_BYTES, 1, 2};
}

#endif
