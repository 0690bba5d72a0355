// SPDX-License-Identifier: MIT
// Taps into spectra and the gradient's spectra into taps: lanes are output channels here, a line of
// them for one input channel. Spectra of a filter are conjugated and laid out for kernels->conv:
//   [group][bin]        [8 output channels][in][re, im][output channel]    four real products
//   [group][bin][three] [8 output channels][in][output channel]            Gauss's three
//   (tile_factors_fn)
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "tiles.h"

// The taps of a line of output channels for one input channel and phase; samples of a row in the
// caller's array or, where they are not in order there, one by one.
struct cells {
    const struct tiles *tiles;
    size_t group, in, first, n; // output channels first .. first+n-1
    bool in_order;
    // Without phases every tap is there, so many taps from the first of its lane.
    bool even;
    size_t begin[TILE_MAX_LANES];
    size_t step[3]; // modulo the range of indices
};

// Index into w of tap (d, h, i) of lane l; SIZE_MAX: none.
static size_t find_tap(const struct cells *cells, size_t l, size_t d, size_t h, size_t i)
{
    const struct tile_grid *grid = &cells->tiles->grid;
    const size_t taps = grid->axis[0].kernel * grid->axis[1].kernel * grid->axis[2].kernel;
    size_t in = cells->in, out = cells->first + l, phase[3];
    tile_grid_phase(grid, (grid->phases_out ? out : in) % grid->phases, phase);
    if (grid->phases_out) out /= grid->phases;
    else in /= grid->phases;
    const size_t tap = tile_grid_tap(grid, phase, (const size_t[]){d, h, i});
    return tap == SIZE_MAX ? tap : tile_grid_cell(grid, cells->group, out, in) * taps + tap;
}

static struct cells cells_of(const struct tiles *tiles, size_t group, size_t in, size_t out)
{
    const struct tile_grid *grid = &tiles->grid;
    const struct tile_axis *axis = &grid->axis[2];
    struct cells cells = {.tiles = tiles, .group = group, .in = in, .first = out};
    cells.n = tiles->out - out < tiles->lanes ? tiles->out - out : tiles->lanes;
    cells.in_order = axis->period == 1 && !grid->flip && !axis->reversed;
    cells.even = grid->phases == 1;
    for (size_t l = 0; cells.even && l < cells.n; l++)
        cells.begin[l] = find_tap(&cells, l, 0, 0, 0);
    for (int a = 0; cells.even && a < 3; a++)
        if (grid->axis[a].taps > 1)
            cells.step[a] = find_tap(&cells, 0, a == 0, a == 1, a == 2) - cells.begin[0];
    return cells;
}

// The same by steps where that can be.
static size_t tap_at(const struct cells *cells, size_t l, size_t d, size_t h, size_t i)
{
    if (!cells->even) return find_tap(cells, l, d, h, i);
    return cells->begin[l] + d * cells->step[0] + h * cells->step[1] + i * cells->step[2];
}

static char *scratch_rows(const struct tiles *tiles, char *scratch, size_t l)
{
    return scratch + l * tiles->transform.n[2] * tiles->grid.scalar_bytes;
}

// Row (d, h) of the taps of a line of cells into z.
static void gather_taps(const struct cells *cells, const struct kernels *kernels, const char *w,
                        char *z, size_t d, size_t h, char *rows)
{
    const size_t bytes = cells->tiles->grid.scalar_bytes, taps = cells->tiles->grid.axis[2].taps;
    const void *from[TILE_MAX_LANES];
    for (size_t l = 0; l < cells->tiles->lanes; l++) {
        char *copy = scratch_rows(cells->tiles, rows, l);
        from[l] = copy;
        const size_t at = l < cells->n ? tap_at(cells, l, d, h, 0) : SIZE_MAX;
        if (cells->in_order && at != SIZE_MAX) {
            from[l] = w + at * bytes;
            continue;
        }
        memset(copy, 0, taps * bytes);
        for (size_t i = 0; l < cells->n && i < taps; i++) {
            const size_t tap = tap_at(cells, l, d, h, i);
            if (tap != SIZE_MAX) memcpy(copy + i * bytes, w + tap * bytes, bytes);
        }
    }
    kernels->tile.gather(z, 2, from, taps);
}

