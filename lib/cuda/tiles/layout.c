// SPDX-License-Identifier: MIT
// The sizes of the arrays of a call of cuda/tiles, by its choice.
#include <assert.h>

#include "base/sizes.h"
#include "cuda/device/grid.h"
#include "geometry/tile_size.h"
#include "geometry/tile_tables.h"
#include "tiles.h"

enum {
    MIN_THREADS = 32, // of a thread block
    BUTTERFLY = 8,    // elements of a thread's butterfly
    ROW_THREADS = 8,  // share a row of samples, so that each has several and finds its row seldom
    PITCH = 4,        // elements that any operand of a product is a multiple of
};

static struct cuda_tiles_side kernel_side(const struct tile_side *side)
{
    return (struct cuda_tiles_side){(int64_t)side->size, side->base, (int64_t)side->image,
                                    (int64_t)side->phase, (int64_t)side->step};
}

static struct cuda_tiles kernel_tiles(const struct tile_grid *grid)
{
    const int64_t phases = (int64_t)grid->phases;
    struct cuda_tiles tiles = {.taps = cuda_tap_map_of(grid),
                               .images = (int64_t)grid->images,
                               .phases = phases,
                               .tiles = (int64_t)grid->tiles,
                               .positions = (int64_t)(grid->batch * grid->images * grid->tiles),
                               .groups = (int64_t)grid->groups,
                               .in = (int64_t)grid->in * (grid->phases_out ? 1 : phases),
                               .out = (int64_t)grid->out * (grid->phases_out ? phases : 1),
                               .row_threads = 1,
                               .phases_out = grid->phases_out,
                               .f64 = grid->scalar_bytes == sizeof(double)};
    tiles.out_pitch = (int64_t)size_round_up((size_t)tiles.out, PITCH);
    for (int a = 0; a < 3; a++) {
        const struct tile_axis *axis = &grid->axis[a];
        tiles.axis[a] = (struct cuda_tiles_axis){.in = kernel_side(&axis->in),
                                                 .out = kernel_side(&axis->out),
                                                 .images = (int64_t)axis->images,
                                                 .phases = (int64_t)axis->phases,
                                                 .tiles = (int64_t)axis->tiles,
                                                 .tile = (int64_t)axis->tile,
                                                 .extent = (int64_t)axis->extent,
                                                 .first = axis->first,
                                                 .lead = axis->lead};
    }
    return tiles;
}

bool cuda_tiles_split(const struct request *request, const struct cuda_tiles_choice *choice,
                      struct cuda_tiles_layout *ret)
{
    const size_t shared_bytes = ((const struct cuda_device *)request->device)->shared_bytes;
    struct tile_grid grid;
    *ret = (struct cuda_tiles_layout){.direction = request->direction, .choice = *choice};
    if (!tile_grid_make(request->shape, request->direction, &grid)) return false;
    const size_t elements = shared_bytes / (2 * grid.scalar_bytes);
    if (!tile_size_split(&grid, choice->transform, elements, ret->n)) return false;
    const size_t positions = size_mul(size_mul(grid.batch, grid.images), grid.tiles);
    const size_t paths = size_mul(size_mul(grid.in, grid.out), grid.phases);
    if (size_mul(positions, paths) > PTRDIFF_MAX / 64) return false;
    ret->covers = grid.covers;
    ret->tiles = kernel_tiles(&grid);
    struct cuda_tiles *tiles = &ret->tiles;
    tiles->elements = (int)tile_tables_elements(ret->n);
    tiles->bins = (int)tile_tables_bins(ret->n);
    assert(tiles->elements > 0 && tiles->bins > 0 && tiles->bins <= tiles->elements);
    tiles->gauss = choice->variant == CUDA_TILES_GAUSS;
    tiles->fused = choice->variant == CUDA_TILES_FUSED;
    tiles->relu = request->shape->relu && request->direction == PARTITA_FORWARD;
    while (tiles->row_threads < ROW_THREADS && tiles->row_threads < (int)ret->n[2])
        tiles->row_threads *= 2;
    return true;
}

void cuda_tiles_set_pairs(struct cuda_tiles_layout *layout, int pairs)
{
    struct cuda_tiles *tiles = &layout->tiles;
    assert(pairs > 0 && pairs <= CUDA_TILES_PAIRS);
    layout->choice.pairs = tiles->pairs = pairs;
    tiles->threads = MIN_THREADS;
    while (tiles->threads < CUDA_TILES_THREADS &&
           tiles->threads * BUTTERFLY < pairs * tiles->elements)
        tiles->threads *= 2;
    assert(tiles->threads <= CUDA_TILES_THREADS && tiles->threads % tiles->row_threads == 0);
    int buffers = pairs; // of a thread block; a fused kernel has sums besides
    if (tiles->fused && layout->direction == PARTITA_BACKWARD_WEIGHT) buffers = pairs + 1;
    else if (tiles->fused && tiles->in > 1) buffers = 2 * pairs;
    layout->shared_bytes = cuda_tiles_shared_bytes(tiles, buffers);
}

