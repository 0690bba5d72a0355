// SPDX-License-Identifier: MIT
// How a stream is cut for a device: length of a tick, levels, and what is left to the host, by
// predicted cost.
#include <math.h>
#include <stdio.h>

#include "partitioned.h"

// Typed, not measured: the host's part of launching a graph and the device's part of it, with the
// wait; one pass of 16 points a thread.
static const double QUEUE_SECONDS = 5e-6, LAUNCH_SECONDS = 1e-5, PASS_SECONDS = 5e-7;

enum { LONGEST_TICK = 1024, MOST_GROWTH = 64, FULL_THREADS = 512 };
static const size_t MOST_CELLS = (size_t)1 << 24,
                    MOST_PARTS = (size_t)1 << 22; // so that blocks fit a launch

static size_t cells_of(const struct shape *shape)
{
    return shape->out_channels * shape->group_in;
}

// Seconds of a level's transforms of one block, and of its products of one tick.
static double transform_seconds(const struct request *request, const struct cuda_level *level)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const size_t channels = request->shape->in_channels + request->shape->out_channels;
    const double threads = (double)channels * level->points / CUDA_FFT_POINTS;
    const double waves = ceil(threads / ((double)device->processors * FULL_THREADS));
    return waves * ceil(log2((double)level->points) / 4) * PASS_SECONDS;
}

static double product_seconds(const struct request *request,
                              const struct cuda_partitions *partitions,
                              const struct cuda_level *level)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const double bin = 2 * (double)request->shape->scalar_bytes;
    return 2 * bin * (double)cells_of(request->shape) * level->parts *
           ldexp(1, partitions->log2_share) / device->bytes;
}

// Moving a tick's samples in and out, on the host.
static double copy_seconds(const struct request *request, const struct cuda_cut *cut)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const double tick = cut->partitions.tick, reals = shape->complex_signal ? 2 : 1;
    return (double)(shape->in_channels * 3 + shape->out_channels * 2) * tick * reals * costs->copy;
}

static void predict(const struct request *request, struct cuda_cut *cut)
{
    const struct cuda_partitions *partitions = &cut->partitions;
    double device = LAUNCH_SECONDS, worst = LAUNCH_SECONDS;
    for (int i = 0; i < partitions->n_levels; i++) {
        const struct cuda_level *level = &partitions->level[i];
        const double transforms = transform_seconds(request, level);
        const double products = product_seconds(request, partitions, level);
        device += transforms / level->ticks + products;
        worst += transforms + products;
    }
    const double host =
        QUEUE_SECONDS + copy_seconds(request, cut) + cut->head_seconds * partitions->tick;
    cut->tick = cut->ahead ? fmax(host, device) : host + device;
    cut->worst = cut->ahead ? fmax(host, worst) : host + worst;
    cut->seconds = cut->tick / partitions->tick;
    cut->device = device;
}

// Adds a level of so many ticks a block, with partitions up to the next level's start in ticks, or
// to the end of the taps. False if it cannot be.
static bool add_level(const struct request *request, struct cuda_cut *cut, int ticks, int next)
{
    struct cuda_partitions *partitions = &cut->partitions;
    struct cuda_level *level = &partitions->level[partitions->n_levels];
    const size_t tick = (size_t)partitions->tick, span = request->shape->axis[0].span - cut->head;
    *level = (struct cuda_level){.ticks = ticks, .hop = ticks * partitions->tick};
    level->start = ticks == 1 ? 0 : 2 * ticks - 1;
    level->points = level->hop * (partitions->complex ? 2 : 1);
    const size_t first = (size_t)level->start * tick, end = next ? (size_t)next * tick : span;
    if (first >= span || end > span || end <= first) return false;
    const size_t parts = (end - first + (size_t)level->hop - 1) / (size_t)level->hop;
    if (parts > MOST_PARTS || parts * cells_of(request->shape) > MOST_CELLS * (size_t)64)
        return false;
    if ((size_t)level->points > cuda_fft_most(partitions->f64)) return false;
    level->parts = (int)parts;
    partitions->window = 2 * level->hop;
    partitions->n_levels++;
    return true;
}

