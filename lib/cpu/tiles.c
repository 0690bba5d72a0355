// SPDX-License-Identifier: MIT
// Layers by transforms of tiles (decision 15). A layer is a grid of tiles that sees neither stride nor dilation
// (tile_grid.h). Tiles overlap by the taps, as in overlap-save along every axis; the products of all tiles and channels
// at one frequency are one matrix product. Backward data are the same with gy and reversed taps; backward weight
// multiplies x by the conjugate of gy without its overlap, sums over tiles and keeps the lags that are taps.
// Source: Mathieu, Henaff & LeCun, Fast training of convolutional networks through FFTs (2013); Zlateski, Jia, Li &
// Durand, FFT convolutions are faster than Winograd on modern CPUs, here's why (2018), for tiles of any size.
#include "tiles.h"
#include "../sizes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_TERMS = 512,        // summed in registers before a sum is rounded
    MOST_ELEMENTS = 1 << 17, // of a tile
    MOST_TAPS = 1 << 16,     // along an axis
    MANY = 128,              // samples of a tile up to which every size is considered
};

static size_t round_up(size_t a, size_t b)
{
    return (a + b - 1) / b * b;
}

// Samples of one tile that covers an axis. Beyond the inputs that exist it may wrap around: what an output would then
// meet instead of padding is padding, if the inputs [begin, end) of the tile's extent are far enough from both ends.
static size_t whole(const struct tile_axis *axis)
{
    enum { MOST_SEEN = 64 };
    if (axis->count == 0) return tile_transform_size(axis->taps);
    const size_t extent = axis->count + axis->taps - 1;
    const ptrdiff_t q = axis->first + axis->lead;
    struct tile_range seen = {extent, 0};
    if (size_mul(axis->images, axis->phases) > MOST_SEEN) seen = (struct tile_range){0, extent};
    else
        for (size_t i = 0; i < axis->images * axis->phases; i++) {
            const struct tile_range range = tile_within(&axis->in, i / axis->phases, i % axis->phases, q, extent);
            if (range.begin >= range.end) continue;
            if (range.begin < seen.begin) seen.begin = range.begin;
            if (range.end > seen.end) seen.end = range.end;
        }
    size_t n = axis->count > axis->taps ? axis->count : axis->taps;
    if (seen.end > n) n = seen.end;
    if (extent - seen.begin > n) n = extent - seen.begin;
    return tile_transform_size(n);
}

static bool cut_axes(struct tile_grid *grid, size_t transform, size_t ret_n[3])
{
    size_t tile[3], elements = 1;
    for (int i = 0; i < 3; i++) {
        const struct tile_axis *axis = &grid->axis[i];
        if (axis->taps > MOST_TAPS) return false;
        const size_t all = axis->count > TILE_TRANSFORM_MOST ? SIZE_MAX : whole(axis);
        ret_n[i] = lesser(transform, all);
        if (ret_n[i] < axis->taps || !tile_transform_has(ret_n[i])) return false;
        tile[i] = ret_n[i] - axis->taps + 1;
        if (ret_n[i] == all && axis->count) tile[i] = axis->count;
        elements = size_mul(elements, ret_n[i]);
    }
    if (elements > MOST_ELEMENTS) return false;
    tile_grid_cut(grid, tile);
    return true;
}

// The shape in tiles; what hangs on blocks and parts is left to cut_blocks.
static bool cut_tiles(const struct request *request, size_t transform, struct tiles *ret, size_t ret_n[3])
{
    *ret = (struct tiles){.direction = request->direction};
    struct tile_grid *grid = &ret->grid;
    if (!tile_grid_make(request->shape, request->direction, grid) || !cut_axes(grid, transform, ret_n)) return false;
    ret->in = size_mul(grid->in, grid->phases_out ? 1 : grid->phases);
    ret->out = size_mul(grid->out, grid->phases_out ? grid->phases : 1);
    ret->lanes = TILE_LINE_BYTES / grid->scalar_bytes;
    ret->positions = size_mul(size_mul(grid->batch, grid->images), grid->tiles);
    return size_mul(ret->positions, size_mul(ret->in, ret->out)) <= PTRDIFF_MAX / 64;
}

