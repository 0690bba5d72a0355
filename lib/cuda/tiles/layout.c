// SPDX-License-Identifier: MIT
// What cuda/tiles decides, and the sizes of a call's arrays by this choice. Costs are counted in
// operations, issue slots and bytes: a model, of which nothing was measured.
#include <assert.h>
#include <stdio.h>

#include "base/sizes.h"
#include "core/plan.h"
#include "cuda/device/filter.h"
#include "cuda/device/grid.h"
#include "cuda/device/rates.h"
#include "geometry/tile_search.h"
#include "geometry/tile_tables.h"
#include "tiles.h"

enum {
    MIN_THREADS = 32, // of a thread block
    BUTTERFLY = 8,    // elements of a thread's butterfly
    ROW_THREADS = 8,  // share a row of samples, so that each has several and finds its row seldom
    PITCH = 4,        // elements that any operand of a product is a multiple of
    TARGET_SHARED = 48 << 10, // bytes of a thread block, so that a processor holds several
    MAX_WORKSPACE = 1 << 30,  // where the caller has no limit
};

// Times in multiply-adds of one thread, counted from the machine code (sm_90, f32; decision 22). A
// butterfly with its factors, by radix: what is issued, or, for radix 8, what shared memory takes.
static const struct {
    double butterfly[TILE_MAX_RADIX + 1];
    double bin;    // of a pair of tiles, to or from memory or a product in shared memory
    double sample; // on its way in or out
} slots = {
    .butterfly = {[2] = 44, [3] = 62, [4] = 76, [6] = 116, [8] = 156}, .bin = 50, .sample = 20};

static struct cuda_tiles_side kernel_side(const struct tile_side *side)
{
    return (struct cuda_tiles_side){(int64_t)side->size, side->base, (int64_t)side->image,
                                    (int64_t)side->branch, (int64_t)side->step};
}

static struct cuda_tiles kernel_tiles(const struct tile_grid *grid)
{
    const int64_t branches = (int64_t)grid->branches;
    struct cuda_tiles tiles = {.taps = cuda_tap_map_of(grid),
                               .images = (int64_t)grid->images,
                               .branches = branches,
                               .tiles = (int64_t)grid->tiles,
                               .positions = (int64_t)(grid->batch * grid->images * grid->tiles),
                               .groups = (int64_t)grid->groups,
                               .in = (int64_t)grid->in * (grid->branches_out ? 1 : branches),
                               .out = (int64_t)grid->out * (grid->branches_out ? branches : 1),
                               .row_threads = 1,
                               .branches_out = grid->branches_out,
                               .f64 = grid->scalar_bytes == sizeof(double)};
    tiles.out_pitch = (int64_t)size_round_up((size_t)tiles.out, PITCH);
    for (int a = 0; a < 3; a++) {
        const struct tile_axis *axis = &grid->axis[a];
        tiles.axis[a] = (struct cuda_tiles_axis){.in = kernel_side(&axis->in),
                                                 .out = kernel_side(&axis->out),
                                                 .images = (int64_t)axis->images,
                                                 .branches = (int64_t)axis->branches,
                                                 .tiles = (int64_t)axis->tiles,
                                                 .tile = (int64_t)axis->tile,
                                                 .extent = (int64_t)axis->extent,
                                                 .first = axis->first,
                                                 .lead = axis->lead};
    }
    return tiles;
}

// The tiles of a choice; false: there are none.
static bool split_tiles(const struct request *request, const struct cuda_tiles_choice *choice,
                        struct cuda_tiles_layout *ret)
{
    const size_t shared_bytes = cuda_device_for(request)->gpu->shared_bytes;
    struct tile_grid grid;
    *ret = (struct cuda_tiles_layout){
        .layer = cuda_layer_of(request, choice->variant != CUDA_TILES_GAUSS), .choice = *choice};
    if (!tile_grid_make(request->shape, request->direction, &grid)) return false;
    const size_t elements = shared_bytes / (2 * grid.scalar_bytes);
    if (!tile_size_split(&grid, choice->transform, elements, ret->n)) return false;
    const size_t positions = size_mul(size_mul(grid.batch, grid.images), grid.tiles);
    const size_t paths = size_mul(size_mul(grid.in, grid.out), grid.branches);
    if (size_mul(positions, paths) > PTRDIFF_MAX / 64) return false;
    ret->tiles = kernel_tiles(&grid);
    struct cuda_tiles *tiles = &ret->tiles;
    ret->layer.transform = &cuda_tiles_transform;
    ret->layer.covers = grid.covers;
    ret->layer.inputs_rows = request->direction == PARTITA_BACKWARD_WEIGHT;
    ret->layer.vector = choice->variant == CUDA_TILES_FUSED ? 1 : PITCH;
    tiles->elements = (int)tile_tables_elements(ret->n);
    tiles->bins = (int)tile_tables_bins(ret->n);
    assert(tiles->elements > 0 && tiles->bins > 0 && tiles->bins <= tiles->elements);
    tiles->gauss = choice->variant == CUDA_TILES_GAUSS;
    tiles->fused = choice->variant == CUDA_TILES_FUSED;
    tiles->relu = request->shape->relu && request->direction == PARTITA_FORWARD;
    tiles->storage = cuda_storage_of(request->shape);
    const struct cuda_layer_part all = cuda_tiles_groups(ret, tiles->groups);
    ret->layer.taps_bytes = cuda_layer_taps_bytes(&ret->layer, &all);
    while (tiles->row_threads < ROW_THREADS && tiles->row_threads < (int)ret->n[2])
        tiles->row_threads *= 2;
    return true;
}

