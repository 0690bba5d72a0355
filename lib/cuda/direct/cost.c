// SPDX-License-Identifier: MIT
#include "cost.h"

#include <math.h>
#include <stdio.h>

#include "cuda/device/passes.h"

// Times in multiply-adds of one thread, counted from the kernels' inner loops: a load from shared
// memory or the L1 cache takes the place of four, one load being issued for every four
// multiply-adds (CUDA C++ Programming Guide, throughput of native arithmetic instructions). Those
// of tiles are counted from the machine code (sm_90, f32), where loads go beside multiply-adds: the
// longer of the two counts. Counted, not measured.
enum {
    LOAD = 4,
    ADDRESS = 6,
    TILE_ADDRESS = 14,   // of a tap in a tile, for CUDA_TILE_CHANNELS channels ..
    TILE_ADDRESS_1 = 4,  // .. and for one
    TILE_SAMPLE = 24,    // to shared memory, and a tap for one channel
    RUN_GROUP = 16,      // of a group of taps of a run, besides its products
    RUN_ROW = 25,        // of a row of taps of a run
    WEIGHT_PRODUCT = 14, // of a gradient's sum ..
    WEIGHT_ROW = 476,    // .. and of a row of gy, for CUDA_WEIGHT_TAPS of them
};

enum {
    MOST_PASSES = 1 << 16,
    ENOUGH_BLOCKS = 1024, // of the gradient of taps: several for each processor of any device
    FULL_THREADS = 512,   // of a processor, from which on it is busy
    ROWS_AT_ONCE = 8,     // of the gradient of taps
};
static const double LAUNCH = 3e-6;             // seconds to queue a kernel
static const double MOST_BLOCKS = 2147483647.; // of one launch

// What a launch of a pass is made of.
struct work {
    double blocks, threads; // threads of a block
    double slots;           // times of a multiply-add that each product takes
    double launches;
};

static double outputs_of(const struct cuda_pass *pass)
{
    return (double)pass->axis[0].n * (double)pass->axis[1].n * (double)pass->axis[2].n;
}

static double taps_of(const struct cuda_pass *pass)
{
    return (double)pass->axis[0].taps * (double)pass->axis[1].taps * (double)pass->axis[2].taps;
}

static bool work_of_sums(const struct cuda_pass *pass, enum cuda_variant variant, bool f64,
                         struct work *ret, char *reason, size_t size)
{
    const double channels = (double)pass->groups * (double)pass->to, bytes = f64 ? 8 : 4;
    const double of_channel = (double)pass->from * taps_of(pass) * bytes;
    ret->threads = CUDA_THREADS;
    ret->blocks = ceil(outputs_of(pass) / CUDA_THREADS) * channels * (double)pass->batch;
    ret->launches = 1;
    ret->slots = 1 + LOAD + LOAD + ADDRESS;
    if (variant == CUDA_PLAIN) return true;
    if (of_channel > CUDA_CONSTANT_BYTES) {
        snprintf(reason, size, "%.0f bytes of taps an output channel; constant memory takes %d",
                 of_channel, CUDA_CONSTANT_BYTES);
        return false;
    }
    ret->launches = ceil(channels / floor(CUDA_CONSTANT_BYTES / of_channel));
    ret->slots -= LOAD;
    return true;
}

