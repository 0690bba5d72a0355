// SPDX-License-Identifier: MIT
// cpu/winograd: layers by minimal filtering, F(m x m, r x r): tiles of m outputs along an axis cost
// m + r - 1 products where the defining sum takes m r. Stride is polyphase, dilation sub-images
// (geometry/tile_grid.h), so both are served with the taps that are left. This file chooses the
// tiles. Source: Lavin & Gray, Fast algorithms for convolutional neural networks (2015);
// base/winograd_matrix.h.
#include "winograd.h"

#include <assert.h>
#include <math.h>

// Multiply-adds of a vector in the transform of a tile, roughly: rows of half as many terms as an
// extent.
static double transform_products(const struct winograd_transform *t)
{
    const double first = (double)(t->from[1] * t->to[0] * t->extent[0]) / 2;
    const double second = (double)(t->to[0] * t->to[1] * t->extent[1]) / 2;
    return (t->extent[0] > 1 ? first : 0) + (t->extent[1] > 1 ? second : 0);
}

// Samples that it moves through the L1 cache: read and written at each step.
static double transform_moves(const struct winograd_transform *t)
{
    return (double)(t->from[0] * t->from[1] + t->to[0] * t->from[1] + t->to[0] * t->to[1]);
}

// Seconds of transforming a vector of tiles of one channel.
static double transform_seconds(const struct winograd *p, const struct cost_rates *costs,
                                enum winograd_operand operand)
{
    const struct winograd_transform t = winograd_transform_of(p, NULL, operand);
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const bool outputs = operand == WINOGRAD_OUTPUT;
    // Vectors of tiles are deinterleaved by so many shuffles each; maps in lanes are transposed.
    // Samples that are not adjacent, or whose channels are, go through a window.
    static const double shuffles[WINOGRAD_EXTENT] = {0, 0, 1, 2, 2, 4, 3, 6};
    const size_t step = outputs ? along->out.step : along->in.step;
    const double window = step > 1 ? WINOGRAD.window : 0;
    double sample = 2 * costs->work.copy;
    if (!p->map_lanes)
        sample +=
            (p->strides[outputs].position > 1 ? WINOGRAD.window_last : window) * costs->work.copy +
            shuffles[along->tile] * costs->work.fma;
    double samples = (double)(down->tile * (outputs ? along->tile : along->extent));
    double work = transform_products(&t) * costs->work.fma + transform_moves(&t) * costs->work.copy;
    if (!outputs && !p->map_lanes) {
        // Rows that tiles share are transformed once, from a copy.
        const double shared = (double)((down->extent - down->tile) * along->extent);
        work -= shared * ((double)along->extent / 2 * costs->work.fma + 2 * costs->work.copy);
        samples = (double)(down->tile * along->tile);
    }
    if (down->extent * along->extent > 36) work *= WINOGRAD.spill;
    const double few = 1 - (double)p->out / (double)WINOGRAD.few_outputs;
    const double alone = outputs || p->weight ? 0 : WINOGRAD.alone * fmax(0, few);
    return WINOGRAD.transform * (1 + alone) * (work + samples * sample);
}

// Products of backward weight have whole blocks of output channels, and whole vectors of input
// channels, of which fewer than a strip are slower: how much more they cost.
static double weight_price(const struct winograd *p, enum cpu_isa isa)
{
    const size_t vectors = ceil_div(p->in, winograd_lanes(p)),
                 left = vectors % WINOGRAD.strip_vectors;
    const double price =
        (double)(vectors - left) + (isa == CPU_AVX2 ? (double)left : WINOGRAD.strip_price[left]);
    return price * (double)winograd_lanes(p) / (double)p->in *
           (double)size_round_up(p->out, CONV_CHANNELS) / (double)p->out;
}

// Extra seconds of writing and reading one of so many scalars, if all of them exceed a core's
// cache: half way between the caches and memory, since part of them is still in the cache.
static double distance_seconds(const struct request *request, double scalars)
{
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const bool far =
        scalars * (double)request->shape->scalar_bytes > (double)request->model->cache_bytes;
    return far ? fmax(0, costs->work.copy_far - costs->work.copy) / 2 : 0;
}

// How much more products of few input channels cost, whose sums begin and end after few terms.
static double sums_price(const struct winograd *p)
{
    return 1 + WINOGRAD.enter * fmax(0, 1 / (double)p->in - 1 / (double)WINOGRAD.few_terms);
}

// Seconds that backward weight takes besides: sums are read and written for every batch, those of a
// group from where they are, and transformed once.
static double tap_sums_seconds(const struct winograd *p, const struct request *request,
                               double pairs, double batches)
{
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const double each =
        costs->work.copy + distance_seconds(request, pairs / (double)p->grid.groups);
    const struct winograd_transform t = winograd_transform_of(p, NULL, WINOGRAD_TAP_SUMS);
    const double moves = pairs / (double)p->frequencies * transform_moves(&t);
    return (winograd_batches(p) == 1 ? 0 : pairs * batches * each) + moves * costs->work.copy;
}