// Bytes of the spectra of lines [group][bin][lines][pitch].
static size_t tile_spectra_bytes(const struct cuda_tiles *tiles, int64_t groups, int64_t lines,
                                 int64_t pitch)
{
    const size_t element = (tiles->gauss ? 3 : 2) * (tiles->f64 ? sizeof(double) : sizeof(float));
    return size_mul(size_mul((size_t)groups * (size_t)tiles->bins, (size_t)lines),
                    size_mul((size_t)pitch, element));
}

void cuda_tiles_set_batch(struct cuda_tiles_layout *layout, int64_t groups, int64_t blocks,
                          int64_t chunks)
{
    const struct cuda_tiles *tiles = &layout->tiles;
    const bool weight = layout->direction == PARTITA_BACKWARD_WEIGHT;
    struct cuda_tiles_batch *batch = &layout->batch;
    assert(groups > 0 && blocks > 0 && chunks > 0);
    layout->choice.groups = batch->groups = groups;
    layout->choice.blocks = blocks;
    layout->choice.chunks = chunks;
    const size_t each = ceil_div((size_t)tiles->positions, (size_t)blocks);
    batch->block = (int64_t)size_round_up(each ? each : 1, 2 * (size_t)tiles->pairs);
    batch->pitch = (int64_t)size_round_up((size_t)batch->block, PITCH);
    assert(batch->block % (2 * tiles->pairs) == 0 && batch->pitch >= batch->block);
    const int64_t taps_pitch = tiles->fused ? tiles->out : tiles->out_pitch;
    layout->filter_group = tile_spectra_bytes(tiles, 1, tiles->in, taps_pitch);
    layout->filter_bytes = weight ? 0 : size_mul(layout->filter_group, (size_t)tiles->groups);
    if (!tiles->fused) { // which needs no memory but for the gradient of the taps
        const size_t of_out =
            mem_round(tile_spectra_bytes(tiles, groups, tiles->out, batch->pitch));
        layout->x_bytes = mem_round(tile_spectra_bytes(tiles, groups, tiles->in, batch->pitch));
        *(weight ? &layout->d_bytes : &layout->y_bytes) = of_out;
    }
    if (!weight) return;
    layout->y_bytes = mem_round(size_mul(layout->filter_group, (size_t)groups));
    const bool several = chunks > 1 || (blocks > 1 && !tiles->fused);
    layout->sum_bytes = several ? size_mul(layout->y_bytes, (size_t)chunks) : 0;
}

size_t cuda_tiles_workspace(const struct cuda_tiles_layout *layout)
{
    return size_add(size_add(layout->cached ? 0 : layout->x_bytes, layout->d_bytes),
                    size_add(layout->y_bytes, layout->sum_bytes));
}

static int64_t position_batches(const struct cuda_tiles_layout *layout)
{
    return (int64_t)ceil_div((size_t)layout->tiles.positions, (size_t)layout->batch.block);
}

int64_t cuda_tiles_batches(const struct cuda_tiles_layout *layout)
{
    return (int64_t)ceil_div((size_t)layout->tiles.groups, (size_t)layout->batch.groups) *
           position_batches(layout);
}

struct cuda_product cuda_tiles_product(const struct cuda_tiles_layout *layout,
                                       const struct cuda_tiles_batch *batch)
{
    const struct cuda_tiles *tiles = &layout->tiles;
    const enum cuda_element real = tiles->f64 ? CUDA_F64 : CUDA_F32;
    const enum cuda_element complex = tiles->f64 ? CUDA_CF64 : CUDA_CF32;
    assert(!tiles->fused && batch->block <= batch->pitch);
    const int64_t x_plane = batch->pitch * tiles->in, y_plane = batch->pitch * tiles->out;
    const struct cuda_matrices taps = {tiles->out_pitch, tiles->out_pitch * tiles->in, false};
    struct cuda_product product = {.element = tiles->gauss ? real : complex,
                                   .batch = batch->groups * tiles->bins * (tiles->gauss ? 3 : 1),
                                   .chunks = 1};
    if (layout->direction == PARTITA_BACKWARD_WEIGHT) {
        product.rows = tiles->in;
        product.columns = tiles->out;
        product.terms = batch->block;
        product.chunks = layout->choice.chunks;
        product.a = (struct cuda_matrices){batch->pitch, x_plane, true};
        product.b = (struct cuda_matrices){batch->pitch, y_plane, true};
        product.c = taps;
        product.chunk_plane = product.batch * taps.plane;
        return product;
    }
    product.rows = tiles->out;
    product.columns = batch->block;
    product.terms = tiles->in;
    product.a = taps;
    product.b = (struct cuda_matrices){batch->pitch, x_plane, false};
    product.c = (struct cuda_matrices){batch->pitch, y_plane, false};
    return product;
}
