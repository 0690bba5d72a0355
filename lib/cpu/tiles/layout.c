// SPDX-License-Identifier: MIT
// How cpu/tiles splits a layer into tiles, batches of them and chunks of channels, and what arrays
// that needs (decision 15).
#include <assert.h>

#include "geometry/tile_search.h"
#include "tiles.h"

static size_t staged_bytes(const struct tiles *p, size_t lines)
{
    return size_mul(size_mul(lines, TILE_LINE_BYTES), tiles_lane_pitch(p));
}

bool tiles_layout_size(const struct request *request, const struct tile_grid *whole,
                       size_t transform, struct tiles *ret)
{
    *ret = (struct tiles){.grid = *whole, .weight = request->direction == PARTITA_BACKWARD_WEIGHT};
    struct tile_grid *grid = &ret->grid;
    if (!tile_size_split(grid, transform, TILES.max_elements, ret->n)) return false;
    ret->bins = tile_tables_bins(ret->n);
    ret->in = size_mul(grid->in, grid->branches_out ? 1 : grid->branches);
    ret->out = size_mul(grid->out, grid->branches_out ? grid->branches : 1);
    ret->lanes = TILE_LINE_BYTES / grid->scalar_bytes;
    ret->positions = size_mul(size_mul(grid->batch, grid->images), grid->tiles);
    const struct tile_axis *axis = grid->axis;
    const struct tile_costs costs = tile_tables_costs(ret->n);
    ret->load = tile_tables_flops(ret->n, ret->n[0] * ret->n[1], &costs);
    ret->store = tile_tables_flops(ret->n, axis[0].tile * axis[1].tile, &costs);
    ret->taps = tile_tables_flops(ret->n, axis[0].taps * axis[1].taps, &costs);
    ret->staged = request->shape->channels_last ? ret->lanes : 0;
    while (ret->staged > TILES.min_staged && staged_bytes(ret, ret->staged) > TILES.staged_bytes)
        ret->staged /= 2;
    return size_mul(ret->positions, size_mul(ret->in, ret->out)) <= PTRDIFF_MAX / 64;
}

static struct tiles_kept layout_kept(const struct tiles *p)
{
    enum { ELEMENT_BYTES = 2 * TILE_LINE_BYTES };
    const size_t row = p->grid.axis[2].taps | 1, plane = size_mul(row, p->n[1]) | 1;
    const size_t lines = ceil_div(p->out, p->lanes);
    const size_t gy = size_mul(size_mul(p->bins, p->positions), ELEMENT_BYTES);
    struct tiles_kept kept = {.step = {plane, row},
                              .elements = size_mul(plane, p->n[0]),
                              .row = (p->n[0] * p->n[1] > 1 ? 2 : 1) * p->n[2],
                              .pairs = gy > TILES.near_bytes ? TILES_MAX_PAIRS : TILES_PAIRS};
    const size_t bytes = size_mul(kept.elements, ELEMENT_BYTES);
    while (kept.pairs > TILES_PAIRS && (size_mul(kept.pairs, bytes) > TILES.near_bytes ||
                                        lines * ceil_div(p->in, 2 * kept.pairs) < TILES.min_tasks))
        kept.pairs /= 2;
    kept.bytes = size_add(size_mul(kept.pairs, bytes), TILES_PAIRS * kept.row * ELEMENT_BYTES);
    return kept;
}

// One batch of all positions; panels as even as three lines at most can be.
static void layout_transposed(const struct tiles_params *params, struct tiles *p)
{
    const size_t lines = ceil_div(p->out, p->lanes);
    size_t panel = 1;
    if (lines % 3 == 0) panel = 3;
    else if (lines % 2 == 0) panel = 2;
    p->panel = panel * p->lanes;
    p->batch = p->positions;
    p->x_scalars = size_round_up(size_mul(p->in, p->positions), p->lanes);
    p->oc_chunk = params->oc_chunk < p->out ? tiles_whole_panels(p, params->oc_chunk) : p->out;
    p->chunk = size_min(p->in, TILES.max_terms / 2);
    p->x_bin = tiles_odd_lines(p, size_mul(2, p->x_scalars));
    p->y_bin = tiles_odd_lines(p, size_mul(2 * p->positions, tiles_whole_panels(p, p->oc_chunk)));
    if (p->windows)
        p->y_bin = tiles_odd_lines(p, size_mul(2 * p->positions, size_round_up(p->in, p->lanes)));
    if (p->weight || p->windows)
        p->gy_bin = size_mul(2 * p->positions, size_round_up(p->out, p->lanes));
    if (!p->weight) return;
    p->oc_chunk = p->out;
    p->y_bin = p->chunk = 0;
    p->kept = layout_kept(p);
}

