// SPDX-License-Identifier: MIT
// cpu/partitioned: long filters at low latency, in partitions that grow with their distance, with
// the work of every level spread over all calls (partitioned.h says how it goes). Source: Gardner,
// Efficient convolution without input-output delay, JAES 43 (1995); Garcia, AES 113 (2002).
#include "partitioned.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "stream.h"
#include "stream/paths.h"
#include "work.h"

// The ring holds what the level that looks back furthest may still read when its work on a block
// ends, and the head.
static size_t ring_frames(const struct layout *layout)
{
    size_t frames = layout->head + layout->latency + layout->tick;
    for (size_t i = 0; i < layout->n_levels; i++) {
        const struct level *level = &layout->level[i];
        const size_t reach = level->n + (level->start + 2) * layout->tick;
        if (reach > frames) frames = reach;
    }
    return (frames + layout->tick - 1) / layout->tick * layout->tick;
}

static size_t largest_transform(const struct layout *layout)
{
    size_t n = 0;
    for (size_t i = 0; i < layout->n_levels; i++)
        if (layout->level[i].n > n) n = layout->level[i].n;
    return n;
}

static double flops_of(const struct shape *shape, const struct layout *layout)
{
    const double cells = (double)(shape->out_channels * shape->group_in),
                 complex = shape->complex_signal ? 2 : 1;
    double flops = cells * (double)layout->head * 2 * complex * (shape->complex_taps ? 2 : 1);
    for (size_t i = 0; i < layout->n_levels; i++) {
        const struct level *level = &layout->level[i];
        const double n = (double)level->n,
                     channels = (double)(shape->in_channels + shape->out_channels);
        flops += (channels * complex * 2.5 * n * log2(n) +
                  cells * complex * 4 * n * (double)level->parts) /
                 (double)level->hop;
    }
    return flops;
}

// Spectra of a dense filter, and of the stream.
static size_t bytes_of(const struct shape *shape, const struct layout *layout)
{
    // Every frame twice, and whether it was a number.
    size_t bytes =
        size_mul(shape->in_channels, size_mul(ring_frames(layout), 2 * shape->sample_bytes + 1));
    for (size_t i = 0; i < layout->n_levels; i++) {
        const struct level *level = &layout->level[i];
        const size_t spectra =
            size_add(size_mul(shape->out_channels * shape->group_in, level->parts),
                     shape->in_channels * (level_row(level) + 1) +
                         (2 * level->bundle + 4) * shape->out_channels);
        bytes = size_add(bytes, size_mul(spectra, level->n * shape->sample_bytes));
    }
    return bytes;
}

static void partitioned_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    struct layout layout;
    if (!shape->stream) {
        snprintf(ret->reason, sizeof ret->reason, "works on streams, not on bounded signals");
    } else if (!layout_search(request, &layout)) {
        snprintf(ret->reason, sizeof ret->reason, "%zu taps are too few to be cut into partitions",
                 shape->axis[0].span);
    } else if (request->transform && request->transform != largest_transform(&layout)) {
        snprintf(ret->reason, sizeof ret->reason, "chooses its transforms itself");
    } else {
        *ret = (struct estimate){
            .applicable = true,
            .transform = largest_transform(&layout),
            .hop = layout.level[layout.n_levels - 1].hop,
            .latency = layout_delay(&layout),
            .seconds = layout.seconds,
            .flops = flops_of(shape, &layout),
            .bytes = bytes_of(shape, &layout),
            .error = shape_roundoff(shape) * 1.3 * sqrt(log2((double)largest_transform(&layout))),
        };
    }
}

static enum partita_status partitioned_plan_create(struct partita_plan *plan,
                                                   const struct request *request)
{
    struct partitioned *partitioned = mem_allocate(&plan->allocator, sizeof *partitioned);
    if (!partitioned) return PARTITA_ERR_NOMEM;
    plan->state = partitioned;
    if (!layout_search(request, &partitioned->layout)) return PARTITA_ERR_UNSUPPORTED;
    partitioned->ring = ring_frames(&partitioned->layout);
    return schedule_create(plan, request);
}

static void partitioned_plan_destroy(struct partita_plan *plan)
{
    struct partitioned *partitioned = plan->state;
    if (!partitioned) return;
    for (size_t i = 0; i < partitioned->layout.n_levels; i++) {
        fft_destroy(partitioned->work[i].fft);
        mem_release(&plan->allocator, partitioned->work[i].due);
    }
    mem_release(&plan->allocator, partitioned->tick_seconds);
    mem_release(&plan->allocator, partitioned);
}

static enum partita_status dense_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = &plan->shape;
    const size_t n = dense_paths(shape);
    struct partita_cell *cells = mem_allocate(&plan->allocator, size_mul(n, sizeof *cells));
    if (!cells) return PARTITA_ERR_NOMEM;
    paths_of_dense(shape, taps, cells);
    const enum partita_status status = partitioned_filter_create(filter, cells, n, NULL);
    mem_release(&plan->allocator, cells);
    return status;
}

// Which slices are done means something only where work is cut in the same way.
static uint64_t partitioned_key(const struct partita_plan *plan)
{
    const struct partitioned *partitioned = plan->state;
    const struct layout *layout = &partitioned->layout;
    const size_t whole[] = {layout->tick, layout->latency, layout->whole, layout->head,
                            layout->n_levels};
    uint64_t hash = hash_bytes(HASH_BEGIN, whole, sizeof whole);
    for (size_t i = 0; i < layout->n_levels; i++) {
        const struct level *level = &layout->level[i];
        const struct work *work = &partitioned->work[i];
        const size_t parts[] = {level->hop,           level->n,         level->parts,
                                level->start,         level->window,    level->bundle,
                                work->transform.each, work->store.each, work->product.each};
        const char *provider = fft_provider(work->fft);
        hash = hash_bytes(hash, provider, strlen(provider));
        hash = hash_bytes(hash, parts, sizeof parts);
    }
    return hash;
}

static void partitioned_load(const struct partita_plan *plan, struct partita_load *ret)
{
    *ret = ((const struct partitioned *)plan->state)->load;
}

const struct engine engine_partitioned = {
    .name = "cpu/partitioned",
    .estimate = partitioned_estimate,
    .plan_create = partitioned_plan_create,
    .plan_destroy = partitioned_plan_destroy,
    .plan_load = partitioned_load,
    .plan_explain = partitioned_explain,
    .filter_create = dense_filter_create,
    .filter_create_paths = partitioned_filter_create,
    .stream_open = partitioned_stream_open,
    .stream_step = partitioned_stream_step,
    .stream_reset = partitioned_stream_reset,
    .stream_region = partitioned_stream_region,
    .region_key = partitioned_key,
    .stream_close = partitioned_stream_close,
    .stream_pause = work_pause,
    .stream_resume = work_resume,
    .swap_begin = partitioned_swap_begin,
    .swap_end = partitioned_swap_end,
};
