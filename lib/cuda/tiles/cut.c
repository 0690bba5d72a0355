// SPDX-License-Identifier: MIT
#include "cut.h"

#include <math.h>

#include "base/sizes.h"
#include "geometry/tile_size.h"
#include "geometry/tile_tables.h"

enum {
    USUAL_SHARED = 48 << 10, // bytes of a thread block, so that a processor holds several
    USUAL_WORKSPACE = 1 << 30,
    LEAST_THREADS = 32,
    BUTTERFLY = 8, // elements of a thread's butterfly
    SECTOR =
        8, // threads that share a row of samples, so that each has several and finds its row seldom
    PITCH = 4, // elements that any operand of a product is a multiple of
    PROCESSORS =
        128, // that products of backward weight are cut for: bits do not depend on the device
    MOST_PARTS = 32,
};

static int64_t round_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b * b;
}

static struct cuda_tiles_side side_of(const struct tile_side *side)
{
    return (struct cuda_tiles_side){(int64_t)side->size, side->base, (int64_t)side->image,
                                    (int64_t)side->phase, (int64_t)side->step};
}

static struct cuda_tiles_axis axis_of(const struct tile_axis *axis)
{
    return (struct cuda_tiles_axis){.in = side_of(&axis->in),
                                    .out = side_of(&axis->out),
                                    .images = (int64_t)axis->images,
                                    .phases = (int64_t)axis->phases,
                                    .tiles = (int64_t)axis->tiles,
                                    .kernel = (int64_t)axis->kernel,
                                    .period = (int64_t)axis->period,
                                    .taps = (int64_t)axis->taps,
                                    .tile = (int64_t)axis->tile,
                                    .extent = (int64_t)axis->extent,
                                    .first = axis->first,
                                    .lead = axis->lead,
                                    .reversed = axis->reversed};
}

static struct cuda_tiles tiles_of(const struct tile_grid *grid, bool f64)
{
    const int64_t phases = (int64_t)grid->phases;
    struct cuda_tiles tiles = {.batch = (int64_t)grid->batch,
                               .images = (int64_t)grid->images,
                               .phases = phases,
                               .tiles = (int64_t)grid->tiles,
                               .positions = (int64_t)(grid->batch * grid->images * grid->tiles),
                               .groups = (int64_t)grid->groups,
                               .in = (int64_t)grid->in * (grid->phases_out ? 1 : phases),
                               .out = (int64_t)grid->out * (grid->phases_out ? phases : 1),
                               .phases_out = grid->phases_out,
                               .flip = grid->flip,
                               .f64 = f64};
    tiles.out_pitch = round_up(tiles.out, PITCH);
    for (int a = 0; a < 3; a++) tiles.axis[a] = axis_of(&grid->axis[a]);
    return tiles;
}

// Pairs of tiles that a thread block holds for so many that it transforms at once.
static int held_pairs(const struct cuda_tiles_cut *cut, int pairs)
{
    if (!cut->tiles.fused) return pairs;
    if (cut->direction == PARTITA_BACKWARD_WEIGHT) return pairs + 1;
    return cut->tiles.in > 1 ? 2 * pairs : pairs;
}

// A thread block of so many pairs of tiles.
static void cut_pairs(struct cuda_tiles_cut *cut, int pairs)
{
    struct cuda_tiles *tiles = &cut->tiles;
    tiles->pairs = pairs;
    tiles->threads = LEAST_THREADS;
    while (tiles->threads < CUDA_TILES_THREADS &&
           tiles->threads * BUTTERFLY < pairs * tiles->elements)
        tiles->threads *= 2;
    cut->shared_bytes = cuda_tiles_shared_bytes(tiles, held_pairs(cut, pairs));
}

// Turns of a thread for a pair's butterflies, of those that a thread block of so many pairs takes.
static double turns_of(const struct cuda_tiles_cut *cut, int pairs)
{
    const double butterflies = (double)(cut->n[0] * cut->n[1] * cut->n[2]) / BUTTERFLY;
    return ceil(pairs * butterflies / CUDA_TILES_THREADS) / pairs;
}