void tiles_layout_batches(const struct tiles_params *params, struct tiles *p)
{
    p->product = params->product;
    p->gy_bin = p->kept.bytes = 0;
    if (p->product == TILES_TRANSPOSED) {
        layout_transposed(params, p);
        return;
    }
    const size_t batches = p->positions ? ceil_div(p->positions, params->batch) : 1;
    const size_t out = size_round_up(p->out, p->lanes);
    p->batch = size_max(size_round_up(ceil_div(p->positions, batches), p->lanes), p->lanes);
    const size_t chunk = size_min(params->oc_chunk, p->out); // begins with a block of factors
    p->oc_chunk = p->weight ? p->out : size_min(size_round_up(chunk, CONV_CHANNELS), p->out);
    assert(p->batch * batches >= p->positions);
    const size_t terms = p->product == TILES_GAUSS ? TILES.max_terms : TILES.max_terms / 2;
    const size_t row = 2 * p->batch;
    p->chunk = size_min(p->weight ? p->batch : p->in, terms);
    p->x_bin = tiles_odd_lines(p, size_mul(p->in, row));
    p->y_bin =
        tiles_odd_lines(p, p->weight ? size_mul(p->in, 2 * out) : size_mul(p->oc_chunk, row));
    if (p->weight || p->windows) p->gy_bin = tiles_odd_lines(p, size_mul(out, row));
    if (p->windows) p->y_bin = tiles_odd_lines(p, size_mul(size_round_up(p->in, p->lanes), row));
}

bool tiles_layout(const struct request *request, const struct tiles_params *params,
                  struct tiles *ret)
{
    struct tile_grid grid;
    const enum partita_direction direction = params->windows ? PARTITA_FORWARD : request->direction;
    if (!tile_grid_make(request->shape, direction, &grid)) return false;
    grid.sevens = true;
    if (!tiles_layout_size(request, &grid, params->transform, ret)) return false;
    ret->windows = params->windows;
    tiles_layout_batches(params, ret);
    return true;
}

size_t tiles_spectra_bytes(const struct tiles *p, size_t bin)
{
    return mem_round(size_mul(size_mul(p->bins, bin), p->grid.scalar_bytes));
}

struct tiles_shared tiles_layout_shared(const struct tiles *p, bool cached, struct arena *arena)
{
    const size_t positions = size_mul(p->batch, sizeof(struct tiles_position));
    return (struct tiles_shared){
        .position = arena_take(arena, positions),
        .x = arena_take(arena, cached || p->windows ? 0 : tiles_spectra_bytes(p, p->x_bin)),
        .y = arena_take(arena, tiles_spectra_bytes(p, p->y_bin)),
        .gy = arena_take(arena, tiles_spectra_bytes(p, p->gy_bin))};
}

size_t tiles_shared_bytes(const struct tiles *p, bool cached)
{
    struct arena arena = {0};
    tiles_layout_shared(p, cached, &arena);
    return arena.used;
}

// Products do not need what transforms do: both begin at the same place.
struct tiles_worker tiles_layout_worker(const struct tiles *p, struct arena *arena)
{
    const bool transposed = p->product == TILES_TRANSPOSED;
    const size_t bytes = p->grid.scalar_bytes, row = p->batch * bytes;
    const struct tile_axis *axis = p->grid.axis;
    const size_t taps = size_mul(axis[0].kernel * axis[1].kernel * axis[2].kernel, TILE_LINE_BYTES);
    const size_t z = size_max(tiles_transform_bytes(p->n), p->kept.bytes);
    size_t term = 3 * (p->weight ? size_round_up(p->out, p->lanes) * bytes : row);
    if (transposed) term = size_mul(4 * bytes, p->positions);
    size_t packed = size_mul(p->chunk, term);
    if (p->windows)
        packed = size_mul(TILES.window_terms, 3 * size_round_up(p->in, p->lanes) * bytes);
    struct arena product = *arena;
    const struct tiles_worker ret = {
        .rows = arena_take(arena, size_mul((p->lanes + 1) * bytes, p->n[2])),
        .z = arena_take(arena, z),
        .sum = arena_take(arena, p->windows ? size_mul(2 * TILE_LINE_BYTES, p->n[2]) : 0),
        .taps = arena_take(arena, p->weight ? taps : 0),
        .staged = arena_take(arena, staged_bytes(p, tiles_staged(p))),
        .packed = arena_take(&product, packed),
        .sums = arena_take(&product, p->product == TILES_GAUSS ? size_mul(p->oc_chunk, row) : 0)};
    arena->used = size_max(arena->used, product.used);
    return ret;
}

size_t tiles_worker_bytes(const struct tiles *p)
{
    struct arena arena = {0};
    tiles_layout_worker(p, &arena);
    return arena.used;
}

size_t tiles_factor_scalars(const struct tiles *p, size_t n)
{
    const size_t out = p->product == TILES_TRANSPOSED ? tiles_whole_panels(p, n) : n;
    return size_mul(size_mul(p->in, out), p->product == TILES_GAUSS ? 3 : 2);
}

size_t tiles_filter_scalars(const struct tiles *p, size_t bins)
{
    return size_mul(size_mul(tiles_factor_scalars(p, p->out), bins), p->grid.groups);
}

size_t tiles_chunk_scalars(const struct tiles *p, size_t group, size_t bin, size_t first)
{
    const size_t chunk = tiles_factor_scalars(p, size_min(p->oc_chunk, p->out - first));
    return (group * tiles_factor_scalars(p, p->out) + tiles_factor_scalars(p, first)) * p->bins +
           bin * chunk;
}
