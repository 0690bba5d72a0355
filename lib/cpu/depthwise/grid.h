// SPDX-License-Identifier: MIT
// How the transforms of cpu/depthwise split a map into tiles, and the form of a tile's transform. A
// tile is a box of outputs of a pass; the window of x that they read lies at the corner of a
// transform of t samples along an axis. Along the last axis a transform is one of t real samples
// modulo u^t + 1, as t/2 complex elements; along the other one it is cyclic. So a spectrum has t *
// t/2 elements and no bin is special. A transform is long enough if samples that wrap around its
// end do not change outputs that are needed; zeros around the map need not be transformed. Source:
// overlap-save after Oppenheim & Schafer, Discrete-Time Signal Processing, 8.7; the real transform
// after Crandall & Fagin, Discrete weighted transforms and large-integer arithmetic (1994).
#ifndef PARTITA_DEPTHWISE_GRID_H
#define PARTITA_DEPTHWISE_GRID_H

#include "depthwise.h"
#include "geometry/samples.h"

struct grid_axis {
    size_t edge;          // samples of a transform
    size_t tiles, length; // number of tiles; outputs of a tile
    double operations;    // vector operations of a transform
    struct lanes_dft dft;
};

struct depthwise_grid {
    struct conv_pass pass;
    struct grid_axis axis[2]; // of axes 1 and 2 of the pass
    size_t row;               // elements from one row of a spectrum to the next
    size_t bytes;             // of one spectrum of a lane group
};

// The cheapest grid for a request whose spectra take at most `bytes` bytes each. edge: the larger
// of the two transform sizes, or the cheapest below it if there is no such size; 0: any.
// False: there is no grid.
bool depthwise_grid_choose(const struct request *request, size_t edge, size_t bytes,
                           struct depthwise_grid *ret);

// The work of transforming a plane of x once, without moving its samples.
struct work depthwise_grid_work(const struct request *request, const struct depthwise_grid *grid);

// The factors of both axes' transforms.
void depthwise_grid_factors(struct depthwise_grid *grid, bool f64, struct arena *arena);

// The range of samples of a window of `length` outputs from output `at` on that exist in x, or {0}.
struct inside grid_window(const struct conv_axis *axis, size_t at, size_t length);

// The caller's tap of a term of the pass, which has all taps.
static inline size_t grid_caller_tap(const struct depthwise_grid *grid, size_t term)
{
    return grid->pass.flip ? grid->pass.terms - 1 - term : term;
}

// Sample of the window that tap j of an axis of the pass reads for the first output.
static inline size_t grid_offset(const struct conv_axis *axis, size_t j)
{
    return (size_t)(axis->base + axis->slope * (ptrdiff_t)j - axis->low);
}

// Index of tap j of an axis in the transform; *negative flips if it has wrapped an odd number of
// times.
size_t grid_tap(const struct depthwise_grid *grid, int axis, size_t j, bool *negative);

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