// Blocks of one size, whole lines each; bins an odd number of lines apart.
static void cut_blocks(const struct tiles_way *way, struct tiles *tiles)
{
    const size_t blocks = tiles->positions ? (tiles->positions + way->block - 1) / way->block : 1;
    const bool weight = tiles->direction == PARTITA_BACKWARD_WEIGHT;
    tiles->product = way->product;
    tiles->block = round_up((tiles->positions + blocks - 1) / blocks, tiles->lanes);
    if (tiles->block == 0) tiles->block = tiles->lanes;
    tiles->part = weight ? tiles->out : lesser(way->part, tiles->out);
    tiles->chunk = weight ? lesser(tiles->block, MOST_TERMS / 2)
                          : lesser(tiles->in, way->product == TILES_COMPLEX ? MOST_TERMS / 2 : MOST_TERMS);
    const size_t row = 2 * tiles->block, outputs = weight ? 2 * round_up(tiles->out, tiles->lanes) : row;
    tiles->x_bin = (size_mul(tiles->in, row) / tiles->lanes | 1) * tiles->lanes;
    tiles->y_bin = (size_mul(weight ? tiles->in : tiles->part, outputs) / tiles->lanes | 1) * tiles->lanes;
    tiles->d_bin = weight ? (size_mul(tiles->out, row) / tiles->lanes | 1) * tiles->lanes : 0;
}

bool tiles_cut(const struct request *request, const struct tiles_way *way, struct tiles *ret, size_t ret_n[3])
{
    if (!cut_tiles(request, way->transform, ret, ret_n)) return false;
    cut_blocks(way, ret);
    return true;
}

static size_t spectra_bytes(const struct tiles *tiles, const size_t n[3], size_t bin)
{
    return mem_round(size_mul(size_mul(tile_transform_bins(n), bin), tiles->grid.scalar_bytes));
}

size_t tiles_shared_bytes(const struct tiles *tiles, const size_t n[3])
{
    size_t bytes = mem_round(size_mul(tiles->block, sizeof(struct tiles_place)));
    bytes = size_add(bytes, spectra_bytes(tiles, n, tiles->x_bin));
    bytes = size_add(bytes, spectra_bytes(tiles, n, tiles->y_bin));
    return size_add(bytes, spectra_bytes(tiles, n, tiles->d_bin));
}

size_t tiles_worker_bytes(const struct tiles *tiles, const size_t n[3])
{
    const size_t transform = size_add(tiles_rows_bytes(tiles, n), tile_transform_bytes(n));
    const size_t bytes = tiles->grid.scalar_bytes, row = tiles->block * bytes;
    size_t product = size_add(size_mul(tiles->chunk, 3 * row), CONV_CHANNELS * row);
    if (tiles->direction == PARTITA_BACKWARD_WEIGHT)
        product = mem_round(tiles->chunk * bytes) + mem_round(tiles->chunk * 2 * CONV_CHANNELS * bytes) +
                  size_mul(tiles->chunk * 3, round_up(tiles->out, tiles->lanes) * bytes);
    return mem_round(transform > product ? transform : product);
}

size_t tiles_filter_scalars(const struct tiles *tiles, size_t bins)
{
    const size_t cells = size_mul(size_mul(tiles->in, tiles->out), tiles->grid.groups);
    return size_mul(size_mul(cells, bins), tiles->product == TILES_GAUSS ? 3 : 2);
}

// Seconds of moving scalars once, a working set of so many bytes.
static double moving(const struct request *request, double scalars, double bytes)
{
    const struct host_costs *costs = &request->host->costs[request->shape->f64];
    const double near = (double)request->host->cache_bytes;
    // A last cache of hundreds of MiB is several, of other cores.
    const double shared = fmin((double)request->host->shared_bytes, 32 * near);
    return scalars * (bytes <= near         ? costs->copy
                      : bytes <= shared / 2 ? (costs->copy + costs->copy_far) / 3
                                            : costs->copy_far);
}

// A shape cut into tiles, and the operations of a pair of them: loaded, stored, and of taps stored.
struct candidate {
    struct tiles tiles;
    size_t n[3], bins;
    double load, store, taps;
};

