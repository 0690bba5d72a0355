// SPDX-License-Identifier: MIT
// cuda/winograd: layers by minimal filtering, F(m x m, r x r), on a device. All tiles of a batch
// are transformed into matrices, one for each frequency, products of these are summed over channels
// (over tiles, backward weight), and the sums are transformed back. Stride is polyphase, dilation
// sub-images (tile_grid.h), so both are served with the taps that are left. Source: Lavin & Gray,
// Fast algorithms for convolutional neural networks (2015), algorithm 1.
#include <assert.h>

#include "base/sizes.h"
#include "cuda/device/bounded_call.h"
#include "cuda/device/filter.h"
#include "cuda/device/grid.h"
#include "cuda/layer/layer.h"
#include "geometry/winograd_search.h"
#include "kernels.h"

_Static_assert((int)CUDA_PRODUCT_SEGMENT == (int)WINOGRAD_TERMS,
               "errors are predicted for chains as long as these");
_Static_assert((int)CUDA_WINOGRAD_AXES == (int)WINOGRAD_AXES, "the same axes");

enum {
    MAX_WORKSPACE = 256 << 20, // without a limit: batches that take longer than to queue them
    MAX_TILES = INT32_MAX,
};
// Times of a multiply-add for an element of a transformed tile, counted from the machine code
// (sm_90, F(4x4,3x3)).
static const double ELEMENT_SLOTS = 23;

// The decision of an estimate.
struct cuda_winograd_choice {
    int split; // the `number` of winograd_split
    struct cuda_layer_choice layer;
};

// One direction, with the parameters of its kernels except the tiles of a batch. Forward and
// backward data: `from` are the tiles that are transformed, `to` those that sums are transformed
// to. Backward weight: tiles of x and of gy.
struct cuda_winograd {
    struct cuda_layer layer;
    struct cuda_winograd_tiles from, to;
    struct cuda_winograd_taps taps;
};

static struct cuda_winograd_side winograd_side(const struct tile_axis *axis, bool outputs,
                                               bool branched)
{
    const struct tile_side *side = outputs ? &axis->out : &axis->in;
    const ptrdiff_t first = tile_position(axis, outputs, 0);
    return (struct cuda_winograd_side){
        .size = (int64_t)side->size,
        .base = tile_sample(side, 0, 0, first),
        .image = (int64_t)side->image,
        .branch = (int64_t)side->branch,
        .step = (int64_t)side->step,
        .tile = (int64_t)axis->tile,
        .images = (int64_t)axis->images,
        .branches = branched ? (int64_t)axis->branches : 1,
        .tiles = (int64_t)axis->tiles,
        .extent = (int)axis->extent,
        .elements = (int)(outputs ? axis->tile : axis->extent),
    };
}

static struct cuda_winograd_tiles winograd_tiles_of(const struct tile_grid *grid, bool outputs,
                                                    int64_t vector)
{
    struct cuda_winograd_tiles tiles = {.groups = (int64_t)grid->groups,
                                        .channels = (int64_t)(outputs ? grid->out : grid->in)};
    for (int a = 0; a < CUDA_WINOGRAD_AXES; a++)
        tiles.axis[a] = winograd_side(&grid->axis[1 + a], outputs, outputs == grid->branches_out);
    const struct cuda_winograd_side *along = &tiles.axis[1];
    tiles.wide = along->step == 1 && along->base == 0 && along->tile % vector == 0 &&
                 along->tile * along->tiles == along->size;
    return tiles;
}

static struct cuda_layer_part winograd_part(const struct partita_plan *plan, size_t number)
{
    (void)number;
    return ((const struct cuda_layer *)plan->state)->largest;
}

static cudaError_t winograd_queue(const struct cuda_layer_batch *batch, enum cuda_layer_move move,
                                  void *to, const void *from, const void *bias)
{
    const struct cuda_winograd *winograd = batch->plan->state;
    const enum cuda_storage storage = cuda_storage_of(&batch->plan->shape);
    if (move == CUDA_PACK || move == CUDA_UNPACK) {
        struct cuda_winograd_taps taps = winograd->taps;
        taps.storage = storage;
        taps.pitch = cuda_layer_pitch(batch, move);
        taps.chunks = batch->product.chunks;
        return cuda_winograd_queue_taps(&taps, move, to, from);
    }
    struct cuda_winograd_tiles tiles = move == CUDA_LOAD ? winograd->from : winograd->to;
    tiles.storage = storage;
    tiles.pitch = cuda_layer_pitch(batch, move);
    tiles.first = (uint32_t)batch->first;
    tiles.n = (uint32_t)batch->n;
    tiles.wide = tiles.wide && !batch->plan->shape.half && (uintptr_t)to % CUDA_PRODUCT_ALIGN == 0;
    return cuda_winograd_queue_tiles(&tiles, move, to, from, bias);
}

static const struct cuda_transform winograd_transform = {winograd_part, winograd_queue};