static void consider(const struct request *request, const struct cuda_cut *base, int second,
                     int third, struct cuda_cut *best)
{
    struct cuda_cut cut = *base;
    const int ticks[CUDA_LEVELS + 1] = {1, second, third};
    for (int i = 0; i < CUDA_LEVELS && ticks[i]; i++)
        if (!add_level(request, &cut, ticks[i], ticks[i + 1] ? 2 * ticks[i + 1] - 1 : 0)) return;
    predict(request, &cut);
    // Where the host has more to do than the device, of equal ones that which leaves the device the
    // most time.
    if (!best->partitions.n_levels || cut.seconds < best->seconds ||
        (cut.seconds <= best->seconds && cut.device < best->device))
        *best = cut;
}

// Latency as far as it is allowed and needed, in whole output frames; the head has the rest.
static bool choose_head(const struct request *request, struct cuda_cut *cut)
{
    const struct shape *shape = request->shape;
    const size_t tick = (size_t)cut->partitions.tick, stride = shape->axis[0].stride,
                 own = cut->whole ? tick : 0;
    const size_t needed = tick * (cut->ahead ? 2 : 1) - (cut->whole ? 0 : 1), more = needed - own;
    const size_t least = (more + stride - 1) / stride, most = shape->latency / stride;
    cut->latency = own + (least < most ? least : most) * stride;
    cut->head = needed > cut->latency ? needed - cut->latency : 0;
    cut->delay = cut->latency + cut->head;
    return cut->head < shape->axis[0].span;
}

// The head is summed by the host.
static void count_head(const struct request *request, struct cuda_cut *cut)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const double cells = (double)dense_paths(shape),
                 call = fmin((double)shape->block, cut->partitions.tick);
    const double products =
        cells * (double)cut->head * (shape->complex_signal ? 2 : 1) * (shape->complex_taps ? 2 : 1);
    cut->head_seconds = products * costs->fma + (cut->head ? cells * costs->fir_call / call : 0);
    cut->head_flops = 2 * products;
}

static void search_levels(const struct request *request, const struct cuda_cut *cut,
                          struct cuda_cut *best)
{
    consider(request, cut, 0, 0, best);
    for (int second = 2; second <= MOST_GROWTH; second *= 2) {
        consider(request, cut, second, 0, best);
        for (int third = 2 * second; third <= MOST_GROWTH * second; third *= 2)
            consider(request, cut, second, third, best);
    }
}

static void search_tick(const struct request *request, int tick, bool ahead, struct cuda_cut *best)
{
    const struct shape *shape = request->shape;
    struct cuda_cut cut = {.ahead = ahead,
                           .whole = shape->whole_blocks && shape->block % (size_t)tick == 0};
    cut.partitions = (struct cuda_partitions){
        .tick = tick,
        .log2_share = (int)log2(tick) + shape->complex_signal,
        .inputs = (int)shape->in_channels,
        .outputs = (int)shape->out_channels,
        .complex = shape->complex_signal,
        .f64 = shape->f64,
    };
    if (!choose_head(request, &cut)) return;
    cut.partitions.rounds = (int)(cut.delay / (size_t)tick + 2);
    count_head(request, &cut);
    search_levels(request, &cut, best);
}

bool cuda_cut_search(const struct request *request, struct cuda_cut *ret, char *reason, size_t size)
{
    const struct shape *shape = request->shape;
    const size_t most = (size_t)1 << 20,
                 longest = shape->block < LONGEST_TICK ? shape->block : LONGEST_TICK;
    *ret = (struct cuda_cut){.seconds = 0};
    if (shape->in_channels > most || shape->out_channels > most || cells_of(shape) > MOST_CELLS) {
        snprintf(reason, size, "%zu x %zu channels are more than a launch takes",
                 shape->in_channels, shape->out_channels);
        return false;
    }
    // No longer than a usual call: a call that completes a tick has all of its work.
    for (int tick = CUDA_LEAST_TICK; tick == CUDA_LEAST_TICK || (size_t)tick <= longest;
         tick *= 2) {
        search_tick(request, tick, false, ret);
        search_tick(request, tick, true, ret);
    }
    if (!ret->partitions.n_levels)
        snprintf(reason, size, "%zu taps are too few to be cut into partitions",
                 shape->axis[0].span);
    return ret->partitions.n_levels > 0;
}
