// SPDX-License-Identifier: MIT
// cuda/direct: the sum itself, for layers. A pass is split into thread blocks, whose cost is the
// counted work of its threads.
#include <assert.h>

#include "base/sizes.h"
#include "core/plan.h"
#include "cuda/device/bounded_call.h"
#include "cuda/device/filter.h"
#include "cuda/device/passes.h"
#include "cuda/device/rates.h"
#include "kernels.h"

// Times in multiply-adds of one thread, counted from the kernels' machine code (sm_90, f32): of a
// product, and of a sample or tap on its way to shared memory.
static const struct {
    double plain, tile, tile_1, span, weight, sample;
} slots = {.plain = 15, .tile = 1.6, .tile_1 = 5, .span = 1.6, .weight = 18, .sample = 24};

enum {
    MAX_PASSES = 1 << 16,
    WARP = 32,
};

static int64_t pass_outputs(const struct cuda_pass *pass)
{
    return pass->axis[0].n * pass->axis[1].n * pass->axis[2].n;
}

static int64_t pass_taps(const struct cuda_pass *pass)
{
    return pass->axis[0].taps * pass->axis[1].taps * pass->axis[2].taps;
}

// Bytes of shared memory; more than any device has if a number does not fit.
static int64_t measure_tile(const struct cuda_pass *pass, bool f64, struct cuda_tile *tile)
{
    const struct cuda_axis *row = &pass->axis[1];
    const struct cuda_axis *column = &pass->axis[2];
    const int64_t width = (int64_t)tile->each * tile->threads_x;
    const int64_t max = 1 << 20;
    for (int a = 1; a < 3; a++) {
        const struct cuda_axis *axis = &pass->axis[a];
        if (axis->from_step > max || axis->from_dilation > max || axis->taps > max)
            return INT64_MAX;
    }
    const int64_t rows =
        (tile->threads_y - 1) * row->from_step + (row->taps - 1) * row->from_dilation + 1;
    int64_t columns =
        (width - 1) * column->from_step + (column->taps - 1) * column->from_dilation + 1;
    int64_t taps = row->taps * column->taps * tile->channels;
    if (tile->each == CUDA_TILE_SPAN) {
        // Windows of whole groups, and rows an odd number of groups apart: four threads of one and
        // four of the next do not meet in the same banks.
        const int64_t groups = (column->taps + CUDA_TILE_GROUP - 1) / CUDA_TILE_GROUP;
        columns = (width / CUDA_TILE_GROUP + groups) * CUDA_TILE_GROUP;
        if (columns % (2 * CUDA_TILE_GROUP) == 0) columns += CUDA_TILE_GROUP;
        taps = row->taps * groups * CUDA_TILE_GROUP;
    }
    if (rows > max || columns > max || taps > max) return INT64_MAX;
    tile->rows = (int)rows;
    tile->columns = (int)columns;
    return (rows * columns + taps) * (f64 ? 8 : 4);
}

// The tiles of a pass whose shared memory is at most `limit` bytes; false if there are none.
static bool split_direct_tiles(const struct cuda_pass *pass, bool f64, size_t limit,
                               struct cuda_tile *ret)
{
    const struct cuda_axis *column = &pass->axis[2];
    struct cuda_tile tile = {.channels =
                                 pass->to < CUDA_TILE_CHANNELS / 2 ? 1 : CUDA_TILE_CHANNELS};
    const bool spans = tile.channels == 1 && column->from_step == 1 && column->from_dilation == 1;
    tile.each = spans ? CUDA_TILE_SPAN : CUDA_TILE_COLUMNS;
    tile.threads_x = power_of_two((column->n + tile.each - 1) / tile.each, WARP);
    tile.threads_y = power_of_two(pass->axis[1].n, CUDA_PASS_THREADS / tile.threads_x);
    assert(tile.threads_x * tile.threads_y <= CUDA_PASS_THREADS);
    for (;;) {
        const int64_t bytes = measure_tile(pass, f64, &tile);
        if (bytes <= (int64_t)limit) {
            tile.shared_bytes = (size_t)bytes;
            *ret = tile;
            return true;
        }
        if (tile.threads_y > 1) tile.threads_y /= 2;
        else if (tile.threads_x > 1) tile.threads_x /= 2;
        else if (tile.channels > 1) tile.channels = 1;
        else return false;
    }
}

