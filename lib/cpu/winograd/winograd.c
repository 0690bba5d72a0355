// SPDX-License-Identifier: MIT
// cpu/winograd: layers by minimal filtering, F(m x m, r x r): tiles of m outputs along an axis cost
// m + r - 1 products where the defining sum takes m r. Stride is polyphase, dilation sub-images
// (geometry/tile_grid.h), so both are served with the taps that are left. This file chooses the
// tiles. Source: Lavin & Gray, Fast algorithms for convolutional neural networks (2015);
// base/winograd_matrix.h.
#include "winograd.h"

#include <assert.h>

// Samples that a transform moves through the L1 cache: read and written at each step.
static double transform_moves(const struct winograd_transform *t)
{
    return (double)(t->from[0] * t->from[1] + t->to[0] * t->from[1] + t->to[0] * t->to[1]);
}

// Adds the transforms of so many tiles of a channel.
static void count_transforms(const struct winograd *p, enum winograd_operand operand, double tiles,
                             struct work *work)
{
    const struct winograd_transform t = winograd_transform_of(p, NULL, operand);
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const bool outputs = operand == WINOGRAD_OUTPUT;
    const size_t step = outputs ? along->out.step : along->in.step;
    double products = 0, moves = transform_moves(&t);
    // Roughly: rows of half as many terms as an extent.
    if (t.extent[0] > 1) products += (double)(t.from[1] * t.to[0] * t.extent[0]) / 2;
    if (t.extent[1] > 1) products += (double)(t.to[0] * t.to[1] * t.extent[1]) / 2;
    const struct tile_axis *depth = winograd_axis(p, WINOGRAD_DEPTH);
    const double planes = (double)depth->extent; // of frequencies
    double samples = (double)(down->tile * (outputs ? along->tile : along->extent));
    if (!outputs && !p->map_lanes) {
        // Rows that tiles share are transformed once, from a copy.
        const double shared = (double)((down->extent - down->tile) * along->extent);
        products -= shared * (double)along->extent / 2;
        moves -= 2 * shared;
        samples = (double)(down->tile * along->tile);
    }
    // Moves overlap with products, but not those of more values than there are registers, nor those
    // of inputs for a few outputs.
    enum { REGISTERS = 36, MIN_OUTPUTS = 16 };
    const bool alone = down->extent * along->extent > REGISTERS ||
                       (!outputs && !p->weight && p->out < MIN_OUTPUTS);
    *(alone ? &work->fma : &work->minimal) += tiles * planes * products;
    *(alone ? &work->copy : &work->minimal_copy) += tiles * planes * moves;
    work->minimal_copy += tiles * planes * 2 * samples;
    if (planes > 1) { // windows are moved, and transformed through planes
        work->minimal += tiles * planes * planes / 2 * samples;
        work->minimal_copy += tiles * 4 * planes * samples;
    }
    // Samples that are not adjacent, or whose channels are, go through a window.
    samples *= planes;
    if (p->strides[outputs].position > 1 && !p->map_lanes) work->copy += tiles * 4 * samples;
    else if (step > 1 && !p->map_lanes) work->gather += tiles * samples;
    else if (p->half) work->copy += tiles * samples;
}

// Backward weight: sums are read and written for every batch, those of a group from where they are,
// and transformed once.
static void count_tap_sums(const struct winograd *p, const struct cost_model *model, double pairs,
                           double batches, struct work *work)
{
    const struct winograd_transform t = winograd_transform_of(p, NULL, WINOGRAD_TAP_SUMS);
    const double bytes = pairs / (double)p->grid.groups * (double)p->grid.scalar_bytes;
    if (batches > 1) work_move(work, model, pairs * batches, bytes);
    const double planes = (double)winograd_axis(p, WINOGRAD_DEPTH)->extent;
    work->copy += pairs / (double)p->frequencies * planes * transform_moves(&t);
}