struct filling {
    const struct partita_plan *plan;
    const char *w;
    char *spectra, *scratch;
    size_t group, scratch_bytes;
};

static size_t lines_of_outputs(const struct tiles *tiles)
{
    return (tiles->out + tiles->lanes - 1) / tiles->lanes;
}

// A line of one bin's spectra to where the product wants it.
static void put_taps(const struct tiles *tiles, const struct kernels *kernels, char *w,
                     const char *line, const struct cells *cells)
{
    const size_t bytes = tiles->grid.scalar_bytes, in = tiles->in;
    const bool gauss = tiles->product == TILES_GAUSS;
    if (tiles->product == TILES_TURNED) {
        const struct tile_spectrum to = tiles_factors(tiles, w, 0, in, cells->in, cells->first);
        kernels->tile.factors(to.re, to.im, line, line + TILE_LINE_BYTES, tiles->lanes, false);
        return;
    }
    for (size_t l = 0; l < cells->n; l += CONV_CHANNELS) {
        const size_t k = cells->first + l;
        const size_t rows = tiles->out - k < CONV_CHANNELS ? tiles->out - k : CONV_CHANNELS;
        const size_t at = gauss ? k * in + cells->in * rows : 2 * (k * in + cells->in * rows);
        kernels->tile.factors(w + at * bytes, gauss ? in * tiles->out : rows, line + l * bytes,
                              line + TILE_LINE_BYTES + l * bytes, rows, gauss);
    }
}

// Two lines of cells: scratch holds their rows, the transform's elements and the two spectra.
static void fill_pair(void *context, size_t task, int worker)
{
    const struct filling *filling = context;
    const struct tiles *tiles = filling->plan->state;
    const struct tile_tables *transform = &tiles->transform;
    const struct kernels *kernels = filling->plan->kernels;
    const size_t bytes = tiles->grid.scalar_bytes, units = tiles->in * lines_of_outputs(tiles),
                 *n = transform->n;
    char *rows = filling->scratch + (size_t)worker * filling->scratch_bytes;
    char *z = rows + tiles_rows_bytes(tiles, n), *line = z + mem_round(tiles_transform_bytes(n));
    const size_t bin = 4 * tiles->lanes;
    struct cells cells[2] = {{0}};
    const struct tile_spectrum a = {line, bin, tiles->lanes},
                               b = {line + 2 * TILE_LINE_BYTES, bin, tiles->lanes};
    memset(z, 0, tiles_transform_bytes(n));
    for (size_t i = 0; i < 2 && 2 * task + i < units; i++) {
        const size_t unit = 2 * task + i;
        cells[i] =
            cells_of(tiles, filling->group, unit % tiles->in, unit / tiles->in * tiles->lanes);
        for (size_t d = 0; d < tiles->grid.axis[0].taps; d++)
            for (size_t h = 0; h < tiles->grid.axis[1].taps; h++)
                gather_taps(&cells[i], kernels, filling->w,
                            z + ((d * transform->step[0] + h * transform->step[1]) * 2 + i) *
                                    TILE_LINE_BYTES,
                            d, h, rows);
    }
    for (size_t d = 0; d < tiles->grid.axis[0].taps; d++)
        for (size_t h = 0; h < tiles->grid.axis[1].taps; h++)
            tiles_transform_row(transform, kernels,
                                z + (d * transform->step[0] + h * transform->step[1]) * 2 *
                                        TILE_LINE_BYTES);
    tiles_transform_columns(transform, kernels, z);
    kernels->tile.split(&a, &b, z, transform->pair, transform->bins);
    const size_t cell = tiles_filter_scalars(tiles, 1) / tiles->grid.groups * bytes;
    for (size_t f = 0; f < transform->bins; f++)
        for (size_t i = 0; i < 2 && cells[i].n; i++)
            put_taps(tiles, kernels,
                     filling->spectra + (filling->group * transform->bins + f) * cell,
                     line + (4 * f + 2 * i) * TILE_LINE_BYTES, &cells[i]);
}