// As many pairs as there are and leave room for other thread blocks, or fewer if threads are idle
// less; false if not one fits.
static bool cut_block(struct cuda_tiles_cut *cut, size_t shared_bytes)
{
    struct cuda_tiles *tiles = &cut->tiles;
    const bool single =
        tiles->fused && cut->direction == PARTITA_BACKWARD_WEIGHT; // a pair is of one position
    const int64_t wanted = single ? tiles->positions : (tiles->positions + 1) / 2;
    tiles->row_threads = 1;
    while (tiles->row_threads < SECTOR && tiles->row_threads < (int)cut->n[2])
        tiles->row_threads *= 2;
    cut_pairs(cut, wanted < 1 ? 1 : wanted > CUDA_TILES_PAIRS ? CUDA_TILES_PAIRS : (int)wanted);
    while (tiles->pairs > 1 && cut->shared_bytes > USUAL_SHARED) cut_pairs(cut, tiles->pairs - 1);
    int best = tiles->pairs;
    for (int pairs = best - 1; 2 * pairs >= tiles->pairs && pairs > 0; pairs--)
        if (turns_of(cut, pairs) < 0.95 * turns_of(cut, best)) best = pairs;
    cut_pairs(cut, best);
    return cut->shared_bytes <= shared_bytes;
}

static enum cuda_element element_of(const struct cuda_tiles_cut *cut)
{
    if (cut->tiles.gauss) return cut->tiles.f64 ? CUDA_F64 : CUDA_F32;
    return cut->tiles.f64 ? CUDA_CF64 : CUDA_CF32;
}

struct cuda_product cuda_tiles_product(const struct cuda_tiles_cut *cut,
                                       const struct cuda_tiles_part *part)
{
    const struct cuda_tiles *tiles = &cut->tiles;
    const int64_t batch = part->groups * tiles->bins * (tiles->gauss ? 3 : 1);
    struct cuda_product product = {.element = element_of(cut), .batch = batch, .parts = 1};
    if (cut->direction == PARTITA_BACKWARD_WEIGHT) {
        product.rows = tiles->in;
        product.columns = tiles->out;
        product.terms = part->block;
        product.parts = cut->parts;
        product.a = (struct cuda_matrices){part->pitch, part->pitch * tiles->in, true};
        product.b = (struct cuda_matrices){part->pitch, part->pitch * tiles->out, true};
        product.c = (struct cuda_matrices){tiles->out_pitch, tiles->out_pitch * tiles->in, false};
        product.part_plane = batch * product.c.plane;
        return product;
    }
    product.rows = tiles->out;
    product.columns = part->block;
    product.terms = tiles->in;
    product.a = (struct cuda_matrices){tiles->out_pitch, tiles->out_pitch * tiles->in, false};
    product.b = (struct cuda_matrices){part->pitch, part->pitch * tiles->in, false};
    product.c = (struct cuda_matrices){part->pitch, part->pitch * tiles->out, false};
    return product;
}

// Bytes of the spectra of lines [group][bin][lines][pitch].
static size_t spectra_bytes(const struct cuda_tiles_cut *cut, int64_t groups, int64_t lines,
                            int64_t pitch)
{
    const struct cuda_tiles *tiles = &cut->tiles;
    const size_t element = (tiles->gauss ? 3 : 2) * (tiles->f64 ? sizeof(double) : sizeof(float));
    return (size_mul(size_mul((size_t)groups * (size_t)tiles->bins, (size_t)lines),
                     size_mul((size_t)pitch, element)));
}

size_t cuda_tiles_workspace(const struct cuda_tiles_cut *cut)
{
    return size_add(size_add(cut->saved ? 0 : cut->x_bytes, cut->d_bytes),
                    size_add(cut->y_bytes, cut->sets_bytes));
}