// Seconds by the host model: operations of transforms and products, samples in and out, spectra to where they fit.
static double seconds_of(const struct request *request, const struct candidate *candidate, double *ret_flops)
{
    // A transform's operation takes so much of a multiply-add, its loads and stores included; a sample on its way in or
    // out so many copies; products run at so much of the peak, worse with few lines of positions, and clear, load and
    // store their sums. Decision 15.
    static const double TRANSFORM = 0.8, EDGE = 4, PRODUCT = 1.12, NARROW = 0.4, SUMS = 3, TASK = 1e-6;
    const struct host_costs *costs = &request->host->costs[request->shape->f64];
    const struct tiles *tiles = &candidate->tiles;
    const size_t *n = candidate->n;
    const bool weight = tiles->direction == PARTITA_BACKWARD_WEIGHT;
    const double bytes = (double)tiles->grid.scalar_bytes, bins = (double)candidate->bins;
    const double blocks = ceil((double)tiles->positions / (double)tiles->block);
    const double lines = blocks * (double)tiles->block, samples = (double)(n[0] * n[1] * n[2]);
    const double in = (double)tiles->in, out = (double)tiles->out, parts = ceil(out / (double)tiles->part);
    const double wide = (double)round_up(tiles->out, tiles->lanes);
    const double product = PRODUCT + (weight ? 0 : NARROW / (double)tiles_lines(tiles));
    const double taps = weight ? candidate->taps * in * wide / 2 : 0;
    const double transforms = lines / 2 * (candidate->load * in + candidate->store * out) + taps;
    const double products = bins * lines * in * (weight ? wide * 4 : tiles->product == TILES_GAUSS ? out * 3 : out * 4);
    const double sums =
        weight ? blocks * bins * 2 * in * wide : bins * lines * 2 * out * (tiles->product == TILES_GAUSS ? 1.5 : 1);
    const double x = bins * 2 * in * lines, y = bins * 2 * out * lines;
    const double factors =
        weight ? bins * 2 * in * wide : (double)tiles_filter_scalars(tiles, 1) / (double)tiles->grid.groups * bins;
    const double x_bytes = x / blocks * bytes, y_bytes = y / blocks / parts * bytes, held = x_bytes + y_bytes;
    double seconds = transforms * costs->fma * TRANSFORM + products * costs->fma * product + sums * costs->copy * SUMS +
                     EDGE * costs->copy * samples * lines * (in + out) +
                     TASK * lines / (double)tiles->lanes * (in + out) / 2;
    seconds += moving(request, x * (1 + (weight ? 2 : parts)), held) + moving(request, 2 * y, held);
    seconds += moving(request, factors * blocks * (weight ? 2 : 0.5), factors * bytes + held);
    seconds *= (double)tiles->grid.groups;
    *ret_flops = (double)tiles->grid.groups * (transforms + 2 * products);
    return fmax(seconds, memory_seconds(request->host, request->shape));
}

static void consider(const struct request *request, const struct candidate *candidate, size_t transform,
                     struct estimate *ret)
{
    const struct tiles *tiles = &candidate->tiles;
    double flops;
    const size_t shared = tiles_shared_bytes(tiles, candidate->n), worker = tiles_worker_bytes(tiles, candidate->n);
    if (size_add(shared, worker) > request->workspace_limit) return;
    const double seconds = seconds_of(request, candidate, &flops);
    if (ret->applicable && ret->seconds <= seconds) return;
    const size_t filter =
        tiles->direction == PARTITA_BACKWARD_WEIGHT ? 0 : tiles_filter_scalars(tiles, candidate->bins);
    const bool gauss = tiles->product == TILES_GAUSS;
    *ret = (struct estimate){.applicable = true,
                             .transform = transform,
                             .variant = tiles_variant(tiles),
                             .hop = tiles->block,
                             .seconds = seconds,
                             .flops = flops,
                             .shared = shared,
                             .worker = worker,
                             .bytes = size_add(size_add(shared, worker), size_mul(filter, tiles->grid.scalar_bytes))};
    // Schatzman (1996): a transform's rms error is 0.6 u sqrt(log2 N); three of them, more with Gauss's sums.
    ret->error = (request->shape->f64 ? 1.1e-16 : 6e-8) * (gauss ? 1.5 : 1.1) *
                 sqrt(log2((double)(candidate->n[0] * candidate->n[1] * candidate->n[2]) + 1));
}