static bool work_of_tiles(const struct cuda_pass *pass, enum cuda_variant variant, bool f64,
                          size_t most, struct work *ret, char *reason, size_t size)
{
    struct cuda_tile tile;
    if (!cuda_tile_cut(pass, variant, f64, most, &tile)) {
        snprintf(reason, size, "a tile does not fit %zu bytes of shared memory", most);
        return false;
    }
    const double columns = tile.each * tile.threads_x, n = tile.each * tile.channels;
    const double tiles = ceil((double)pass->axis[2].n / columns) *
                         ceil((double)pass->axis[1].n / tile.threads_y) * (double)pass->axis[0].n *
                         ceil((double)pass->to / tile.channels);
    const double taps = (double)pass->axis[1].taps * (double)pass->axis[2].taps;
    ret->threads = tile.threads_x * tile.threads_y;
    ret->blocks = tiles * (double)pass->groups * (double)pass->batch;
    ret->launches = 1;
    // Loads of samples and taps, the latter 16 bytes at a time in two cycles, for n products; tile
    // and taps for all.
    const double tap_loads = tile.channels == 1 ? 1 : tile.channels * (f64 ? 8 : 4) / 16.;
    const double cycles = CUDA_TILE_COLUMNS + tap_loads * (tile.channels == 1 ? 1 : 2);
    const double issued =
        n + CUDA_TILE_COLUMNS + tap_loads + (tile.channels == 1 ? TILE_ADDRESS_1 : TILE_ADDRESS);
    const double row = RUN_GROUP * ceil((double)pass->axis[2].taps / CUDA_TILE_GROUP) + RUN_ROW;
    ret->slots = tile.each == CUDA_TILE_RUN ? 1 + row / (n * (double)pass->axis[2].taps)
                                            : fmax(issued, LOAD * cycles) / n;
    ret->slots += TILE_SAMPLE * ((double)tile.rows * tile.columns + taps * tile.channels) /
                  (taps * n * ret->threads);
    if (variant == CUDA_CACHED)
        ret->slots += ADDRESS * CUDA_TILE_COLUMNS / n; // inside or not, for each sample
    ret->slots *= tiles * n * ret->threads / (outputs_of(pass) * (double)pass->to);
    return true;
}

int64_t cuda_weight_parts(const struct cuda_pass *pass, bool f64, size_t workspace_limit)
{
    const int64_t n_taps = pass->axis[0].taps * pass->axis[1].taps * pass->axis[2].taps;
    const int64_t blocks =
        (n_taps + CUDA_WEIGHT_TAPS - 1) / CUDA_WEIGHT_TAPS * pass->from * pass->to * pass->groups;
    const int64_t rows = pass->batch * pass->axis[0].n * pass->axis[1].n;
    const size_t bytes = (size_t)(pass->groups * pass->tap_group) * (f64 ? 8 : 4);
    int64_t parts = ENOUGH_BLOCKS / blocks;
    if (parts > rows / ROWS_AT_ONCE) parts = rows / ROWS_AT_ONCE;
    if ((size_t)parts > workspace_limit / bytes) parts = (int64_t)(workspace_limit / bytes);
    return parts > 1 ? parts : 1;
}

static void work_of_weight(const struct cuda_pass *pass, bool f64, size_t limit, struct work *ret,
                           size_t *ret_bytes)
{
    const int64_t parts = cuda_weight_parts(pass, f64, limit);
    const double runs = ceil(taps_of(pass) / CUDA_WEIGHT_TAPS);
    const double columns = ceil((double)pass->axis[2].n / 32),
                 lanes = columns * 32 / (double)pass->axis[2].n;
    ret->threads = CUDA_THREADS;
    ret->blocks = runs * (double)(pass->from * pass->to * pass->groups * parts);
    ret->launches = parts > 1 ? 2 : 1;
    ret->slots = (WEIGHT_PRODUCT + WEIGHT_ROW / (columns * CUDA_WEIGHT_TAPS)) * lanes * runs *
                 CUDA_WEIGHT_TAPS / taps_of(pass);
    *ret_bytes = parts > 1 ? (size_t)(parts * pass->groups * pass->tap_group) * (f64 ? 8 : 4) : 0;
}