static void set_pairs(struct cuda_tiles_layout *layout, int pairs)
{
    struct cuda_tiles *tiles = &layout->tiles;
    assert(pairs > 0 && pairs <= CUDA_TILES_PAIRS);
    layout->choice.pairs = tiles->pairs = pairs;
    layout->layer.step = 2 * pairs; // thread blocks compute whole pairs
    tiles->threads = MIN_THREADS;
    while (tiles->threads < CUDA_TILES_THREADS &&
           tiles->threads * BUTTERFLY < pairs * tiles->elements)
        tiles->threads *= 2;
    assert(tiles->threads <= CUDA_TILES_THREADS && tiles->threads % tiles->row_threads == 0);
    int buffers = pairs; // of a thread block; a fused kernel has sums besides
    if (tiles->fused && layout->layer.direction == PARTITA_BACKWARD_WEIGHT) buffers = pairs + 1;
    else if (tiles->fused && tiles->in > 1) buffers = 2 * pairs;
    layout->shared_bytes = cuda_tiles_shared_bytes(tiles, buffers);
}

struct cuda_layer_part cuda_tiles_groups(const struct cuda_tiles_layout *layout, int64_t groups)
{
    const struct cuda_tiles *tiles = &layout->tiles;
    return (struct cuda_layer_part){.matrices = groups * tiles->bins * (tiles->gauss ? 3 : 1),
                                    .in = tiles->in,
                                    .out = tiles->out,
                                    .positions = tiles->positions};
}

static void set_batch(struct cuda_tiles_layout *layout, int64_t groups, int64_t blocks,
                      int64_t chunks)
{
    const struct cuda_tiles *tiles = &layout->tiles;
    struct cuda_layer *layer = &layout->layer;
    assert(groups > 0 && blocks > 0);
    layout->choice.groups = groups;
    layout->choice.blocks = blocks;
    layer->parts = ceil_div((size_t)tiles->groups, (size_t)groups);
    layer->largest = cuda_tiles_groups(layout, groups);
    const size_t each = size_max(ceil_div((size_t)tiles->positions, (size_t)blocks), 1);
    layout->choice.layer.batch = (int64_t)size_round_up(each, (size_t)layer->step);
    layout->choice.layer.chunks = chunks;
    cuda_layer_set(layer, &layout->choice.layer);
    if (!tiles->fused) return;
    layer->from_bytes = layer->other_bytes = 0;
    if (layer->direction != PARTITA_BACKWARD_WEIGHT) layer->sum_bytes = 0;
}

static double tiles_batches(const struct cuda_tiles_layout *layout)
{
    const double blocks =
        ceil((double)layout->tiles.positions / (double)layout->layer.choice.batch);
    return (double)layout->layer.parts * blocks;
}

void cuda_tiles_lay_out(const struct request *request, const struct cuda_tiles_choice *choice,
                        struct cuda_tiles_layout *ret)
{
    const bool splits = split_tiles(request, choice, ret);
    assert(splits);
    (void)splits;
    set_pairs(ret, choice->pairs);
    set_batch(ret, choice->groups, choice->blocks, choice->layer.chunks);
}

// Iterations of a thread for a pair's butterflies, of those that a thread block of so many pairs
// takes.
static double iterations(const struct cuda_tiles_layout *layout, int pairs)
{
    const size_t *n = layout->n;
    const double butterflies = (double)(n[0] * n[1] * n[2]) / BUTTERFLY;
    return ceil(pairs * butterflies / CUDA_TILES_THREADS) / pairs;
}

