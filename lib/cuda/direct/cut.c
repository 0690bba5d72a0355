// SPDX-License-Identifier: MIT
// How the tile variants of cuda/direct cut a pass into thread blocks.
#include "cuda/kernels/kernels.h"

enum { MOST_THREADS_X = 32 }; // a warp reads one row

// The least power of two from n on, at most `most`.
static int power(int64_t n, int most)
{
    int p = 1;
    while (p < n && p < most) p *= 2;
    return p;
}

// Bytes of shared memory; more than any device has if a number does not fit.
static int64_t measure(const struct cuda_pass *pass, enum cuda_variant variant, bool f64,
                       struct cuda_tile *tile)
{
    const struct cuda_axis *row = &pass->axis[1], *column = &pass->axis[2];
    const int64_t width = (int64_t)tile->each * tile->threads_x, height = tile->threads_y,
                  huge = 1 << 20;
    const int64_t most[] = {row->from_step,    row->from_dilation,    row->taps,
                            column->from_step, column->from_dilation, column->taps};
    for (int i = 0; i < 6; i++)
        if (most[i] > huge) return INT64_MAX;
    int64_t rows = height * row->from_step, columns = width * column->from_step;
    if (variant == CUDA_HALO) {
        rows = (height - 1) * row->from_step + (row->taps - 1) * row->from_dilation + 1;
        columns = (width - 1) * column->from_step + (column->taps - 1) * column->from_dilation + 1;
    }
    int64_t taps = row->taps * column->taps * tile->channels;
    if (tile->each == CUDA_TILE_RUN) {
        // Windows of whole groups, and rows an odd number of groups apart: four threads of one and
        // four of the next do not meet in the same banks.
        const int64_t groups = (column->taps + CUDA_TILE_GROUP - 1) / CUDA_TILE_GROUP;
        columns = (width / CUDA_TILE_GROUP + groups) * CUDA_TILE_GROUP;
        if (columns % (2 * CUDA_TILE_GROUP) == 0) columns += CUDA_TILE_GROUP;
        taps = row->taps * groups * CUDA_TILE_GROUP;
    }
    if (rows > huge || columns > huge || taps > huge) return INT64_MAX;
    tile->rows = (int)rows;
    tile->columns = (int)columns;
    return (rows * columns + taps) * (f64 ? 8 : 4);
}

bool cuda_tile_cut(const struct cuda_pass *pass, enum cuda_variant variant, bool f64, size_t most,
                   struct cuda_tile *ret)
{
    const struct cuda_axis *column = &pass->axis[2];
    struct cuda_tile tile = {.channels =
                                 pass->to < CUDA_TILE_CHANNELS / 2 ? 1 : CUDA_TILE_CHANNELS};
    const bool run = variant == CUDA_HALO && tile.channels == 1 && column->from_step == 1 &&
                     column->from_dilation == 1;
    tile.each = run ? CUDA_TILE_RUN : CUDA_TILE_COLUMNS;
    tile.threads_x = power((column->n + tile.each - 1) / tile.each, MOST_THREADS_X);
    tile.threads_y = power(pass->axis[1].n, CUDA_THREADS / tile.threads_x);
    for (;;) {
        const int64_t bytes = measure(pass, variant, f64, &tile);
        if (bytes <= (int64_t)most) {
            tile.shared_bytes = (size_t)bytes;
            *ret = tile;
            return true;
        }
        if (tile.threads_y > 1) tile.threads_y /= 2;
        else if (tile.threads_x > 1) tile.threads_x /= 2;
        else if (tile.channels > 1) tile.channels = 1;
        else return false;
    }
}