// All blocks and parts of tiles of one size.
static void consider_blocks(const struct request *request, size_t transform, struct estimate *ret)
{
    static const size_t blocks[] = {16, 32, 48, 96, 192, 384, 768}, parts[] = {8, 16, 32, 64, 128, (size_t)1 << 20};
    enum { N_BLOCKS = sizeof blocks / sizeof *blocks, N_PARTS = sizeof parts / sizeof *parts };
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    struct candidate candidate;
    struct tiles *tiles = &candidate.tiles;
    const size_t *n = candidate.n;
    if (!cut_tiles(request, transform, tiles, candidate.n)) return;
    const struct tile_axis *axis = tiles->grid.axis;
    candidate.bins = tile_transform_bins(n);
    candidate.load = tile_transform_flops(n, n[0] * n[1]);
    candidate.store = tile_transform_flops(n, axis[0].tile * axis[1].tile);
    candidate.taps = tile_transform_flops(n, axis[0].taps * axis[1].taps);
    for (size_t i = 0; i < N_BLOCKS && (i == 0 || blocks[i - 1] < tiles->positions); i++)
        for (size_t k = weight ? N_PARTS - 1 : 0; k < N_PARTS; k++) {
            if (k + 1 < N_PARTS && parts[k] >= tiles->out) continue; // the last does it
            for (int product = TILES_COMPLEX; product <= (weight ? TILES_COMPLEX : TILES_GAUSS); product++) {
                cut_blocks(&(struct tiles_way){transform, blocks[i], parts[k], (enum tiles_product)product}, tiles);
                consider(request, &candidate, transform, ret);
            }
        }
}

static void tiles_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    struct tile_grid grid;
    if (shape->stream || shape->complex_signal) {
        snprintf(ret->reason, sizeof ret->reason, "for bounded problems of real types");
        return;
    }
    if (!tile_grid_make(shape, request->direction, &grid)) {
        snprintf(ret->reason, sizeof ret->reason, "stride and dilation beyond what positions can count");
        return;
    }
    size_t most = 1;
    for (int i = 0; i < 3; i++) {
        const struct tile_axis *axis = &grid.axis[i];
        if (axis->taps > MOST_TAPS) {
            snprintf(ret->reason, sizeof ret->reason, "tiles hold %d taps along an axis at most, not %zu", MOST_TAPS,
                     axis->taps);
            return;
        }
        const size_t n = axis->count > TILE_TRANSFORM_MOST / 2 ? TILE_TRANSFORM_MOST : whole(axis);
        if (n > most) most = n;
    }
    if (request->transform) consider_blocks(request, request->transform, ret);
    else
        // Long ones a quarter apart at least.
        for (size_t n = 1; n <= lesser(most, TILE_TRANSFORM_MOST);
             n = tile_transform_size(n < MANY ? n + 1 : n + n / 4))
            consider_blocks(request, n, ret);
    if (!ret->applicable)
        snprintf(ret->reason, sizeof ret->reason, "no tile of %s samples fits the taps, or the workspace",
                 request->transform ? "so many" : "any number of");
}

// One arena: the plan's state, then its tables. Called twice, to size it and to cut it.
static struct tiles *cut_state(const struct partita_plan *plan, const struct request *request, struct arena *arena)
{
    struct tiles *state = arena_take(arena, sizeof *state), tiles;
    size_t n[3];
    const struct tiles_way way = tiles_way_of(&plan->choice);
    tiles_cut(request, &way, &tiles, n);
    tile_transform_make(n, request->shape->f64, arena, &tiles.transform);
    tiles.offset = arena_take(arena, 2 * tiles.chunk * sizeof *tiles.offset);
    if (!state) return NULL;
    const size_t out = round_up(tiles.out, tiles.lanes);
    const bool weight = tiles.direction == PARTITA_BACKWARD_WEIGHT;
    const size_t row = weight ? out : tiles.block;
    for (size_t i = 0; i < 2 * tiles.chunk; i++)
        tiles.offset[i] = weight || tiles.product == TILES_COMPLEX ? i / 2 * 3 * row + (i % 2 ? 0 : row) : i * 3 * row;
    *state = tiles;
    return state;
}