enum partita_status tiles_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct tiles *tiles = plan->state;
    const size_t *n = tiles->transform.n;
    struct filling filling = {.plan = plan, .w = taps};
    filling.scratch_bytes =
        size_add(size_add(tiles_rows_bytes(tiles, n), mem_round(tiles_transform_bytes(n))),
                 tiles->transform.bins * 4 * TILE_LINE_BYTES);
    filter->state =
        mem_reserve(&plan->allocator, size_mul(tiles_filter_scalars(tiles, tiles->transform.bins),
                                               tiles->grid.scalar_bytes));
    filling.spectra = filter->state;
    filling.scratch =
        mem_reserve(&plan->allocator, size_mul((size_t)plan->threads, filling.scratch_bytes));
    if (!filter->state || !filling.scratch) {
        mem_release(&plan->allocator, filling.scratch);
        return PARTITA_ERR_NOMEM;
    }
    for (filling.group = 0; filling.group < tiles->grid.groups; filling.group++)
        thread_loop(plan->threads, (tiles->in * lines_of_outputs(tiles) + 1) / 2, fill_pair,
                    &filling);
    mem_release(&plan->allocator, filling.scratch);
    return PARTITA_OK;
}

// Row (d, h) of the gradient of a line of cells to where its taps are.
static void scatter_taps(const struct cells *cells, const struct kernels *kernels, char *gw,
                         const char *z, size_t d, size_t h, char *rows)
{
    const size_t bytes = cells->tiles->grid.scalar_bytes, taps = cells->tiles->grid.axis[2].taps;
    struct tile_rows to = {{0}, {0}, {0}};
    for (size_t l = 0; l < cells->n; l++) {
        const size_t at = cells->in_order ? tap_at(cells, l, d, h, 0) : 0;
        if (at == SIZE_MAX) continue;
        to.row[l] = cells->in_order ? gw + at * bytes : scratch_rows(cells->tiles, rows, l);
        to.end[l] = taps;
    }
    kernels->tile.scatter(&to, z, 2, taps, &(struct conv_finish){.bias = NULL});
    for (size_t l = 0; l < cells->n && !cells->in_order; l++)
        for (size_t i = 0; i < taps; i++) {
            const size_t tap = tap_at(cells, l, d, h, i);
            if (tap != SIZE_MAX) memcpy(gw + tap * bytes, (char *)to.row[l] + i * bytes, bytes);
        }
}

// Lines of output channels whose sums there are.
static size_t sum_lines(const struct tiles_call *call)
{
    return ceil_div(call->part_n, call->tiles->lanes);
}

static void store_weight_pair(void *context, size_t task, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *tiles = call->tiles;
    const struct tile_tables *transform = &tiles->transform;
    const struct kernels *kernels = call->plan->kernels;
    const bool turned = tiles->product == TILES_TURNED;
    const size_t lines = sum_lines(call), units = call->in_n * lines, *n = transform->n;
    char *rows = tiles_scratch(call, worker), *z = rows + tiles_rows_bytes(tiles, n);
    struct cells cells[2] = {{0}};
    struct tile_spectrum from[2] = {{0}};
    const size_t n_lines = 2 * task + 1 < units ? 2 : 1;
    for (size_t i = 0; i < n_lines; i++) {
        const size_t unit = 2 * task + i, in = unit / lines, line = unit % lines;
        cells[i] = cells_of(tiles, call->group, call->in_first + in,
                            call->part_first + line * tiles->lanes);
        from[i] =
            turned ? tiles_sums(tiles, call->y, call->in_n, in, line * tiles->lanes)
                   : tiles_spectrum(tiles, call->y, tiles->y_bin, lines * tiles->lanes, in, line);
    }
    kernels->tile.join(z, transform->pair, transform->bins, &from[0], &from[1],
                       0.25 / (double)(n[0] * n[1] * n[2]));
    tiles_transform_columns_inverse(transform, kernels, z);
    for (size_t d = 0; d < tiles->grid.axis[0].taps; d++)
        for (size_t h = 0; h < tiles->grid.axis[1].taps; h++) {
            char *row = z + (d * transform->step[0] + h * transform->step[1]) * 2 * TILE_LINE_BYTES;
            tiles_transform_row_inverse(transform, kernels, row);
            for (size_t i = 0; i < n_lines; i++)
                scatter_taps(&cells[i], kernels, call->to, row + i * TILE_LINE_BYTES, d, h, rows);
        }
}

void tiles_store_weight(const struct tiles_call *call)
{
    thread_loop(call->plan->threads, ceil_div(call->in_n * sum_lines(call), 2), store_weight_pair,
                (void *)call);
}
