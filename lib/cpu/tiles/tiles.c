// SPDX-License-Identifier: MIT
// Layers by transforms of tiles (decision 15). A layer is a grid of tiles that sees neither stride
// nor dilation (tile_grid.h). Tiles overlap by the taps, as in overlap-save along every axis; the
// products of all tiles and channels at one frequency are one matrix product. Backward data are the
// same with gy and reversed taps; backward weight multiplies x by the conjugate of gy without its
// overlap, sums over tiles and keeps the lags that are taps. Source: Mathieu, Henaff & LeCun, Fast
// training of convolutional networks through FFTs (2013); Zlateski, Jia, Li & Durand, FFT
// convolutions are faster than Winograd on modern CPUs, here's why (2018), for tiles of any size.
#include "tiles.h"
#include "base/sizes.h"

#include <string.h>

// Output channels of turned sums of backward weight where forward says how tiles are cut.
enum { WEIGHT_PART = 64 };

// One arena: the plan's state, then its tables. Called twice, to size it and to cut it.
static struct tiles *cut_state(const struct partita_plan *plan, const struct request *request,
                               struct arena *arena)
{
    struct tiles *state = arena_take(arena, sizeof *state), tiles;
    size_t n[3];
    const struct tiles_way way = tiles_way_of(&plan->choice);
    tiles_cut(request, &way, &tiles, n);
    tile_tables_make(n, request->shape->f64, arena, &tiles.transform);
    tiles.offset = arena_take(arena, 2 * tiles.chunk * sizeof *tiles.offset);
    if (!state) return NULL;
    const size_t out = size_round_up(tiles.out, tiles.lanes);
    const bool weight = tiles.direction == PARTITA_BACKWARD_WEIGHT;
    const size_t row = weight ? out : tiles.block;
    for (size_t i = 0; i < 2 * tiles.chunk; i++)
        if (tiles.product == TILES_TURNED) tiles.offset[i] = i * tiles.panel;
        else if (weight || tiles.product == TILES_COMPLEX)
            tiles.offset[i] = i / 2 * 3 * row + (i % 2 ? 0 : row);
        else tiles.offset[i] = i * 3 * row;
    *state = tiles;
    return state;
}

static enum partita_status tiles_plan_create(struct partita_plan *plan,
                                             const struct request *request)
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
    text_add(text,
             "  tiles of %zux%zux%zu samples for %zux%zux%zu %s, %zu of them in blocks of %zu, %zu "
             "channels at once; %s\n",
             n[0], n[1], n[2], axis[0].tile, axis[1].tile, axis[2].tile,
             tiles->direction == PARTITA_BACKWARD_WEIGHT ? "of gy" : "outputs", tiles->positions,
             tiles->block, tiles->part,
             tiles->product == TILES_TURNED  ? "products with output channels along the vectors"
             : tiles->product == TILES_GAUSS ? "products by Gauss, 3 real ones"
                                             : "complex products");
}

static size_t block_count(const struct tiles *tiles)
{
    return ceil_div(tiles->positions, tiles->block);
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
    call->y = call->x + (reads_saved(call) ? 0 : tiles_spectra_bytes(tiles, n, tiles->x_bin));
    call->d = call->y + tiles_spectra_bytes(tiles, n, tiles->y_bin);
    call->packed = call->d + tiles_spectra_bytes(tiles, n, tiles->d_bin);
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
        call->part_n = size_min(tiles->part, tiles->out - call->part_first);
        if (tiles->product == TILES_TURNED) tiles_multiply_turned(call);
        else tiles_multiply(call);
        tiles_store(call);
    }
}

// Turned sums of the gradient: there is one block, so that parts of them are complete and need not
// leave the caches.
static void run_weight_parts(struct tiles_call *call)
{
    const struct tiles *tiles = call->tiles;
    for (call->in_first = 0; call->in_first < tiles->in; call->in_first += tiles->in_part) {
        call->in_n = size_min(tiles->in_part, tiles->in - call->in_first);
        tiles_pack_turned(call);
        for (call->part_first = 0; call->part_first < tiles->out; call->part_first += tiles->part) {
            call->part_n = size_min(tiles->part, tiles->out - call->part_first);
            tiles_multiply_weight_turned(call);
            tiles_store_weight(call);
        }
    }
}