// Times of a multiply-add that a product takes.
static double tile_slots(const struct cuda_pass *pass, const struct cuda_tile *tile, double tiles)
{
    const double taps = (double)pass->axis[1].taps * (double)pass->axis[2].taps;
    const double outputs = tile->each * tile->channels * tile->threads_x * tile->threads_y;
    const double loaded = (double)tile->rows * tile->columns + taps * tile->channels;
    double product = tile->channels == 1 ? slots.tile_1 : slots.tile;
    if (tile->each == CUDA_TILE_SPAN) product = slots.span;
    product += slots.sample * loaded / (taps * outputs);
    return product * tiles * outputs / ((double)pass_outputs(pass) * (double)pass->to);
}

// How a pass is queued, its slots those of one product; false if no tile fits.
static bool pass_stage(const struct request *request, int variant, const struct cuda_pass *pass,
                       struct cuda_stage *ret)
{
    const double planes = (double)pass->groups * (double)pass->batch;
    const double blocks = ceil((double)pass_outputs(pass) / CUDA_PASS_THREADS);
    *ret = (struct cuda_stage){.blocks = blocks * planes * (double)pass->to,
                               .threads = CUDA_PASS_THREADS,
                               .slots = slots.plain};
    if (variant == CUDA_DIRECT_PLAIN) return true;
    const size_t shared = cuda_device_for(request)->gpu->shared_bytes;
    struct cuda_tile tile;
    if (!split_direct_tiles(pass, request->shape->f64, shared, &tile)) return false;
    const double tiles = ceil((double)pass->axis[2].n / (tile.each * tile.threads_x)) *
                         ceil((double)pass->axis[1].n / tile.threads_y) * (double)pass->axis[0].n *
                         ceil((double)pass->to / tile.channels);
    ret->blocks = tiles * planes;
    ret->threads = tile.threads_x * tile.threads_y;
    ret->slots = tile_slots(pass, &tile, tiles);
    return true;
}

// The same of the gradient of taps.
static struct cuda_stage weight_stage(const struct cuda_pass *pass)
{
    const double taps = (double)pass_taps(pass);
    const double blocks = ceil(taps / CUDA_WEIGHT_TAPS);
    return (struct cuda_stage){.blocks = blocks * (double)(pass->from * pass->to * pass->groups),
                               .threads = CUDA_PASS_THREADS,
                               .slots = slots.weight * blocks * CUDA_WEIGHT_TAPS / taps};
}

// The pass that has most taps, with one output at least.
static struct cuda_pass first_pass(const struct request *request)
{
    struct cuda_pass pass = cuda_pass_of(request->shape, request->direction, 0);
    for (int a = 0; a < 3; a++)
        if (pass.axis[a].n < 1) pass.axis[a].n = 1;
    return pass;
}