static bool supported(const struct request *request, char *reason, size_t size)
{
    const struct shape *shape = request->shape;
    bool covers;
    if (shape->stream) snprintf(reason, size, "runs bounded problems, not streams");
    else if (shape->complex_signal) snprintf(reason, size, "works on real samples");
    else if (request->direction == PARTITA_BACKWARD_DATA &&
             cuda_passes_backward(shape, &covers) > MOST_PASSES)
        snprintf(reason, size, "stride and kernel make more than %d sub-problems", MOST_PASSES);
    else return true;
    return false;
}

// Fills the times; products are those of the whole direction.
static void add_times(const struct request *request, const struct work *work, double passes,
                      double terms, double products, struct estimate *ret)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const struct shape *shape = request->shape;
    const double full = (double)device->processors * FULL_THREADS,
                 busy = fmin(1, work->blocks * work->threads / full);
    const double rate = device->flops / (shape->f64 ? device->f64_share : 1) / 2;
    const double samples =
        (double)shape->batch * ((double)shape->in_channels * (double)shape_inputs(shape) +
                                (double)shape->out_channels * (double)shape_outputs(shape));
    ret->seconds = passes * work->launches * LAUNCH +
                   fmax(products * work->slots / (rate * busy),
                        samples * (double)shape->scalar_bytes / device->bytes);
    ret->flops = 2 * products;
    ret->error = (shape->f64 ? 0x1p-53 : 0x1p-24) * 0.3 * sqrt(terms);
}

// The first pass of backward data that has outputs; of all that have some it has most taps. If none
// has, one output.
static struct cuda_pass first_backward(const struct shape *shape, size_t passes)
{
    for (size_t i = 0; i < passes; i++) {
        const struct cuda_pass pass = cuda_pass_backward(shape, i);
        if (outputs_of(&pass) > 0) return pass;
    }
    struct cuda_pass pass = cuda_pass_backward(shape, 0);
    for (int a = 0; a < 3; a++) pass.axis[a].n = 1;
    return pass;
}

void cuda_direct_estimate(const struct request *request, enum cuda_variant variant,
                          struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    char *reason = ret->reason;
    bool covers, applicable = true;
    struct work work;
    if (!supported(request, reason, sizeof ret->reason)) return;
    const bool backward = request->direction == PARTITA_BACKWARD_DATA;
    const size_t passes = backward ? cuda_passes_backward(shape, &covers) : 1;
    const struct cuda_pass pass =
        backward ? first_backward(shape, passes) : cuda_pass_forward(shape);
    const double pairs =
        (double)shape->batch * (double)shape->out_channels * (double)shape->group_in;
    const double products = pairs * (double)shape_taps(shape) * (double)shape_outputs(shape);
    double terms = (double)pass.from * taps_of(&pass);
    if (request->direction == PARTITA_BACKWARD_WEIGHT) {
        work_of_weight(&pass, shape->f64, request->workspace_limit, &work, &ret->shared);
        terms =
            (double)shape->batch * (double)shape_outputs(shape) / CUDA_THREADS + log2(CUDA_THREADS);
    } else if (variant == CUDA_PLAIN || variant == CUDA_CONSTANT)
        applicable = work_of_sums(&pass, variant, shape->f64, &work, reason, sizeof ret->reason);
    else
        applicable = work_of_tiles(&pass, variant, shape->f64, device->shared_bytes, &work, reason,
                                   sizeof ret->reason);
    if (applicable && work.blocks > MOST_BLOCKS) {
        snprintf(reason, sizeof ret->reason, "%.3g thread blocks; a launch takes %.0f", work.blocks,
                 MOST_BLOCKS);
        applicable = false;
    }
    if (!applicable) return;
    add_times(request, &work, (double)passes, terms, products, ret);
    ret->variant = (int)variant;
    ret->hop = (size_t)(outputs_of(&pass) * (double)pass.groups * (double)pass.to *
                        (double)pass.batch / work.blocks);
    ret->bytes = size_add(ret->shared, size_mul(shape->out_channels * shape->group_in,
                                                shape_taps(shape) * shape->tap_bytes));
    ret->applicable = true;
}