static void run(struct tiles_call *call, void *workspace)
{
    const struct tiles *tiles = call->tiles;
    const bool weight = tiles->direction == PARTITA_BACKWARD_WEIGHT,
               turned = tiles->product == TILES_TURNED;
    const struct tiles_array from = {call->from, false,     tiles->in,
                                     0,          tiles->in, turned ? TILES_CELLS : TILES_POSITIONS},
                             gy = {call->from_gy, true,
                                   tiles->out,    0,
                                   tiles->out,    turned ? TILES_CHANNELS : TILES_POSITIONS};
    lay_out(call, workspace);
    for (call->group = 0; call->group < tiles->grid.groups; call->group++) {
        for (call->first = 0; call->first < tiles->positions; call->first += tiles->block) {
            place_block(call);
            if (call->saved)
                call->x =
                    call->saved + (call->group * block_count(tiles) + call->first / tiles->block) *
                                      tiles_spectra_bytes(tiles, tiles->transform.n, tiles->x_bin);
            if (!reads_saved(call)) tiles_load(call, &from, call->x, tiles->x_bin);
            if (weight) tiles_load(call, &gy, call->d, tiles->d_bin);
            if (!weight) run_parts(call);
            else if (turned) run_weight_parts(call);
            else tiles_multiply_weight(call);
        }
        if (weight && !turned) {
            call->in_n = tiles->in;
            call->part_n = tiles->out;
            tiles_store_weight(call);
        }
    }
}

static enum partita_status tiles_run(const struct partita_plan *plan,
                                     const struct partita_filter *filter,
                                     const struct operands *operands, void *workspace)
{
    const struct shape *shape = &plan->shape;
    struct tiles_call call = {.plan = plan,
                              .tiles = plan->state,
                              .filter = filter,
                              .from = operands->from[0],
                              .from_gy = operands->from[1],
                              .to = operands->to,
                              .saved = operands->cached_spectra};
    // Samples of gx that no tap reads.
    const bool gaps = !call.tiles->grid.covers || call.tiles->positions == 0;
    if (plan->direction == PARTITA_BACKWARD_DATA && gaps)
        memset(call.to, 0,
               shape->batch * shape->in_channels * shape_inputs(shape) * shape->scalar_bytes);
    run(&call, workspace);
    return PARTITA_OK;
}

static size_t tiles_saved_bytes(const struct partita_plan *plan)
{
    const struct tiles *tiles = plan->state;
    return size_mul(size_mul(tiles->grid.groups, block_count(tiles)),
                    tiles_spectra_bytes(tiles, tiles->transform.n, tiles->x_bin));
}

// Forward's blocks are cut the same once more, since they are as even as whole lines can be.
static enum partita_status tiles_saved_plan(const struct partita_plan *plan,
                                            const struct partita_plan *weight,
                                            struct partita_plan *ret_plan)
{
    const struct tiles *forward = plan->state;
    const struct request request = {.shape = &plan->shape, .direction = PARTITA_BACKWARD_WEIGHT};
    const struct tiles_way way = {.transform = plan->choice.transform,
                                  .block = forward->block,
                                  .part = WEIGHT_PART,
                                  .product = forward->product == TILES_TURNED ? TILES_TURNED
                                                                              : TILES_COMPLEX};
    struct tiles tiles;
    size_t n[3];
    tiles_cut(&request, &way, &tiles, n);
    *ret_plan = *weight;
    ret_plan->state = NULL;
    ret_plan->choice.transform = way.transform;
    ret_plan->choice.hop = tiles.block;
    ret_plan->choice.variant = tiles_variant(&tiles);
    ret_plan->choice.shared =
        tiles_shared_bytes(&tiles, n) - tiles_spectra_bytes(&tiles, n, tiles.x_bin);
    ret_plan->choice.worker = tiles_worker_bytes(&tiles, n);
    return tiles_plan_create(ret_plan, &request);
}

const struct engine engine_tiles = {
    .name = "cpu/tiles",
    .max_rank = PARTITA_MAX_RANK,
    .estimate = tiles_estimate,
    .plan_create = tiles_plan_create,
    .plan_destroy = tiles_plan_destroy,
    .plan_explain = tiles_explain,
    .filter_create = tiles_filter_create,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .run = tiles_run,
    .cached_spectra_bytes = tiles_saved_bytes,
    .cached_spectra_plan = tiles_saved_plan,
};