static void direct_estimate_variant(const struct request *request, int variant,
                                    struct estimate *ret)
{
    bool covers;
    const struct shape *shape = request->shape;
    const struct cuda_rates rates = cuda_rates_of(request);
    const struct cuda_pass pass = first_pass(request);
    const double channels = (double)shape->out_channels * (double)shape->group_in;
    const double results = (double)shape->batch * (double)shape_outputs(shape);
    const double products = channels * results * (double)shape_taps(shape);
    double terms = (double)pass.from * (double)pass_taps(&pass);
    struct cuda_stage stage;
    if (request->direction == PARTITA_BACKWARD_WEIGHT) {
        stage = weight_stage(&pass);
        terms = results / CUDA_PASS_THREADS + log2(CUDA_PASS_THREADS);
    } else if (!pass_stage(request, variant, &pass, &stage)) {
        estimate_refuse(ret, "no tile with these taps fits shared memory");
        return;
    }
    if (stage.blocks > CUDA_MAX_BLOCKS) {
        estimate_refuse(ret, "%.3g thread blocks; a launch takes %.0f", stage.blocks,
                        CUDA_MAX_BLOCKS);
        return;
    }
    const double outputs = (double)pass_outputs(&pass) * (double)pass.groups * (double)pass.to;
    assert(stage.blocks > 0 && stage.slots > 0);
    ret->hop = (size_t)(outputs * (double)pass.batch / stage.blocks);
    stage.launches = (double)cuda_passes(shape, request->direction, &covers);
    stage.slots *= products;
    stage.bytes = cuda_sample_bytes(shape);
    ret->seconds = cuda_stage_seconds(&rates, &stage);
    ret->flops = 2 * products;
    ret->error = shape_roundoff(shape) * 0.3 * sqrt(terms);
    ret->variant = variant;
    ret->bytes = cuda_taps_bytes(shape);
    ret->applicable = true;
}

static void cuda_direct_estimate(const struct request *request, struct estimate *ret)
{
    cuda_passes_estimate(request, CUDA_DIRECT_VARIANTS, MAX_PASSES, direct_estimate_variant, ret);
}

static enum partita_status direct_run_pass(const struct partita_plan *plan,
                                           const struct cuda_pass *pass,
                                           const struct partita_filter *filter,
                                           const struct operands *operands)
{
    const bool f64 = plan->shape.f64;
    const struct cuda_arrays arrays = cuda_arrays_of(filter, operands, NULL);
    struct cuda_tile tile;
    assert(plan->choice.variant >= 0 && plan->choice.variant < CUDA_DIRECT_VARIANTS);
    for (int a = 0; a < 3; a++)
        if (pass->axis[a].n == 0) return PARTITA_OK;
    if (plan->choice.variant == CUDA_DIRECT_PLAIN)
        return CU(plan, cuda_direct_queue_plain(pass, f64, &arrays));
    // Estimate split the pass with most taps, so that the others can be split too.
    if (!split_direct_tiles(pass, f64, cuda_device_of(plan)->gpu->shared_bytes, &tile))
        return PARTITA_ERR_UNSUPPORTED;
    return CU(plan, cuda_direct_queue_tiles(pass, f64, &tile, &arrays));
}

static enum partita_status cuda_direct_run(const struct partita_plan *plan,
                                           const struct partita_filter *filter,
                                           const struct operands *operands, void *workspace)
{
    const struct shape *shape = &plan->shape;
    bool covers;
    const size_t passes = cuda_passes(shape, plan->direction, &covers);
    enum partita_status status = PARTITA_OK;
    (void)workspace;
    if (!covers) status = cuda_clear_result(plan, operands->to);
    for (size_t i = 0; i < passes && status == PARTITA_OK; i++) {
        const struct cuda_pass pass = cuda_pass_of(shape, plan->direction, i);
        status = plan->direction == PARTITA_BACKWARD_WEIGHT
                     ? CU(plan, cuda_direct_queue_weight(&pass, shape->f64, operands->to,
                                                         operands->from[0], operands->from[1]))
                     : direct_run_pass(plan, &pass, filter, operands);
    }
    return status;
}

const struct engine cuda_direct = {
    .name = "cuda/direct",
    .variants = (const char *const[]){"plain", "halo", NULL},
    .directions = CUDA_ALL_DIRECTIONS,
    .max_rank = PARTITA_MAX_RANK,
    .real = true,
    .estimate = cuda_direct_estimate,
    .filter = {CUDA_FILTER_OPS(cuda_filter_copy_bytes, cuda_filter_copy)},
    .bounded = {.run = cuda_direct_run},
};