// A split as a layer, without a choice.
static void lay_out_winograd(const struct request *request, const struct winograd_split *split,
                             struct cuda_winograd *ret)
{
    const struct tile_grid *grid = &split->grid;
    struct cuda_layer layer = cuda_layer_of(request, false);
    layer.transform = &winograd_transform;
    layer.covers = grid->covers;
    layer.largest = (struct cuda_layer_part){
        .matrices = (int64_t)(split->frequencies * grid->groups),
        .in = (int64_t)split->in,
        .out = (int64_t)split->out,
        .positions = (int64_t)size_mul(size_mul(grid->images, grid->batch), grid->tiles)};
    layer.taps_bytes = cuda_layer_taps_bytes(&layer, &layer.largest);
    *ret = (struct cuda_winograd){
        .layer = layer,
        .from = winograd_tiles_of(grid, false, layer.vector),
        .to = winograd_tiles_of(grid, true, layer.vector),
        .taps = {.map = cuda_tap_map_of(grid),
                 .extent = {(int)grid->axis[1].extent, (int)grid->axis[2].extent},
                 .groups = (int64_t)grid->groups,
                 .in = (int64_t)split->in,
                 .out = (int64_t)split->out}};
    ret->to.relu = request->shape->relu && request->direction == PARTITA_FORWARD;
}

static double cuda_winograd_seconds(const struct request *request, const struct cuda_layer *layer)
{
    const struct cuda_rates rates = cuda_rates_of(request);
    const struct cuda_layer_part *all = &layer->largest;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const double batches = ceil((double)all->positions / (double)layer->choice.batch);
    const double in = (double)all->in, out = (double)all->out, matrices = (double)all->matrices;
    // Scalars of tiles, which are written by one kernel and read by the next, and so are sums.
    const double between = matrices * (double)all->positions * (in + out);
    const double scalar = (double)request->shape->scalar_bytes;
    const double sums = weight ? (double)layer->choice.chunks * (batches + 1) : batches;
    const struct cuda_product product = cuda_layer_product(layer, all, layer->choice.batch);
    const struct cuda_stage transforms = {.launches = 2 * batches,
                                          .blocks = rates.threads,
                                          .threads = 1,
                                          .slots = ELEMENT_SLOTS * between,
                                          .bytes =
                                              cuda_sample_bytes(request->shape) + between * scalar};
    const struct cuda_stage products = cuda_layer_products(
        request, &product, batches, (between + matrices * in * out * sums) * scalar);
    return cuda_stage_seconds(&rates, &transforms) + cuda_stage_seconds(&rates, &products);
}

static double split_growth(const struct tile_grid *grid)
{
    const struct tile_axis *down = &grid->axis[1], *along = &grid->axis[2];
    return winograd_error_growth(down->extent, down->taps) *
           winograd_error_growth(along->extent, along->taps);
}

static void try_cuda_split(const struct request *request, const struct winograd_split *split,
                           struct estimate *ret)
{
    struct cuda_winograd_choice choice = {.split = split->number};
    struct cuda_winograd winograd;
    if (request->compatible_with) {
        struct cuda_winograd_choice other;
        estimate_load(request->compatible_with, &other, sizeof other);
        if (split->number != other.split) return;
    }
    const enum cuda_arithmetic arithmetic = cuda_arithmetic_within(
        request, winograd_budget(request), request->shape->f64 ? CUDA_F64 : CUDA_F32,
        split_growth(&split->grid), &ret->error);
    lay_out_winograd(request, split, &winograd);
    const struct cuda_layer_part *all = &winograd.layer.largest;
    if (all->positions > MAX_TILES) return;
    const size_t limit = size_min(request->workspace_limit, MAX_WORKSPACE);
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    cuda_layer_fit(&winograd.layer,
                   weight ? cuda_layer_chunks(&winograd.layer, all->positions, limit) : 1,
                   arithmetic, limit);
    choice.layer = winograd.layer.choice;
    ret->seconds = cuda_winograd_seconds(request, &winograd.layer);
    ret->flops =
        2 * (double)all->matrices * (double)all->in * (double)all->out * (double)all->positions;
    cuda_layer_estimate(&winograd.layer, ret);
    estimate_store(ret, &choice, sizeof choice);
}

static void cuda_winograd_estimate(const struct request *request, struct estimate *ret)
{
    winograd_search(request, try_cuda_split, ret);
}

static enum partita_status cuda_winograd_plan_create(struct partita_plan *plan,
                                                     const struct request *request)
{
    struct cuda_winograd_choice choice;
    struct winograd_split split;
    struct cuda_winograd *winograd = plan->state;
    estimate_load(&plan->choice, &choice, sizeof choice);
    const bool splits = winograd_split(request, choice.split, &split);
    assert(splits);
    (void)splits;
    lay_out_winograd(request, &split, winograd);
    cuda_layer_set(&winograd->layer, &choice.layer);
    return PARTITA_OK;
}

const struct engine cuda_winograd = {
    .name = "cuda/winograd",
    .max_rank = CUDA_WINOGRAD_AXES,
    .half = true,
    .real = true,
    .estimate = cuda_winograd_estimate,
    .state_bytes = sizeof(struct cuda_winograd),
    .plan_create = cuda_winograd_plan_create,
    .directions = CUDA_ALL_DIRECTIONS,
    .filter = {CUDA_FILTER_OPS(cuda_layer_filter_bytes, cuda_layer_filter_pack)},
    .bounded = {.run = cuda_layer_run},
};