static enum partita_status tiles_plan_create(struct partita_plan *plan, const struct request *request)
{
    struct arena arena = {0};
    cut_state(plan, request, &arena);
    arena.base = mem_allocate(&plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    plan->state = cut_state(plan, request, &arena);
    return PARTITA_OK;
}

static void tiles_plan_destroy(struct partita_plan *plan)
{
    mem_release(&plan->allocator, plan->state);
}

static void tiles_explain(const struct partita_plan *plan, struct text *text)
{
    const struct tiles *tiles = plan->state;
    const size_t *n = tiles->transform.n;
    const struct tile_axis *axis = tiles->grid.axis;
    text_add(
        text,
        "  tiles of %zux%zux%zu samples for %zux%zux%zu %s, %zu of them in blocks of %zu, %zu channels at once; %s\n",
        n[0], n[1], n[2], axis[0].tile, axis[1].tile, axis[2].tile,
        tiles->direction == PARTITA_BACKWARD_WEIGHT ? "of gy" : "outputs", tiles->positions, tiles->block, tiles->part,
        tiles->product == TILES_GAUSS ? "products by Gauss, 3 real ones" : "complex products");
}

static size_t block_count(const struct tiles *tiles)
{
    return (tiles->positions + tiles->block - 1) / tiles->block;
}

static bool reads_saved(const struct tiles_call *call)
{
    return call->saved && call->tiles->direction == PARTITA_BACKWARD_WEIGHT;
}

// Where a call's arrays are in its workspace.
static void lay_out(struct tiles_call *call, char *workspace)
{
    const struct tiles *tiles = call->tiles;
    const size_t *n = tiles->transform.n;
    call->place = (struct tiles_place *)workspace;
    call->x = workspace + mem_round(tiles->block * sizeof *call->place);
    call->y = call->x + (reads_saved(call) ? 0 : spectra_bytes(tiles, n, tiles->x_bin));
    call->d = call->y + spectra_bytes(tiles, n, tiles->y_bin);
    call->scratch = workspace + call->plan->choice.shared;
}

static void place_block(const struct tiles_call *call)
{
    const struct tiles *tiles = call->tiles;
    const struct tile_grid *grid = &tiles->grid;
    for (size_t i = 0; i < tiles->block; i++) {
        const size_t position = call->first + i;
        struct tiles_place *place = &call->place[i];
        place->item = position / grid->tiles / grid->images;
        tile_grid_image(grid, position / grid->tiles % grid->images, place->image);
        tile_grid_tile(grid, position % grid->tiles, place->tile);
    }
}

static void run_parts(struct tiles_call *call)
{
    const struct tiles *tiles = call->tiles;
    for (call->part_first = 0; call->part_first < tiles->out; call->part_first += tiles->part) {
        call->part_n = lesser(tiles->part, tiles->out - call->part_first);
        tiles_multiply(call);
        tiles_store(call);
    }
}

static void run(struct tiles_call *call, void *workspace)
{
    const struct tiles *tiles = call->tiles;
    const bool weight = tiles->direction == PARTITA_BACKWARD_WEIGHT;
    const struct tiles_array from = {call->from, false, tiles->in, 0, tiles->in},
                             gy = {call->from_gy, true, tiles->out, 0, tiles->out};
    lay_out(call, workspace);
    for (call->group = 0; call->group < tiles->grid.groups; call->group++) {
        for (call->first = 0; call->first < tiles->positions; call->first += tiles->block) {
            place_block(call);
            if (call->saved)
                call->x = call->saved + (call->group * block_count(tiles) + call->first / tiles->block) *
                                            spectra_bytes(tiles, tiles->transform.n, tiles->x_bin);
            if (!reads_saved(call)) tiles_load(call, &from, call->x, tiles->x_bin);
            if (weight) {
                tiles_load(call, &gy, call->d, tiles->d_bin);
                tiles_multiply_weight(call);
            } else {
                run_parts(call);
            }
        }
        if (weight) tiles_store_weight(call);
    }
}

static void tiles_forward(const struct partita_plan *plan, const struct partita_filter *filter, void *y, const void *x,
                          void *workspace)
{
    struct tiles_call call = {.plan = plan, .tiles = plan->state, .filter = filter, .from = x, .to = y};
    run(&call, workspace);
}

static bool tiles_finishes(const struct partita_plan *plan)
{
    (void)plan;
    return true;
}

static void tiles_backward_data(const struct partita_plan *plan, const struct partita_filter *filter, void *gx,
                                const void *gy, void *workspace)
{
    const struct shape *shape = &plan->shape;
    struct tiles_call call = {.plan = plan, .tiles = plan->state, .filter = filter, .from = gy, .to = gx};
    // Samples that no tap reads.
    if (!call.tiles->grid.covers || call.tiles->positions == 0)
        memset(gx, 0, shape->batch * shape->in_channels * shape_inputs(shape) * shape->scalar_bytes);
    run(&call, workspace);
}

static void tiles_backward_weight(const struct partita_plan *plan, void *gw, const void *x, const void *gy,
                                  void *workspace)
{
    struct tiles_call call = {.plan = plan, .tiles = plan->state, .from = x, .from_gy = gy, .to = gw};
    run(&call, workspace);
}

static size_t tiles_saved_bytes(const struct partita_plan *plan)
{
    const struct tiles *tiles = plan->state;
    return size_mul(size_mul(tiles->grid.groups, block_count(tiles)),
                    spectra_bytes(tiles, tiles->transform.n, tiles->x_bin));
}

// Forward's blocks are cut the same once more, since they are as even as whole lines can be.
static enum partita_status tiles_saved_plan(const struct partita_plan *plan, const struct partita_plan *weight,
                                            struct partita_plan *ret_plan)
{
    const struct tiles *forward = plan->state;
    const struct request request = {.shape = &plan->shape, .direction = PARTITA_BACKWARD_WEIGHT};
    const struct tiles_way way = {.transform = plan->choice.transform, .block = forward->block, .part = 1};
    struct tiles tiles;
    size_t n[3];
    tiles_cut(&request, &way, &tiles, n);
    *ret_plan = *weight;
    ret_plan->state = NULL;
    ret_plan->choice.transform = way.transform;
    ret_plan->choice.hop = tiles.block;
    ret_plan->choice.variant = tiles_variant(&tiles);
    ret_plan->choice.shared = tiles_shared_bytes(&tiles, n) - spectra_bytes(&tiles, n, tiles.x_bin);
    ret_plan->choice.worker = tiles_worker_bytes(&tiles, n);
    return tiles_plan_create(ret_plan, &request);
}

static void tiles_forward_saving(const struct partita_plan *plan, const struct partita_filter *filter, void *saved,
                                 void *y, const void *x, void *workspace)
{
    struct tiles_call call = {.plan = plan, .tiles = plan->state, .filter = filter, .from = x, .to = y, .saved = saved};
    run(&call, workspace);
}

static void tiles_backward_weight_saved(const struct partita_plan *plan, void *gw, const void *saved, const void *gy,
                                        void *workspace)
{
    struct tiles_call call = {.plan = plan, .tiles = plan->state, .from_gy = gy, .to = gw, .saved = (char *)saved};
    run(&call, workspace);
}

const struct engine engine_tiles = {
    .name = "cpu/tiles",
    .max_rank = PARTITA_MAX_RANK,
    .estimate = tiles_estimate,
    .plan_create = tiles_plan_create,
    .plan_destroy = tiles_plan_destroy,
    .plan_explain = tiles_explain,
    .filter_create = tiles_filter_create,
    .forward = tiles_forward,
    .finishes = tiles_finishes,
    .backward_data = tiles_backward_data,
    .backward_weight = tiles_backward_weight,
    .saved_bytes = tiles_saved_bytes,
    .saved_plan = tiles_saved_plan,
    .forward_saving = tiles_forward_saving,
    .backward_weight_saved = tiles_backward_weight_saved,
};
