// SPDX-License-Identifier: MIT
// Taps into spectra and the gradient's spectra into taps: lanes are output channels here, a line of
// them for one input channel. Spectra of a filter are conjugated and laid out for kernels->conv:
//   [group][chunk][bin]        [terms][8 output channels][in][re, im][output channel]
//   [group][chunk][bin][three] [terms][8 output channels][in][output channel]
// for four real products and for Gauss's three (tile_factors_fn). Chunks are of output channels,
// terms of the input channels of one call, so that products read them in order. Transposed:
// tiles.h.
#include <string.h>

#include "tiles.h"

// Index into w of tap (d, h, i) of lane l; SIZE_MAX: none.
static size_t find_tap(const struct tap_line *line, size_t l, size_t d, size_t h, size_t i)
{
    const struct tile_grid *grid = &line->p->grid;
    const size_t taps = grid->axis[0].kernel * grid->axis[1].kernel * grid->axis[2].kernel;
    size_t in = line->in, out = line->first + l, branch[3];
    tile_grid_branch(grid, (grid->branches_out ? out : in) % grid->branches, branch);
    if (grid->branches_out) out /= grid->branches;
    else in /= grid->branches;
    const size_t tap = tile_grid_tap(grid, branch, (const size_t[]){d, h, i});
    return tap == SIZE_MAX ? tap : tile_grid_path(grid, line->group, out, in) * taps + tap;
}

struct tap_line tiles_tap_line(const struct tiles *p, size_t group, size_t in, size_t out)
{
    const struct tile_grid *grid = &p->grid;
    struct tap_line line = {.p = p,
                            .group = group,
                            .in = in,
                            .first = out,
                            .n = size_min(p->out - out, p->lanes),
                            .regular = grid->branches == 1};
    line.in_order = grid->axis[2].period == 1 && !grid->flip && !grid->axis[2].reversed;
    if (!line.regular) return line;
    line.begin = find_tap(&line, 0, 0, 0, 0);
    if (line.n > 1) line.lane = find_tap(&line, 1, 0, 0, 0) - line.begin;
    for (int a = 0; a < 3; a++)
        if (grid->axis[a].taps > 1)
            line.step[a] = find_tap(&line, 0, a == 0, a == 1, a == 2) - line.begin;
    return line;
}

// The same by steps where that is possible.
static size_t tap_at(const struct tap_line *line, size_t l, size_t d, size_t h, size_t i)
{
    if (!line->regular) return find_tap(line, l, d, h, i);
    return line->begin + l * line->lane + d * line->step[0] + h * line->step[1] + i * line->step[2];
}

// Row (d, h) of the taps of a line into z.
static void gather_taps(const struct tap_line *line, const struct tiles_call *call, char *z,
                        size_t d, size_t h, char *rows)
{
    const struct tiles *p = line->p;
    const size_t bytes = p->grid.scalar_bytes, taps = p->grid.axis[2].taps;
    const void *from[TILE_MAX_LANES];
    for (size_t l = 0; l < p->lanes; l++) {
        char *copy = rows + l * p->n[2] * bytes;
        from[l] = copy;
        const size_t at = l < line->n ? tap_at(line, l, d, h, 0) : SIZE_MAX;
        if (line->in_order && at != SIZE_MAX) {
            from[l] = call->x + at * bytes;
            continue;
        }
        memset(copy, 0, taps * bytes);
        for (size_t i = 0; l < line->n && i < taps; i++) {
            const size_t tap = tap_at(line, l, d, h, i);
            if (tap != SIZE_MAX) memcpy(copy + i * bytes, call->x + tap * bytes, bytes);
        }
    }
    call->kernels->tile.gather(z, 2, from, taps);
}

// A few output channels of a line of taps: their spectrum, and where their factors of the first bin
// go. bin: bytes from one bin's factors to the next. im: scalars from real to imaginary parts, or
// between Gauss's factors. rows: the number of output channels.
struct factor_block {
    char *to;
    const char *spectrum;
    size_t bin, im, rows;
};
enum { FACTOR_BLOCKS = TILE_MAX_LANES / CONV_CHANNELS };