// As many pairs as there are and leave room for other thread blocks, or fewer if threads are idle
// less.
static void choose_pairs(struct cuda_tiles_layout *layout)
{
    const struct cuda_tiles *tiles = &layout->tiles;
    // A fused kernel of backward weight has one position in a pair.
    const bool single = tiles->fused && layout->layer.direction == PARTITA_BACKWARD_WEIGHT;
    const size_t wanted = ceil_div((size_t)tiles->positions, single ? 1 : 2);
    int max_pairs = wanted ? (int)size_min(wanted, CUDA_TILES_PAIRS) : 1;
    set_pairs(layout, max_pairs);
    while (max_pairs > 1 && layout->shared_bytes > TARGET_SHARED) set_pairs(layout, --max_pairs);
    int best = max_pairs;
    for (int pairs = max_pairs - 1; 2 * pairs >= max_pairs && pairs > 0; pairs--)
        if (iterations(layout, pairs) < 0.95 * iterations(layout, best)) best = pairs;
    set_pairs(layout, best);
}

// As few batches as the limit allows: positions are split first, down to those of one thread block.
static bool choose_tiles_batch(struct cuda_tiles_layout *layout, size_t limit)
{
    const struct cuda_tiles *tiles = &layout->tiles;
    const size_t max = size_min(limit, MAX_WORKSPACE);
    int64_t groups = tiles->groups;
    int64_t blocks = 1;
    for (;;) {
        const int64_t width = 2 * (int64_t)tiles->pairs;
        const int64_t max_blocks = (tiles->positions + width - 1) / width;
        set_batch(layout, groups, blocks, 1);
        if (cuda_layer_workspace(&layout->layer) <= max) return true;
        if (blocks < max_blocks) blocks = 2 * blocks < max_blocks ? 2 * blocks : max_blocks;
        else if (groups > 1) groups = (groups + 1) / 2;
        else if (cuda_layer_workspace(&layout->layer) <= limit) return true;
        else if (tiles->pairs > 1) set_pairs(layout, tiles->pairs / 2);
        else return false;
    }
}

// Chunks of the sums over the positions of a batch.
static void choose_tiles_chunks(struct cuda_tiles_layout *layout, size_t limit)
{
    const struct cuda_tiles_choice choice = layout->choice;
    const int64_t chunks =
        cuda_layer_chunks(&layout->layer, choice.layer.batch, size_min(limit, MAX_WORKSPACE));
    set_batch(layout, choice.groups, choice.blocks, chunks);
    if (cuda_layer_workspace(&layout->layer) > limit)
        set_batch(layout, choice.groups, choice.blocks, 1);
}

// Chunks of a fused kernel's positions make as many thread blocks as keep a device busy, and are
// short enough for their sums.
static bool choose_fused(struct cuda_tiles_layout *layout, size_t limit)
{
    enum { TARGET_BLOCKS = 1024, MAX_POSITIONS = 256, MIN_POSITIONS = 4 };
    const struct cuda_tiles *tiles = &layout->tiles;
    const size_t positions = (size_t)tiles->positions;
    const size_t paths = (size_t)(tiles->groups * tiles->in * tiles->out);
    set_batch(layout, tiles->groups, 1, 1);
    if (layout->layer.direction != PARTITA_BACKWARD_WEIGHT) return true;
    const size_t sets = size_min(limit, MAX_WORKSPACE) / layout->layer.sum_bytes;
    size_t chunks = size_min(ceil_div(TARGET_BLOCKS, paths), positions / MIN_POSITIONS);
    if (chunks < positions / MAX_POSITIONS) chunks = positions / MAX_POSITIONS;
    if (chunks > sets) chunks = sets;
    set_batch(layout, tiles->groups, 1, chunks ? (int64_t)chunks : 1);
    return cuda_layer_workspace(&layout->layer) <= limit;
}

static bool choose_tiles_layout(const struct request *request,
                                const struct cuda_tiles_choice *choice,
                                struct cuda_tiles_layout *ret)
{
    const size_t limit = request->workspace_limit;
    if (!split_tiles(request, choice, ret)) return false;
    choose_pairs(ret);
    if (ret->shared_bytes > cuda_device_for(request)->gpu->shared_bytes) return false;
    if (ret->tiles.fused) return choose_fused(ret, limit);
    if (!choose_tiles_batch(ret, limit)) return false;
    if (request->direction == PARTITA_BACKWARD_WEIGHT) choose_tiles_chunks(ret, limit);
    return true;
}

