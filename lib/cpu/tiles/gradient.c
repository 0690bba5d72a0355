// SPDX-License-Identifier: MIT
// Transposed backward weight. With few positions the sums are large compared with the work on them,
// so they are never stored as a whole. A task computes one lane group of output channels for
// TILE_ROWS input channels, or several times as many where gy is read from beyond the L2 cache: it
// multiplies the bins of two rows, a frequency and its negative, transforms these rows back while
// they are in the L1 and L2 caches, and stores the elements that become taps. After all rows it
// transforms the columns that contain taps.
#include <string.h>

#include "lines.h"

enum { ELEMENT_BYTES = 2 * TILE_LINE_BYTES };

// The rows of sums of TILE_ROWS channels, transformed along the last axis. kept[i]: of pair i.
static void make_rows_of(const struct tiles_call *call, const struct tile_gradient *sums,
                         char *const *kept)
{
    const struct tiles *p = call->p;
    const struct tile_tables *tables = &p->tables;
    const size_t rows = sums->back ? 2 : 1;
    call->kernels->tile_gradient(sums);
    for (size_t i = 0; i < ceil_div(sums->channels, 2); i++)
        for (size_t k = 0; k < rows; k++) {
            char *row = (char *)sums->rows[i] + k * p->n[2] * ELEMENT_BYTES;
            const size_t d = sums->pair[k] / tables->step[0], h = sums->pair[k] % tables->step[0];
            tiles_transform_row(tables, call->kernels->tile_inverse, row);
            memcpy(kept[i] + (d * p->kept.step[0] + h / tables->step[1] * p->kept.step[1]) *
                                 ELEMENT_BYTES,
                   row, p->grid.axis[2].taps * ELEMENT_BYTES);
        }
}

// All rows of a task's channels from `in` on.
static void make_rows(const struct tiles_call *call, struct tile_gradient *sums, char *const *kept,
                      size_t in, size_t channels)
{
    const struct tiles *p = call->p;
    const char *x = sums->x, *gy = sums->gy;
    for (size_t bin = 0; bin < p->bins; bin += sums->bins) {
        const uint32_t *pair = sums->pair = p->tables.pair + 2 * bin;
        // A row that is its own opposite has half of the bins.
        const bool opposite = pair[0] == pair[1];
        sums->bins = opposite ? p->n[2] / 2 + 1 : p->n[2];
        sums->back = opposite ? 0 : p->n[2];
        sums->x = x + bin * p->x_bin * p->grid.scalar_bytes;
        sums->gy = gy + bin * p->positions * 2 * TILE_LINE_BYTES;
        for (size_t c = 0; c < channels; c += TILE_ROWS) {
            sums->first = in + c;
            sums->channels = size_min(TILE_ROWS, channels - c);
            make_rows_of(call, sums, kept + c / 2);
        }
    }
}

// The columns of a pair from the kept elements of its rows, and from there the taps of n input
// channels; `first` is the line of the first one.
static void store_taps_of_pair(const struct tiles_call *call, size_t first, size_t n, char *kept,
                               char *staged)
{
    const struct tiles *p = call->p;
    const struct tiles_array gw = tiles_array_of(call, TILES_GW);
    const size_t taps[] = {p->grid.axis[0].taps, p->grid.axis[1].taps, p->grid.axis[2].taps};
    tile_dft_fn *inverse = call->kernels->tile_inverse;
    for (size_t h = 0; h < p->n[1] && p->n[0] > 1; h++)
        inverse(kept + h * p->kept.step[1] * ELEMENT_BYTES, &p->tables.dft[0], p->kept.step[0],
                taps[2], 1);
    for (size_t d = 0; d < taps[0] && p->n[1] > 1; d++)
        inverse(kept + d * p->kept.step[0] * ELEMENT_BYTES, &p->tables.dft[1], p->kept.step[1],
                taps[2], 1);
    for (size_t i = 0; i < n; i++) {
        struct line line;
        tiles_open_line(&gw, first + i * (gw.positions / p->lanes), &line);
        tiles_write_taps(call, &line, staged, kept + i * TILE_LINE_BYTES, p->kept.step);
    }
}

static void run_gradient_task(void *context, size_t task, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    const size_t pairs = p->kept.pairs, blocks = ceil_div(p->in, 2 * pairs);
    const size_t lines = ceil_div(p->out, p->lanes);
    // Tasks that follow each other read the same line of gy and all of x; or all of gy and the same
    // channels of x, if x would come from memory each time.
    const size_t bytes = tiles_spectra_bytes(p, p->x_bin);
    const bool far = bytes > TILES.far_bytes && bytes > tiles_spectra_bytes(p, p->gy_bin);
    const size_t in = (far ? task / lines : task % blocks) * 2 * pairs;
    const size_t out = (far ? task % lines : task / blocks) * p->lanes;
    const size_t channels = size_min(2 * pairs, p->in - in);
    struct arena arena = tiles_worker_arena(call, worker);
    const struct tiles_worker memory = tiles_layout_worker(p, &arena);
    struct tile_gradient sums = {.x = call->spectra.x,
                                 .gy = call->spectra.gy +
                                       out * 2 * p->positions * p->bins * p->grid.scalar_bytes,
                                 .x_bin = p->x_bin,
                                 .x_im = p->x_scalars,
                                 .x_group = TILE_ROWS * p->in,
                                 .positions = p->positions,
                                 .scale = tiles_scale(p)};
    char *kept[TILES_MAX_PAIRS], *rows = memory.z + pairs * p->kept.elements * ELEMENT_BYTES;
    for (size_t i = 0; i < TILES_PAIRS; i++) sums.rows[i] = rows + i * p->kept.row * ELEMENT_BYTES;
    for (size_t i = 0; i < pairs; i++) kept[i] = memory.z + i * p->kept.elements * ELEMENT_BYTES;
    make_rows(call, &sums, kept, in, channels);
    for (size_t c = 0; c < channels; c += 2)
        store_taps_of_pair(call, (in + c) * lines + out / p->lanes, size_min(2, channels - c),
                           kept[c / 2], memory.taps);
}

void tiles_gradient(const struct tiles_call *call)
{
    const size_t lines = ceil_div(call->p->out, call->p->lanes);
    thread_loop(call->threads, lines * ceil_div(call->p->in, 2 * call->p->kept.pairs),
                run_gradient_task, (void *)call);
}