// Spectra of so many groups and runs of positions.
static void cut_run(struct cuda_tiles_cut *cut, int64_t groups, int64_t blocks)
{
    const struct cuda_tiles *tiles = &cut->tiles;
    const int64_t run = 2 * (int64_t)tiles->pairs, each = (tiles->positions + blocks - 1) / blocks;
    struct cuda_tiles_part *most = &cut->most;
    most->groups = groups;
    most->block = round_up(each ? each : 1, run);
    most->pitch = round_up(most->block, PITCH);
    cut->x_bytes = mem_round(spectra_bytes(cut, groups, tiles->in, most->pitch));
    if (cut->direction != PARTITA_BACKWARD_WEIGHT) {
        cut->y_bytes = mem_round(spectra_bytes(cut, groups, tiles->out, most->pitch));
        return;
    }
    cut->d_bytes = mem_round(spectra_bytes(cut, groups, tiles->out, most->pitch));
    cut->y_bytes = mem_round(spectra_bytes(cut, groups, tiles->in, tiles->out_pitch));
    cut->sets_bytes = cut->parts > 1 || blocks > 1 ? size_mul(cut->y_bytes, (size_t)cut->parts) : 0;
}

// As few runs as the limit allows: positions are cut first, down to those of one thread block.
static bool cut_runs(struct cuda_tiles_cut *cut, size_t limit)
{
    const struct cuda_tiles *tiles = &cut->tiles;
    int64_t groups = tiles->groups, blocks = 1;
    const size_t most = size_min(limit, USUAL_WORKSPACE);
    for (;;) {
        const int64_t run = 2 * (int64_t)tiles->pairs, lines = (tiles->positions + run - 1) / run;
        cut_run(cut, groups, blocks);
        if (cuda_tiles_workspace(cut) <= most) return true;
        if (blocks < lines) blocks = 2 * blocks < lines ? 2 * blocks : lines;
        else if (groups > 1) groups = (groups + 1) / 2;
        else if (cuda_tiles_workspace(cut) <= limit) return true;
        else if (tiles->pairs > 1) cut_pairs(cut, tiles->pairs / 2);
        else return false;
    }
}

// Parts of the sums over positions where there are few results: as many as make the product faster.
static void cut_parts(struct cuda_tiles_cut *cut, size_t limit)
{
    const size_t most = size_min(limit, USUAL_WORKSPACE);
    struct cuda_tiles_cut other = *cut;
    struct cuda_product product = cuda_tiles_product(cut, &cut->most);
    double slots = cuda_product_slots(&product, PROCESSORS);
    for (other.parts = 2; other.parts <= MOST_PARTS; other.parts *= 2) {
        cut_run(&other, other.most.groups, cuda_tiles_blocks(&other));
        product = cuda_tiles_product(&other, &other.most);
        const double faster = cuda_product_slots(&product, PROCESSORS);
        if (faster > 0.8 * slots || cuda_tiles_workspace(&other) > most) return;
        slots = faster;
        *cut = other;
    }
}

// A fused kernel needs no memory but for sums of the gradient of the taps. Runs of positions make
// as many thread blocks as keep a device busy, and are short enough for their sums.
static bool cut_fused(struct cuda_tiles_cut *cut, size_t limit)
{
    enum { ENOUGH_BLOCKS = 1024, MOST_POSITIONS = 256, LEAST_POSITIONS = 4 };
    const struct cuda_tiles *tiles = &cut->tiles;
    const int64_t cells = tiles->groups * tiles->in * tiles->out, positions = tiles->positions;
    const size_t scalar = tiles->f64 ? sizeof(double) : sizeof(float);
    const size_t set = size_mul(size_mul((size_t)cells, (size_t)tiles->bins), 2 * scalar);
    cut->most = (struct cuda_tiles_part){.groups = tiles->groups, .block = positions};
    if (cut->direction != PARTITA_BACKWARD_WEIGHT) {
        cut->filter_bytes = set;
        return true;
    }
    int64_t parts = (ENOUGH_BLOCKS + cells - 1) / cells;
    if (parts > positions / LEAST_POSITIONS) parts = positions / LEAST_POSITIONS;
    if (parts < positions / MOST_POSITIONS) parts = positions / MOST_POSITIONS;
    if (size_mul((size_t)parts + 1, set) > size_min(limit, USUAL_WORKSPACE)) {
        const size_t sets = size_min(limit, USUAL_WORKSPACE) / set;
        parts = sets > 1 ? (int64_t)sets - 1 : 1;
    }
    cut->parts = parts > 1 ? parts : 1;
    cut->y_bytes = mem_round(set);
    cut->sets_bytes = parts > 1 ? size_mul(set, (size_t)parts) : 0;
    return cuda_tiles_workspace(cut) <= limit;
}