// The blocks of a line: the whole line in transposed products, else CONV_CHANNELS. Returns their
// number.
static size_t list_blocks(const struct tiles_call *call, const struct tap_line *line,
                          const char *spectrum, struct factor_block *ret)
{
    const struct tiles *p = line->p;
    const size_t bytes = p->grid.scalar_bytes;
    const bool gauss = p->product == TILES_GAUSS, transposed = p->product == TILES_TRANSPOSED;
    size_t n = 0;
    for (size_t l = 0; l < line->n; l += transposed ? p->lanes : CONV_CHANNELS, n++) {
        const size_t first = (line->first + l) / p->oc_chunk * p->oc_chunk;
        const size_t k = line->first + l - first, out = size_min(p->oc_chunk, p->out - first);
        const size_t at = tiles_chunk_scalars(p, call->group, 0, first);
        struct factor_block block = {
            .to = call->to + at * bytes,
            .spectrum = spectrum + l * bytes,
            .bin = (tiles_chunk_scalars(p, call->group, 1, first) - at) * bytes,
            .rows = transposed ? p->lanes : size_min(out - k, CONV_CHANNELS)};
        block.im = gauss ? p->in * out : block.rows;
        if (transposed) {
            const struct tile_spectrum to = tiles_factors(p, block.to, line->in, k);
            block.to = to.re;
            block.im = to.im;
        } else block.to += tiles_factor_index(p, line->in, k, out) * bytes;
        ret[n] = block;
    }
    return n;
}

// Stores the spectra of two lines, of which the second may be none, in the layout of the product.
static void put_factors(const struct tiles_call *call, const struct tap_line line[2],
                        const char *spectra)
{
    struct factor_block block[2 * FACTOR_BLOCKS];
    size_t n = list_blocks(call, &line[0], spectra, block);
    if (line[1].n) n += list_blocks(call, &line[1], spectra + 2 * TILE_LINE_BYTES, block + n);
    const bool gauss = call->p->product == TILES_GAUSS;
    for (size_t bin = 0; bin < call->p->bins; bin++)
        for (size_t i = 0; i < n; i++) {
            const char *re = block[i].spectrum + bin * 4 * TILE_LINE_BYTES;
            call->kernels->tile.factors(block[i].to + bin * block[i].bin, block[i].im, re,
                                        re + TILE_LINE_BYTES, block[i].rows, gauss);
        }
}

// Two lines of taps. A worker's memory holds their rows, the transform's elements and the two
// spectra.
static void fill_pair(void *context, size_t task, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    const struct kernels *kernels = call->kernels;
    const size_t bin = 4 * p->lanes;
    const size_t lines = p->in * ceil_div(p->out, p->lanes);
    const size_t taps[2] = {p->grid.axis[0].taps, p->grid.axis[1].taps};
    struct arena arena = tiles_worker_arena(call, worker);
    const struct tiles_worker memory = tiles_layout_worker(p, &arena);
    char *spectra = arena.base + arena.used;
    struct tap_line line[2] = {{0}};
    const struct tile_spectrum a = {spectra, bin, p->lanes};
    const struct tile_spectrum b = {spectra + 2 * TILE_LINE_BYTES, bin, p->lanes};
    memset(memory.z, 0, tiles_transform_bytes(p->n));
    for (size_t i = 0; i < 2 && 2 * task + i < lines; i++) {
        const size_t at = 2 * task + i;
        line[i] = tiles_tap_line(p, call->group, at % p->in, at / p->in * p->lanes);
        for (size_t d = 0; d < taps[0]; d++)
            for (size_t h = 0; h < taps[1]; h++)
                gather_taps(&line[i], call, tiles_row(p, memory.z, d, h) + i * TILE_LINE_BYTES, d,
                            h, memory.rows);
    }
    for (size_t d = 0; d < taps[0]; d++)
        for (size_t h = 0; h < taps[1]; h++)
            tiles_transform_row(&p->tables, kernels->tile.forward, tiles_row(p, memory.z, d, h));
    tiles_transform_columns(&p->tables, kernels, memory.z);
    kernels->tile.split(&a, &b, memory.z, p->tables.pair, p->bins);
    put_factors(call, line, spectra);
}

// Memory of a worker that transforms taps: its elements, and the spectra of a pair of lines.
static size_t tiles_taps_worker_bytes(const struct tiles *p)
{
    struct arena worker = {0};
    tiles_layout_worker(p, &worker);
    arena_take(&worker, size_mul(p->bins, 4 * (size_t)TILE_LINE_BYTES));
    return worker.used;
}

struct filter_bytes tiles_filter_bytes(const struct partita_plan *plan)
{
    const struct tiles *p = plan->state;
    return (struct filter_bytes){
        .packed = size_mul(tiles_filter_scalars(p, p->bins), p->grid.scalar_bytes),
        .scratch = size_mul((size_t)plan->threads, tiles_taps_worker_bytes(p))};
}