void cuda_tiles_choose_cached(const struct request *request,
                              const struct cuda_tiles_choice *forward,
                              struct cuda_tiles_layout *ret)
{
    const bool splits = split_tiles(request, forward, ret); // the grid is the same
    assert(splits);
    (void)splits;
    ret->layer.loaded = true;
    set_pairs(ret, forward->pairs);
    set_batch(ret, forward->groups, forward->blocks, 1);
    choose_tiles_chunks(ret, SIZE_MAX);
}

// Transforms of all tiles of so many channels, and spectra of `forms` reals a bin in memory.
static struct cuda_stage transforms(const struct cuda_tiles_layout *layout, double channels,
                                    bool outputs, double forms, double *flops)
{
    const struct cuda_tiles *tiles = &layout->tiles;
    const double blocks = channels * ceil((double)tiles->positions / (2 * tiles->pairs));
    const double pairs = blocks * tiles->pairs;
    size_t box[3]; // elements of a tile that are samples
    for (int a = 0; a < 3; a++)
        box[a] = outputs ? (size_t)tiles->axis[a].tile
                         : size_min((size_t)tiles->axis[a].extent, layout->n[a]);
    const size_t rows = box[0] * box[1];
    const double samples = 2 * (double)(rows * box[2]);
    const struct tile_costs costs = tile_tables_costs(layout->n);
    *flops += pairs * (tile_tables_flops(layout->n, rows, &costs) + 4. * tiles->bins);
    return (struct cuda_stage){
        .blocks = blocks,
        .threads = tiles->threads,
        .slots = pairs * (tile_tables_cost(layout->n, rows, slots.butterfly) +
                          slots.bin * tiles->bins + slots.sample * samples),
        .bytes = pairs * (samples + 2 * tiles->bins * forms) * (tiles->f64 ? 8 : 4)};
}

static double tiles_seconds(const struct request *request, const struct cuda_tiles_layout *layout,
                            double *ret_flops)
{
    const struct cuda_rates rates = cuda_rates_of(request);
    const struct cuda_tiles *tiles = &layout->tiles;
    const struct cuda_layer *layer = &layout->layer;
    const struct cuda_product product =
        cuda_layer_product(layer, &layer->largest, layer->choice.batch);
    const bool weight = layer->direction == PARTITA_BACKWARD_WEIGHT;
    const double groups = (double)tiles->groups;
    const double forms = tiles->gauss ? 3 : 2;
    const double batches = tiles_batches(layout);
    // Gradients of taps, and the sums that they are added from.
    const double gradients = weight ? (double)layer->sum_bytes / (double)layer->choice.chunks : 0;
    const bool added = weight && (layer->choice.chunks > 1 || layout->choice.blocks > 1);
    const struct cuda_stage load =
        transforms(layout, groups * (double)tiles->in, false, forms, ret_flops);
    const struct cuda_stage store =
        transforms(layout, groups * (double)tiles->out, true, forms, ret_flops);
    const double bytes = (double)(cuda_layer_workspace(layer) + (weight ? 0 : layer->taps_bytes)) +
                         (added ? gradients : 0);
    struct cuda_stage products = cuda_layer_products(request, &product, batches, batches * bytes);
    products.launches *= weight ? 4 : 3; // with those that load and store
    *ret_flops += 2. * (tiles->gauss ? 1 : 4) * (double)product.batch * (double)product.rows *
                  (double)product.columns * (double)product.terms * batches;
    const double seconds = cuda_stage_seconds(&rates, &load) + cuda_stage_seconds(&rates, &store) +
                           cuda_stage_seconds(&rates, &products);
    if (!weight) return seconds;
    const double paths = groups * (double)tiles->in * (double)tiles->out_pitch / 2;
    const double taps = tile_tables_cost(layout->n, layout->n[0] * layout->n[1], slots.butterfly);
    const struct cuda_stage gradient = {.blocks = paths / tiles->pairs,
                                        .threads = tiles->threads,
                                        .slots = paths * (taps + slots.bin * tiles->bins),
                                        .bytes =
                                            gradients + (added ? 2 * (double)layer->sum_bytes : 0)};
    return seconds + cuda_stage_seconds(&rates, &gradient);
}

