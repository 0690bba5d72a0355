// SPDX-License-Identifier: MIT
// Transposed backward weight. With few positions the sums are large compared with the work on them,
// so they are never stored as a whole. A task computes one lane group of output channels for
// TILE_ROWS input channels: it multiplies the bins of two rows, a frequency and its negative,
// transforms these rows back while they are in the L1 and L2 caches, and stores the elements that
// become taps. After all rows it transforms the columns that contain taps.
#include <string.h>

#include "tiles.h"

enum { PAIRS = TILE_ROWS / 2, ELEMENT_BYTES = 2 * TILE_LINE_BYTES };

// The elements of a pair of lines along the last axis that are taps: from one row and plane to the
// next, odd numbers so that columns do not fall into one set of the cache.
struct kept {
    size_t step[2], elements;
};

static struct kept kept_elements(const struct tiles *p)
{
    const size_t row = p->grid.axis[2].taps | 1, plane = size_mul(row, p->n[1]) | 1;
    return (struct kept){{plane, row}, size_mul(plane, p->n[0])};
}

// Elements of a row of frequencies and, where it has another one, its opposite.
static size_t row_elements(const struct tiles *p)
{
    return (p->n[0] * p->n[1] > 1 ? 2 : 1) * p->n[2];
}

size_t tiles_gradient_bytes(const struct tiles *p)
{
    return size_mul(PAIRS * ELEMENT_BYTES, size_add(kept_elements(p).elements, row_elements(p)));
}

// All rows of the sums of a task, transformed along the last axis. kept[i]: of pair i.
static void make_rows(const struct tiles_call *call, struct tile_gradient *of, char *const *kept)
{
    const struct tiles *p = call->p;
    const struct tile_tables *tables = &p->tables;
    const struct kept to = kept_elements(p);
    const char *x = of->x, *gy = of->gy;
    const size_t pairs = ceil_div(of->channels, 2), bytes = p->grid.scalar_bytes;
    for (size_t bin = 0; bin < p->bins; bin += of->bins) {
        const uint32_t *pair = of->pair = tables->pair + 2 * bin;
        // A row that is its own opposite has half of the bins.
        const size_t rows = pair[0] == pair[1] ? 1 : 2;
        of->bins = rows == 1 ? p->n[2] / 2 + 1 : p->n[2];
        of->back = rows == 1 ? 0 : p->n[2];
        of->x = x + bin * p->x_bin * bytes;
        of->gy = gy + bin * p->positions * 2 * TILE_LINE_BYTES;
        call->kernels->tile.gradient(of);
        for (size_t i = 0; i < pairs; i++)
            for (size_t k = 0; k < rows; k++) {
                char *row = (char *)of->rows[i] + k * p->n[2] * ELEMENT_BYTES;
                const size_t d = pair[k] / tables->step[0], h = pair[k] % tables->step[0];
                tiles_transform_row(tables, call->kernels->tile.inverse, row);
                memcpy(kept[i] +
                           (d * to.step[0] + h / tables->step[1] * to.step[1]) * ELEMENT_BYTES,
                       row, p->grid.axis[2].taps * ELEMENT_BYTES);
            }
    }
}

// The columns of a pair from the kept elements of its rows, and from there its taps.
static void store_taps_of_pair(const struct tiles_call *call, const struct tap_line *line, size_t n,
                               char *kept, char *rows)
{
    const struct tiles *p = call->p;
    const struct kept of = kept_elements(p);
    const size_t taps[] = {p->grid.axis[0].taps, p->grid.axis[1].taps, p->grid.axis[2].taps};
    tile_dft_fn *inverse = call->kernels->tile.inverse;
    for (size_t h = 0; h < p->n[1] && p->n[0] > 1; h++)
        inverse(kept + h * of.step[1] * ELEMENT_BYTES, &p->tables.dft[0], of.step[0], taps[2], 1);
    for (size_t d = 0; d < taps[0]; d++) {
        char *plane = kept + d * of.step[0] * ELEMENT_BYTES;
        if (p->n[1] > 1) inverse(plane, &p->tables.dft[1], of.step[1], taps[2], 1);
        for (size_t h = 0; h < taps[1]; h++)
            for (size_t i = 0; i < n; i++)
                tiles_scatter_taps(&line[i], call,
                                   plane + h * of.step[1] * ELEMENT_BYTES + i * TILE_LINE_BYTES,
                                   (size_t[]){d, h}, rows);
    }
}

static void run_gradient_task(void *context, size_t task, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    const size_t blocks = ceil_div(p->in, TILE_ROWS), in = task % blocks * TILE_ROWS;
    const size_t out = task / blocks * p->lanes, channels = size_min(TILE_ROWS, p->in - in);
    struct arena arena = tiles_worker_arena(call, worker);
    const struct tiles_worker own = tiles_layout_worker(p, &arena);
    struct tile_gradient of = {.x = call->spectra.x,
                               .gy = tiles_line_of_gy(p, call->spectra.gy, 0, out).re,
                               .x_bin = p->x_bin,
                               .x_im = p->x_scalars,
                               .x_group = TILE_ROWS * p->in,
                               .first = in,
                               .channels = channels,
                               .positions = p->positions,
                               .scale = 0.25 / (double)(p->n[0] * p->n[1] * p->n[2])};
    char *kept[PAIRS];
    for (size_t i = 0; i < PAIRS; i++) {
        of.rows[i] = own.z + i * row_elements(p) * ELEMENT_BYTES;
        kept[i] = own.z + (PAIRS * row_elements(p) + i * kept_elements(p).elements) * ELEMENT_BYTES;
    }
    make_rows(call, &of, kept);
    for (size_t c = 0; c < channels; c += 2) {
        struct tap_line line[2];
        const size_t n = size_min(2, channels - c);
        for (size_t i = 0; i < n; i++) line[i] = tiles_tap_line(p, call->group, in + c + i, out);
        store_taps_of_pair(call, line, n, kept[c / 2], own.rows);
    }
}

void tiles_gradient(const struct tiles_call *call)
{
    const size_t lines = ceil_div(call->p->out, call->p->lanes);
    thread_loop(call->plan->threads, lines * ceil_div(call->p->in, TILE_ROWS), run_gradient_task,
                (void *)call);
}
