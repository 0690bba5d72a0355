// SPDX-License-Identifier: MIT
// Layers by transforms of tiles (decision 15). A layer is a grid of tiles that sees neither stride nor dilation
// (tile_grid.h). Tiles overlap by the taps, as in overlap-save along every axis; the products of all tiles and channels
// at one frequency are one matrix product. Backward data are the same with gy and reversed taps; backward weight
// multiplies x by the conjugate of gy without its overlap, sums over tiles and keeps the lags that are taps.
// Source: Mathieu, Henaff & LeCun, Fast training of convolutional networks through FFTs (2013); Zlateski, Jia, Li &
// Durand, FFT convolutions are faster than Winograd on modern CPUs, here's why (2018), for tiles of any size.
#include "tiles.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_TERMS = 512,         // summed in registers before a sum is rounded
    MOST_ELEMENTS = 1 << 17,  // of a tile
    MOST_TAPS = 1 << 16,      // along an axis
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t round_up(size_t a, size_t b)
{
    return (a + b - 1) / b * b;
}

// Samples of one tile that covers an axis.
static size_t whole(const struct tile_axis *axis)
{
    return tile_transform_size(axis->count ? axis->count + axis->taps - 1 : axis->taps);
}

static bool cut_axes(struct tile_grid *grid, size_t transform, size_t ret_n[3])
{
    size_t tile[3], elements = 1;
    for (int i = 0; i < 3; i++) {
        const struct tile_axis *axis = &grid->axis[i];
        if (axis->taps > MOST_TAPS) return false;
        ret_n[i] = axis->count > TILE_TRANSFORM_MOST ? transform : least(transform, whole(axis));
        if (ret_n[i] < axis->taps || !tile_transform_has(ret_n[i])) return false;
        tile[i] = ret_n[i] - axis->taps + 1;
        if (axis->count && axis->count < tile[i]) tile[i] = axis->count;
        elements = size_mul(elements, ret_n[i]);
    }
    if (elements > MOST_ELEMENTS) return false;
    tile_grid_cut(grid, tile);
    return true;
}

