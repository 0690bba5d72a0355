// SPDX-License-Identifier: MIT
// Spectra of taps as factors of products, and taps of the gradient: lanes are output channels here,
// a line of them for one input channel. Spectra of a filter are conjugated and laid out for
// kernels->conv:
//   [group][chunk][bin]        [terms][8 output channels][in][re, im][output channel]
//   [group][chunk][bin][three] [terms][8 output channels][in][output channel]
// for four real products and for Gauss's three (tile_factors_fn). Chunks are of output channels,
// terms of the input channels of one call, so that products read them in order. Transposed:
// tiles.h.
#include <string.h>

#include "lines.h"

enum { ELEMENT_BYTES = 2 * TILE_LINE_BYTES };

// A few output channels of a line of taps: their spectrum, and where their factors of the first bin
// go. bin: bytes from one bin's factors to the next. im: scalars from real to imaginary parts, or
// between Gauss's factors. rows: the number of output channels.
struct factor_block {
    char *to;
    const char *spectrum;
    size_t bin, im, rows;
};

// The output channels from `out` on, for input channel `in`.
static struct factor_block block_of(const struct tiles_call *call, size_t in, size_t out,
                                    const char *spectrum)
{
    const struct tiles *p = call->p;
    const bool transposed = p->product == TILES_TRANSPOSED;
    const size_t first = out / p->oc_chunk * p->oc_chunk, n = size_min(p->oc_chunk, p->out - first);
    const size_t bytes = p->grid.scalar_bytes, at = tiles_chunk_scalars(p, call->group, 0, first);
    const size_t rows = size_min(first + n - out, CONV_CHANNELS);
    struct factor_block block = {
        .to = call->to + (at + tiles_factor_index(p, in, out - first, n)) * bytes,
        .spectrum = spectrum,
        .bin = (tiles_chunk_scalars(p, call->group, 1, first) - at) * bytes,
        .im = transposed ? p->panel : rows,
        .rows = transposed ? p->lanes : rows};
    if (p->product == TILES_GAUSS) block.im = p->in * n;
    return block;
}

void tiles_store_factors(const struct tiles_array *taps, size_t first, size_t n,
                         const char *spectra)
{
    const struct tiles_call *call = taps->call;
    const struct tiles *p = call->p;
    const size_t width = p->product == TILES_TRANSPOSED ? p->lanes : CONV_CHANNELS;
    struct factor_block block[2 * TILE_MAX_LANES / CONV_CHANNELS];
    size_t blocks = 0;
    for (size_t i = 0; i < n; i++, spectra += 2 * TILE_LINE_BYTES) {
        const struct lane lane = tiles_lane(taps, (first + i) * p->lanes);
        for (size_t l = 0; l < p->lanes && lane.position + l < p->out; l += width)
            block[blocks++] =
                block_of(call, lane.channel, lane.position + l, spectra + l * p->grid.scalar_bytes);
    }
    for (size_t bin = 0; bin < p->bins; bin++)
        for (size_t i = 0; i < blocks; i++) {
            const char *re = block[i].spectrum + bin * 4 * TILE_LINE_BYTES;
            call->kernels->tile_factors(block[i].to + bin * block[i].bin, block[i].im, re,
                                        re + TILE_LINE_BYTES, block[i].rows,
                                        p->product == TILES_GAUSS);
        }
}

void tiles_write_taps(const struct tiles_call *call, const struct line *line, char *staged,
                      const char *z, const size_t step[2])
{
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes;
    const bool whole = p->grid.branches == 1; // the line has all taps of its paths
    const struct tile_range *range = line->range[0];
    for (size_t d = range[0].begin; d < range[0].end; d++)
        for (size_t h = range[1].begin; h < range[1].end; h++) {
            ptrdiff_t tap = element_at(line, 0, d, h, range[2].begin); // of all lanes
            const char *from = z + (d * step[0] + h * step[1] + range[2].begin) * ELEMENT_BYTES;
            const size_t n = range[2].end - range[2].begin;
            for (size_t i = 0; i < n; i++, tap += line->step[2], from += ELEMENT_BYTES) {
                if (whole) memcpy(staged + tap * TILE_LINE_BYTES, from, TILE_LINE_BYTES);
                for (size_t l = 0; !whole && l < p->lanes && line->plane[l]; l++)
                    memcpy(line->plane[l] + (size_t)tap * bytes, from + l * bytes, bytes);
            }
        }
    if (whole)
        call->kernels->lanes_write((void *const *)line->plane, 1, staged,
                                   line->size[0] * line->size[1] * line->size[2], NULL, false);
}