enum partita_status tiles_filter_pack(struct partita_filter *filter, const void *taps,
                                      const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct tiles *p = plan->state;
    struct tiles_call call = {.plan = plan,
                              .p = p,
                              .kernels = plan->kernels,
                              .x = taps,
                              .to = filter->state,
                              .workers = scratch->data,
                              .worker_bytes = tiles_taps_worker_bytes(p)};
    const int threads = plan_threads_in(plan, scratch, call.worker_bytes);
    const size_t pairs = ceil_div(p->in * ceil_div(p->out, p->lanes), 2);
    for (; call.group < p->grid.groups; call.group++) thread_loop(threads, pairs, fill_pair, &call);
    return PARTITA_OK;
}

// Keeps row (d, h) of a line's gradient.
static void stage_taps(const struct tap_line *line, char *staged, const char *z,
                       const size_t row[2])
{
    const struct tiles *p = line->p;
    const struct tile_axis *axis = p->grid.axis;
    const size_t taps = axis[2].taps, all = axis[0].taps * axis[1].taps * taps;
    const size_t first = (row[0] * axis[1].taps + row[1]) * taps;
    // All lanes have their taps in the same order.
    size_t at = line->regular ? tap_at(line, 0, row[0], row[1], 0) % all : first;
    for (size_t i = 0; i < taps; i++, at += line->regular ? line->step[2] : 1)
        memcpy(staged + at * TILE_LINE_BYTES, z + i * 2 * TILE_LINE_BYTES, TILE_LINE_BYTES);
}

void tiles_write_taps(const struct tap_line *line, const struct tiles_call *call, char *staged,
                      const char *z, const size_t step[2])
{
    const struct tiles *p = line->p;
    const struct tile_axis *axis = p->grid.axis;
    const size_t bytes = p->grid.scalar_bytes, taps = axis[2].taps;
    const size_t rows = axis[0].taps * axis[1].taps, all = rows * taps;
    char *gw = call->to;
    for (size_t d = 0; d < axis[0].taps; d++)
        for (size_t h = 0; h < axis[1].taps; h++)
            stage_taps(line, staged, z + (d * step[0] + h * step[1]) * 2 * TILE_LINE_BYTES,
                       (size_t[]){d, h});
    if (line->regular) {
        void *to[TILE_MAX_LANES] = {NULL};
        for (size_t l = 0; l < line->n; l++)
            to[l] = gw + (line->begin - line->begin % all + l * line->lane) * bytes;
        call->kernels->lanes_write(to, 1, staged, all, NULL, false);
        return;
    }
    for (size_t l = 0; l < line->n; l++)
        for (size_t at = 0; at < all; at++) {
            const size_t row = at / taps;
            const size_t tap = find_tap(line, l, row / axis[1].taps, row % axis[1].taps, at % taps);
            if (tap != SIZE_MAX)
                memcpy(gw + tap * bytes, staged + at * TILE_LINE_BYTES + l * bytes, bytes);
        }
}

static void store_weight_pair(void *context, size_t task, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    const size_t lines = ceil_div(p->out, p->lanes); // of output channels
    struct arena arena = tiles_worker_arena(call, worker);
    const struct tiles_worker memory = tiles_layout_worker(p, &arena);
    struct tap_line line[2] = {{0}};
    struct tile_spectrum from[2] = {{0}};
    const size_t n = 2 * task + 1 < p->in * lines ? 2 : 1;
    for (size_t i = 0; i < n; i++) {
        const size_t in = (2 * task + i) / lines, out = (2 * task + i) % lines * p->lanes;
        const size_t row = lines * p->lanes, at = in * 2 * row + out;
        line[i] = tiles_tap_line(p, call->group, in, out);
        from[i] =
            (struct tile_spectrum){call->spectra.y + at * p->grid.scalar_bytes, p->y_bin, row};
    }
    call->kernels->tile.join(memory.z, p->tables.pair, p->bins, &from[0], &from[1],
                             0.25 / (double)(p->n[0] * p->n[1] * p->n[2]));
    tiles_transform_columns_inverse(&p->tables, call->kernels, memory.z);
    const size_t taps[2] = {p->grid.axis[0].taps, p->grid.axis[1].taps};
    for (size_t d = 0; d < taps[0]; d++)
        for (size_t h = 0; h < taps[1]; h++)
            tiles_transform_row(&p->tables, call->kernels->tile.inverse,
                                tiles_row(p, memory.z, d, h));
    for (size_t i = 0; i < n; i++)
        tiles_write_taps(&line[i], call, memory.taps, memory.z + i * TILE_LINE_BYTES,
                         p->tables.step);
}

void tiles_store_weight(const struct tiles_call *call)
{
    const size_t lines = call->p->in * ceil_div(call->p->out, call->p->lanes);
    thread_loop(call->plan->threads, ceil_div(lines, 2), store_weight_pair, (void *)call);
}