// Seconds of reading all transformed taps for each of the batches beside the products, which wait
// for part of them: for more if tiles lie along the vectors, where one rectangle of sums prefetches
// for all, and for most if taps come from memory. `pairs` counts pairs of channels and frequencies.
static double tap_reads_seconds(const struct winograd *p, const struct request *request,
                                double pairs, double batches)
{
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const double bytes = pairs * (double)request->shape->scalar_bytes;
    const bool far = bytes > (double)request->model->shared_bytes / 2;
    if (p->weight) return 0;
    if (far) return pairs * batches * costs->work.copy_far * WINOGRAD.far_tap;
    return pairs * batches * costs->work.copy *
           (p->transposed ? WINOGRAD.transposed_tap : WINOGRAD.tap);
}

// Seconds of a layout for so many pairs of channels and frequencies.
static double layout_seconds(const struct winograd *p, const struct request *request, double pairs)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const double lanes = (double)winograd_lanes(p);
    const double groups = (double)shape->groups;
    const double batches = (double)(p->batches[0] * p->batches[1]) * (double)p->batches[2];
    // Transforms fill vectors map by map, or with maps.
    double tiles = (double)p->maps * (double)(p->batches[1] * p->batches[2]) *
                   (double)winograd_vectors(p, p->batch.rows * p->batch.cols);
    if (p->map_lanes)
        tiles = (double)p->batches[0] * (double)winograd_vectors(p, p->batch.maps) *
                (double)(p->batch.rows * p->batch.cols);
    const double in = (double)p->in * (double)p->rounds[2];
    const double out = (double)p->out * (double)p->rounds[1];
    const double transforms = in * transform_seconds(p, costs, WINOGRAD_INPUT) +
                              out * transform_seconds(p, costs, WINOGRAD_OUTPUT);
    const double batch = (double)(p->in + p->out) * (double)(p->frequencies * p->positions);
    // With a map in each lane rows are not copied one by one.
    const double rows =
        (double)p->maps * (double)winograd_axis(p, 0)->tiles * (double)p->batches[2];
    const double price = p->price - (p->map_lanes ? p->row_price * rows : 0);
    double seconds = pairs * price * lanes * costs->work.fma *
                     (p->weight ? weight_price(p, request->model->isa) : sums_price(p));
    seconds += groups * tiles * transforms;
    seconds += tap_reads_seconds(p, request, pairs, batches);
    seconds +=
        groups * tiles * (in + out) * (double)p->frequencies * distance_seconds(request, batch);
    if (p->weight) seconds += tap_sums_seconds(p, request, pairs, batches);
    return seconds + memory_seconds(request->model, shape);
}

static double split_pairs(const struct request *request, const struct winograd_split *split)
{
    return (double)request->shape->groups * (double)split->in * (double)split->out *
           (double)split->frequencies;
}

static void try_split(const struct request *request, const struct winograd_split *split,
                      struct estimate *ret)
{
    const struct shape *shape = request->shape;
    struct winograd layout;
    const struct winograd *p = &layout;
    winograd_layout(request, split, &layout);
    const double pairs = split_pairs(request, split);
    const size_t filter = size_mul(p->filter_plane, p->frequencies);
    const size_t splits = p->weight ? (p->k_splits - 1) * split_k_bytes(shape) : 0;
    ret->applicable = true;
    ret->spread = 1;
    // Channels last with a map in each lane leaves lanes beyond the batch as they are.
    ret->peaks = !p->weight && !(p->map_lanes && shape->channels_last);
    ret->hop = p->batch.maps * p->batch.rows * p->batch.cols;
    ret->seconds = layout_seconds(p, request, pairs);
    ret->flops = 2 * pairs * (double)p->maps * (double)p->grid.tiles;
    ret->shared = size_add(splits, p->common);
    ret->worker = p->worker;
    ret->bytes = size_add(p->worker, size_mul(filter, shape->groups * shape->scalar_bytes));
    if (!p->weight) ret->filter_seconds = filter_seconds(request, pairs, WINOGRAD.filter_copies);
    estimate_store(ret, &split->number, sizeof split->number);
}

static void winograd_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    struct tile_grid grid;
    if (!tile_grid_make(shape, request->direction, &grid))
        estimate_refuse(ret, "steps are beyond the range of positions");
    else if (grid.images > WINOGRAD.max_maps)
        estimate_refuse(ret, "dilation makes %zu sub-images; at most %zu", grid.images,
                        WINOGRAD.max_maps);
    else winograd_search(request, try_split, ret);
}

static void *winograd_build(const struct partita_plan *plan, const struct request *request,
                            struct arena *arena)
{
    struct winograd *state = arena_take(arena, sizeof *state), layout;
    struct winograd_split split;
    int number; // of the split
    estimate_load(&plan->choice, &number, sizeof number);
    const bool made = winograd_split(request, number, &split);
    assert(made);
    (void)made;
    winograd_layout(request, &split, &layout);
    assert(layout.worker == plan->choice.worker);
    if (state) *state = layout;
    return state;
}

const struct engine engine_winograd = {
    .name = "cpu/winograd",
    .max_rank = WINOGRAD_AXES,
    .real = true,
    .channels_last = true,
    .layers = true,
    .estimate = winograd_estimate,
    .build = winograd_build,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .filter = {.bytes = winograd_filter_bytes, .pack = winograd_filter_pack},
    .bounded = {.run = winograd_run},
};