// The work of a layout for so many pairs of channels and frequencies.
static void winograd_count_work(const struct winograd *p, const struct cost_model *model,
                                double pairs, struct ledger *ledger)
{
    struct work *work = &ledger->work;
    const double scalar = (double)p->grid.scalar_bytes, groups = (double)p->grid.groups;
    const double batches = (double)(p->batches[0] * p->batches[1]) * (double)p->batches[2];
    // Transforms fill vectors map by map, or with maps.
    double tiles = (double)p->maps * (double)(p->batches[1] * p->batches[2]) *
                   (double)winograd_vectors(p, p->batch.rows * p->batch.cols);
    if (p->map_lanes)
        tiles = (double)p->batches[0] * (double)winograd_vectors(p, p->batch.maps) *
                (double)(p->batch.rows * p->batch.cols);
    const double in = (double)p->in * (double)p->rounds[2];
    const double out = (double)p->out * (double)p->rounds[1];
    const double moved = groups * tiles * (in + out) * (double)p->frequencies;
    const double batch = (double)(p->in + p->out) * (double)(p->frequencies * p->positions);
    const double rows =
        (double)p->maps * (double)winograd_axis(p, 0)->tiles * (double)p->batches[2];
    work->fma = pairs * (p->price - p->row_price * rows) * (double)winograd_lanes(p);
    if (p->weight) // whole vectors and blocks of channels
        work->fma *= (double)winograd_vectors(p, p->in) / (double)p->in *
                     (double)size_round_up(p->out, CONV_CHANNELS) / (double)p->out;
    count_transforms(p, WINOGRAD_INPUT, groups * tiles * in, work);
    count_transforms(p, WINOGRAD_OUTPUT, groups * tiles * out, work);
    work->minimal_copy += 2 * groups * tiles * out * (double)p->frequencies; // sums are stored
    // Rows are read or written, and transformed; with a map in each lane not one by one.
    if (!p->map_lanes)
        work->row = 2 * rows * (double)(winograd_axis(p, 0)->tile * p->grid.axis[0].extent) *
                    groups * (double)(p->in + p->out);
    // Moving tiles to and from the nearest cache is part of their transforms.
    work_move(work, model, moved, batch * scalar);
    work->copy -= moved;
    if (p->weight) count_tap_sums(p, model, pairs, batches, work);
    else work_move(&ledger->reads, model, pairs * batches, pairs * scalar);
    ledger->waits = true;
}

static void try_split(const struct request *request, const struct winograd_split *split,
                      struct estimate *ret)
{
    const struct shape *shape = request->shape;
    struct winograd layout;
    const struct winograd *p = &layout;
    winograd_layout(request, split, &layout);
    const double pairs =
        (double)shape->groups * (double)split->in * (double)split->out * (double)split->frequencies;
    struct ledger ledger = {.filter = {.pack = p->weight ? 0 : pairs}};
    const size_t filter = size_mul(p->filter_plane, p->frequencies);
    const size_t splits = p->weight ? (p->k_splits - 1) * split_k_bytes(shape) : 0;
    ret->applicable = true;
    ret->spread = 1;
    ret->peaks = !p->weight;
    ret->hop = p->batch.maps * p->batch.rows * p->batch.cols;
    winograd_count_work(p, request->model, pairs, &ledger);
    ledger_price(request, &ledger, ret);
    ret->flops = 2 * pairs * (double)p->maps * (double)p->grid.tiles;
    ret->shared = size_add(splits, p->common);
    ret->worker = p->worker;
    ret->bytes = size_add(p->worker, size_mul(filter, shape->groups * shape->scalar_bytes));
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
    .max_rank = WINOGRAD_ALL_AXES,
    .half = true,
    .real = true,
    .channels_last = true,
    .layers = true,
    .estimate = winograd_estimate,
    .build = winograd_build,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .filter = {.bytes = winograd_filter_bytes, .pack = winograd_filter_pack},
    .bounded = {.run = winograd_run},
};