static bool cut_transform(struct cuda_tiles_cut *cut, struct tile_grid *grid, size_t transform,
                          size_t shared_bytes)
{
    if (!tile_size_split(grid, transform, shared_bytes / (2 * grid->scalar_bytes), cut->n))
        return false;
    const size_t positions = size_mul(size_mul(grid->batch, grid->images), grid->tiles);
    if (size_mul(positions, size_mul(size_mul(grid->in, grid->out), grid->phases)) >
        PTRDIFF_MAX / 64)
        return false;
    const bool f64 = grid->scalar_bytes == sizeof(double);
    cut->tiles = tiles_of(grid, f64);
    cut->tiles.elements = (int)tile_tables_elements(cut->n);
    cut->tiles.bins = (int)tile_tables_bins(cut->n);
    return true;
}

// All that does not hang on runs of positions.
static bool cut_shape(const struct request *request, size_t transform, enum cuda_tiles_kind kind,
                      struct cuda_tiles_cut *ret)
{
    const size_t shared_bytes = ((const struct cuda_device *)request->device)->shared_bytes;
    struct tile_grid grid;
    *ret = (struct cuda_tiles_cut){.direction = request->direction, .kind = kind, .parts = 1};
    if (!tile_grid_make(request->shape, request->direction, &grid)) return false;
    if (!cut_transform(ret, &grid, transform, shared_bytes)) return false;
    ret->covers = grid.covers;
    ret->tiles.gauss = kind == CUDA_TILES_GAUSS;
    ret->tiles.fused = kind == CUDA_TILES_FUSED;
    return cut_block(ret, shared_bytes);
}

bool cuda_tiles_cut(const struct request *request, size_t transform, enum cuda_tiles_kind kind,
                    size_t limit, struct cuda_tiles_cut *ret)
{
    if (!cut_shape(request, transform, kind, ret)) return false;
    if (kind == CUDA_TILES_FUSED) return cut_fused(ret, limit);
    if (!cut_runs(ret, limit)) return false;
    if (request->direction == PARTITA_BACKWARD_WEIGHT) cut_parts(ret, limit);
    ret->filter_group = spectra_bytes(ret, 1, ret->tiles.in, ret->tiles.out_pitch);
    if (request->direction != PARTITA_BACKWARD_WEIGHT)
        ret->filter_bytes = size_mul(ret->filter_group, (size_t)ret->tiles.groups);
    return true;
}

void cuda_tiles_cut_saved(const struct request *request, const struct cuda_tiles_cut *forward,
                          struct cuda_tiles_cut *ret)
{
    size_t transform =
        1; // that of forward, whichever it was asked for: axes that it covers are shorter
    for (int a = 0; a < 3; a++) transform = forward->n[a] > transform ? forward->n[a] : transform;
    cut_shape(request, transform, forward->kind, ret); // the same grid as forward's
    ret->saved = true;
    cut_pairs(ret, forward->tiles.pairs);
    cut_run(ret, forward->most.groups, cuda_tiles_blocks(forward));
    cut_parts(ret, SIZE_MAX);
}