// Every output channel of a group transforms its inputs again. A pair of backward weight is a
// position of both.
static double seconds_of_fused(const struct request *request,
                               const struct cuda_tiles_layout *layout, double *ret_flops)
{
    const struct cuda_rates rates = cuda_rates_of(request);
    const struct cuda_tiles *tiles = &layout->tiles;
    const bool weight = layout->layer.direction == PARTITA_BACKWARD_WEIGHT;
    const double outputs = (double)(tiles->groups * tiles->out);
    const double paths = outputs * (double)tiles->in;
    const double taps = paths * tiles->bins * 2 * (tiles->f64 ? 8 : 4);
    struct cuda_stage stage = transforms(layout, paths * (weight ? 2 : 1), false, 0, ret_flops);
    stage.launches = weight ? 3 : 1;
    stage.bytes += taps * (double)layout->layer.choice.chunks;
    if (weight) {
        stage.blocks = paths * (double)layout->layer.choice.chunks;
    } else {
        const struct cuda_stage store = transforms(layout, outputs, true, 0, ret_flops);
        stage.slots += store.slots;
        stage.bytes += store.bytes;
        stage.blocks = store.blocks;
    }
    return cuda_stage_seconds(&rates, &stage);
}

static double max_blocks(const struct cuda_tiles_layout *layout)
{
    const struct cuda_tiles *tiles = &layout->tiles;
    const double block = (double)layout->layer.choice.batch / (2 * tiles->pairs);
    const double lines = fmax(block, (double)tiles->out);
    const double channels = fmax((double)tiles->in, (double)tiles->out);
    return fmax((double)tiles->groups * lines * channels,
                (double)layout->choice.groups * tiles->bins * 3 * channels * lines);
}

// False: there are no tiles. By Gauss a result is the sum of two products.
static bool choose_tiles_arithmetic(const struct request *request, struct cuda_tiles_choice *choice,
                                    double *ret_error)
{
    struct cuda_tiles_layout layout;
    if (!split_tiles(request, choice, &layout)) return false;
    const struct cuda_tiles *tiles = &layout.tiles;
    *ret_error = tile_error(request->shape, layout.n, tiles->gauss);
    if (!tiles->fused)
        choice->layer.arithmetic =
            cuda_arithmetic_within(request, request->error_budget, tiles->f64 ? CUDA_F64 : CUDA_F32,
                                   tiles->gauss ? sqrt(2) : 1, ret_error);
    return true;
}

static void try_variant(const struct request *request, enum cuda_tiles_variant variant,
                        size_t transform, struct estimate *ret)
{
    struct cuda_tiles_choice choice = {.variant = variant, .transform = transform};
    struct cuda_tiles_layout layout;
    double error;
    if (!choose_tiles_arithmetic(request, &choice, &error) ||
        !choose_tiles_layout(request, &choice, &layout) || max_blocks(&layout) > CUDA_MAX_BLOCKS)
        return;
    const struct cuda_tiles *tiles = &layout.tiles;
    double flops = 0;
    const double seconds = tiles->fused ? seconds_of_fused(request, &layout, &flops)
                                        : tiles_seconds(request, &layout, &flops);
    assert(seconds > 0 || tiles->positions == 0);
    if (ret->applicable && ret->seconds <= seconds) return;
    const size_t *n = layout.n;
    *ret = (struct estimate){.variant = (int)choice.variant,
                             .transform = choice.transform,
                             .reach = SIZE_MAX, // pairs of tiles share a transform
                             .seconds = seconds,
                             .flops = flops,
                             .error = error};
    snprintf(ret->summary, sizeof ret->summary, "%zux%zux%zu", n[0], n[1], n[2]);
    cuda_layer_estimate(&layout.layer, ret);
    estimate_store(ret, &layout.choice, sizeof layout.choice);
}

static void cuda_tiles_try_size(const struct tile_problem *problem, size_t transform,
                                struct estimate *ret)
{
    const struct request *request = problem->request;
    for (int v = 0; v < CUDA_TILES_VARIANTS; v++) {
        if (v == CUDA_TILES_FUSED && request->shape->group_in > 1) continue;
        if (request_allows(request, v))
            try_variant(request, (enum cuda_tiles_variant)v, transform, ret);
    }
}

void cuda_tiles_estimate(const struct request *request, struct estimate *ret)
{
    static const struct tile_engine engine = {.try_size = cuda_tiles_try_size};
    tile_search(request, &engine, ret);
    if (ret->applicable || ret->reason[0]) return;
    if (request->variant == CUDA_TILES_FUSED && request->shape->group_in > 1)
        estimate_refuse(ret, "one kernel takes one input channel a group, not %zu",
                        request->shape->group_in);
    else
        estimate_refuse(ret,
                        "no tile with these taps fits %zu bytes of shared memory, or workspace",
                        cuda_device_for(request)->gpu->shared_bytes);
}