bool tiles_cut(const struct request *request, size_t transform, enum tiles_product product, size_t block,
               struct tiles *ret, size_t ret_n[3])
{
    *ret = (struct tiles){.direction = request->direction, .product = product};
    struct tile_grid *grid = &ret->grid;
    if (!tile_grid_make(request->shape, request->direction, grid) || !cut_axes(grid, transform, ret_n)) return false;
    ret->in = size_mul(grid->in, grid->phases_out ? 1 : grid->phases);
    ret->out = size_mul(grid->out, grid->phases_out ? grid->phases : 1);
    ret->lanes = TILE_LINE_BYTES / grid->scalar_bytes;
    ret->positions = size_mul(size_mul(grid->batch, grid->images), grid->tiles);
    if (size_mul(ret->positions, size_mul(ret->in, ret->out)) > PTRDIFF_MAX / 64) return false;
    // Blocks of one size, whole lines each.
    const size_t blocks = ret->positions ? (ret->positions + block - 1) / block : 1;
    ret->block = round_up((ret->positions + blocks - 1) / blocks, ret->lanes);
    const bool weight = ret->direction == PARTITA_BACKWARD_WEIGHT;
    ret->chunk = weight ? least(ret->block, MOST_TERMS / 2)
                        : least(ret->in, product == TILES_COMPLEX ? MOST_TERMS / 2 : MOST_TERMS);
    // Bins an odd number of lines apart.
    const size_t row = 2 * ret->block, outputs = weight ? 2 * round_up(ret->out, ret->lanes) : row;
    ret->x_bin = (size_mul(ret->in, row) / ret->lanes | 1) * ret->lanes;
    ret->y_bin = (size_mul(weight ? ret->in : ret->out, outputs) / ret->lanes | 1) * ret->lanes;
    ret->d_bin = weight ? (size_mul(ret->out, row) / ret->lanes | 1) * ret->lanes : 0;
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

// Seconds by the host model: operations of the transforms, of the products, and what does not stay in the caches.
static double seconds_of(const struct request *request, const struct tiles *tiles, const size_t n[3],
                         double *ret_flops)
{
    // A transform's operation takes this much of a multiply-add, its loads and stores included; a sample in or out so
    // many copies. Products run at this much of the peak. Measured, see decision 15.
    static const double TRANSFORM = 0.9, EDGE = 6, PRODUCT = 1.15;
    const struct host_costs *costs = &request->host->costs[request->shape->f64];
    const struct tile_axis *axis = tiles->grid.axis;
    const bool weight = tiles->direction == PARTITA_BACKWARD_WEIGHT;
    const double groups = (double)tiles->grid.groups, bytes = (double)tiles->grid.scalar_bytes;
    const double blocks = ceil((double)tiles->positions / (double)tiles->block);
    const double lines = blocks * (double)tiles->block, bins = (double)tile_transform_bins(n);
    const double in = (double)tiles->in, out = (double)tiles->out;
    const size_t rows_in = n[0] * n[1], rows_out = axis[0].tile * axis[1].tile;
    const double samples = (double)(n[0] * n[1] * n[2]);
    // Of one pair of tiles.
    const double forward = tile_transform_flops(n, rows_in), back = tile_transform_flops(n, rows_out);
    const double taps = tile_transform_flops(n, axis[0].taps * axis[1].taps) * in *
                        (double)round_up(tiles->out, tiles->lanes) / 2;
    const double transforms = lines / 2 * (weight ? forward * in + back * out : forward * in + back * out) +
                              (weight ? taps : 0);
    const double products = bins * lines * in * (weight ? (double)round_up(tiles->out, tiles->lanes) : out) *
                            (!weight && tiles->product == TILES_GAUSS ? 3 : 4);
    // Sums are cleared, read and written once, rows of the product packed.
    const double moved = bins * lines * 2 * ((weight ? 4 : 2) * in + (weight ? 4 : 3) * out);
    const double spectra = bins * lines * 2 * 2 * (in + out);
    const double held = (double)tiles_shared_bytes(tiles, n);
    const double factors = weight ? bins * in * out * 2 * 2 : (double)tiles_filter_scalars(tiles, (size_t)bins) / groups;
    double seconds = transforms * costs->fma * TRANSFORM + products * costs->fma * PRODUCT + moved * costs->copy +
                     EDGE * costs->copy * samples * lines * (in + out);
    const double near = (double)request->host->cache_bytes, shared = (double)request->host->shared_bytes / 2;
    seconds += spectra * (held > shared ? costs->copy_far : held > near ? costs->copy : 0);
    seconds += factors * blocks * (factors * bytes > shared ? costs->copy_far : costs->copy);
    *ret_flops = groups * (transforms + 2 * products);
    return groups * seconds;
}

static void consider(const struct request *request, size_t transform, enum tiles_product product, size_t block,
                     struct estimate *ret)
{
    struct tiles tiles;
    size_t n[3];
    double flops;
    if (!tiles_cut(request, transform, product, block, &tiles, n)) return;
    const size_t shared = tiles_shared_bytes(&tiles, n), worker = tiles_worker_bytes(&tiles, n);
    if (size_add(shared, worker) > request->workspace_limit) return;
    const double seconds = seconds_of(request, &tiles, n, &flops);
    if (ret->applicable && ret->seconds <= seconds) return;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t bins = tile_transform_bins(n);
    ret->applicable = true;
    ret->transform = transform;
    ret->variant = (int)product;
    ret->hop = tiles.block;
    ret->seconds = seconds;
    ret->flops = flops;
    ret->shared = shared;
    ret->worker = worker;
    ret->bytes = size_add(size_add(shared, worker),
                          weight ? 0 : size_mul(tiles_filter_scalars(&tiles, bins), tiles.grid.scalar_bytes));
    // Schatzman (1996): a transform's rms error is 0.6 u sqrt(log2 N); three of them, more with Gauss's sums.
    ret->error = (request->shape->f64 ? 1.1e-16 : 6e-8) * (product == TILES_GAUSS ? 1.5 : 1.1) *
                 sqrt(log2((double)(n[0] * n[1] * n[2]) + 1));
}

static void consider_blocks(const struct request *request, size_t transform, struct estimate *ret)
{
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    for (size_t block = 16; block <= 1536; block = block == 16 ? 32 : block == 32 ? 48 : block * 2)
        for (int product = TILES_COMPLEX; product <= (weight ? TILES_COMPLEX : TILES_GAUSS); product++)
            consider(request, transform, (enum tiles_product)product, block, ret);
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
        for (size_t n = 1; n <= least(most, TILE_TRANSFORM_MOST); n = tile_transform_size(n + 1))
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
    tiles_cut(request, plan->choice.transform, (enum tiles_product)plan->choice.variant, plan->choice.hop, &tiles, n);
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
    text_add(text, "  tiles of %zux%zux%zu samples for %zux%zux%zu %s, %zu of them in blocks of %zu; %s\n", n[0], n[1],
             n[2], axis[0].tile, axis[1].tile, axis[2].tile,
             tiles->direction == PARTITA_BACKWARD_WEIGHT ? "of gy" : "outputs", tiles->positions, tiles->block,
             tiles->product == TILES_GAUSS ? "products by Gauss, 3 real ones" : "complex products");
}

// Where a call's arrays are in its workspace.
static void lay_out(struct tiles_call *call, char *workspace)
{
    const struct tiles *tiles = call->tiles;
    const size_t *n = tiles->transform.n;
    call->place = (struct tiles_place *)workspace;
    call->x = workspace + mem_round(tiles->block * sizeof *call->place);
    call->y = call->x + spectra_bytes(tiles, n, tiles->x_bin);
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

static void run(struct tiles_call *call, void *workspace)
{
    const struct tiles *tiles = call->tiles;
    const bool weight = tiles->direction == PARTITA_BACKWARD_WEIGHT;
    const struct tiles_array from = {call->from, false, tiles->in}, gy = {call->from_gy, true, tiles->out};
    lay_out(call, workspace);
    for (call->group = 0; call->group < tiles->grid.groups; call->group++) {
        for (call->first = 0; call->first < tiles->positions; call->first += tiles->block) {
            place_block(call);
            tiles_load(call, &from, call->x, tiles->x_bin);
            if (weight) tiles_load(call, &gy, call->d, tiles->d_bin);
            if (weight) tiles_multiply_weight(call);
            else tiles_multiply(call);
            if (!weight) tiles_store(call);
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
};
