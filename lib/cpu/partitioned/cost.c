// SPDX-License-Identifier: MIT
// What a layout's parts cost, by the cost model.
#include <math.h>

#include "kernels/kernels.h"
#include "partitioned.h"

// What a slice, a turn of an output and a tick cost beyond their loops.
static const double SLICE_SECONDS = 1e-8, TURN_SECONDS = 2e-8, TICK_SECONDS = 3e-8;

static size_t cells_of(const struct shape *shape)
{
    return shape->out_channels * shape->group_in;
}

// Complex bins of a level's spectra.
static size_t bins_of(const struct shape *shape, const struct level *level)
{
    return shape->complex_signal ? level->n : level->n / 2;
}

// How far away a level's spectra are: all cells' partitions and all inputs' slots.
static enum cost_distance distance_of(const struct request *request, const struct level *level)
{
    const struct shape *shape = request->shape;
    const size_t bytes = 2 * bins_of(shape, level) * shape->scalar_bytes,
                 shared = request->model->shared_bytes;
    const size_t held =
        bytes * (cells_of(shape) * level->parts + shape->in_channels * level_slots(level));
    // A filter that no cache holds comes from memory block after block, but for its small levels.
    const size_t filter = 2 * cells_of(shape) * shape->axis[0].span * shape->tap_bytes;
    if (filter > shared / 2 && held > shared / 16) return COST_MEMORY;
    return held > request->model->cache_bytes / 2 ? COST_FAR : COST_NEAR;
}

// Seconds of a bin's product, with 1, 2 and 4 sums at once. The outputs share what they read of the
// inputs.
static void prices_of(const struct request *request, const struct level *level, double prices[3])
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const enum cost_distance distance = distance_of(request, level);
    const double share =
        fmin(1, (double)(level->multiple * shape->in_channels) / (double)cells_of(shape));
    for (int i = 0; i < 3; i++) {
        const double near = costs->product[COST_NEAR][i], own = costs->product[distance][i];
        if (distance == COST_NEAR) prices[i] = near;
        else if (distance == COST_FAR) prices[i] = fmax(near, own * (1 + share) / 2);
        else prices[i] = own * (1 + share);
    }
}

// Seconds of one bin's products with a block, of one cell.
static double bin_seconds(const struct level *level, const double prices[3])
{
    size_t bounds[SECTIONS + 1];
    level_sections(level, bounds);
    return (double)(bounds[1] - bounds[0]) * prices[0] +
           (double)(bounds[2] - bounds[1]) * prices[1] +
           (double)(bounds[3] - bounds[2]) * prices[level->bundle / 2];
}

// Seconds of a block's products for all outputs.
static double block_seconds(const struct request *request, const struct level *level,
                            const double prices[3])
{
    const struct shape *shape = request->shape;
    size_t turns = 0;
    for (size_t age = 0; age < level->bundle; age++)
        turns += level_turns(level, age, (struct turn[SECTIONS]){{0}});
    return (double)(cells_of(shape) * bins_of(shape, level)) * bin_seconds(level, prices) +
           (double)(turns * shape->out_channels) * TURN_SECONDS;
}

void cost_bundle(const struct request *request, struct level *level)
{
    const size_t tiles =
        2 * bins_of(request->shape, level) * request->shape->scalar_bytes / TILE_BYTES;
    const size_t known =
        (level->parts - 1) * level->multiple; // blocks before, of the last partition
    double prices[3];
    prices_of(request, level, prices);
    level->far = distance_of(request, level) != COST_NEAR;
    level->bundle = 1;
    double least = block_seconds(request, level, prices);
    for (size_t bundle = 2; bundle <= MAX_BUNDLE && bundle <= tiles && bundle - 1 <= known;
         bundle *= 2) {
        struct level other = *level;
        other.bundle = bundle;
        const double seconds = block_seconds(request, &other, prices);
        if (seconds >= least) continue;
        least = seconds;
        level->bundle = bundle;
    }
}

double cost_products(const struct request *request, const struct level *level)
{
    double prices[3];
    prices_of(request, level, prices);
    return block_seconds(request, level, prices) / (double)level->hop;
}

struct level_costs cost_level(const struct request *request, const struct level *level)
{
    const struct shape *shape = request->shape;
    double prices[3];
    prices_of(request, level, prices);
    return (struct level_costs){
        .transform =
            cost_model_fft(request->model, shape->f64, shape->complex_signal, level->n) / 2,
        .product = bin_seconds(level, prices) * (double)bins_of(shape, level),
    };
}

double cost_transforms(const struct request *request, const struct level *level)
{
    const struct shape *shape = request->shape;
    const double channels = (double)(shape->in_channels + shape->out_channels);
    const struct cost_rates *model = &request->model->costs[shape->f64];
    const double one =
        cost_model_fft(request->model, shape->f64, shape->complex_signal, level->n) / 2;
    // Inputs are fetched; half of the outputs is written.
    const double moved =
        (double)(level->n * (shape->complex_signal ? 2 : 1)) * (model->copy / 4 + model->fetch);
    return channels * (one + moved + 4 * SLICE_SECONDS) / (double)level->hop;
}

double cost_head(const struct request *request, size_t head, size_t tick)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const size_t call = shape->block < tick ? shape->block : tick;
    const double products = (shape->complex_signal ? 2 : 1) * (shape->complex_taps ? 2 : 1);
    const double cell =
        (double)head * products * costs->fma + (head ? costs->fir_call / (double)call : 0);
    return (double)cells_of(shape) * cell + TICK_SECONDS / (double)call;
}

double cost_tick(void)
{
    return TICK_SECONDS;
}
