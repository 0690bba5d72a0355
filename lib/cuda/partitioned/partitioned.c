// SPDX-License-Identifier: MIT
// cuda/partitioned: streams of many channels and long filters on a device, in partitions of up to
// three sizes, spectra of filter and history resident there, one graph of three kernels a tick
// (partitions.h, decision 25). Source: Gardner, Efficient convolution without input-output delay,
// JAES 43 (1995).
#include "partitioned.h"

#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "stream/paths.h"

static size_t bytes_of(const struct shape *shape, const struct cuda_cut *cut)
{
    const struct cuda_partitions *partitions = &cut->partitions;
    size_t bytes = size_mul(shape->in_channels, (size_t)partitions->window * shape->sample_bytes);
    for (int i = 0; i < partitions->n_levels; i++) {
        const struct cuda_level *level = &partitions->level[i];
        const size_t spectra =
            size_add(size_mul(dense_paths(shape) + shape->in_channels, (size_t)level->parts),
                     6 * shape->out_channels);
        bytes = size_add(bytes, size_mul(spectra, (size_t)level->points * 2 * shape->scalar_bytes));
    }
    return bytes;
}

static double flops_of(const struct shape *shape, const struct cuda_cut *cut)
{
    const double cells = (double)dense_paths(shape), complex = shape->complex_signal ? 2 : 1;
    const double channels = (double)(shape->in_channels + shape->out_channels);
    double flops = cut->head_flops;
    for (int i = 0; i < cut->partitions.n_levels; i++) {
        const struct cuda_level *level = &cut->partitions.level[i];
        const double n = 2. * level->hop;
        flops += (channels * complex * 2.5 * n * log2(n) + cells * complex * 4 * n * level->parts) /
                 level->hop;
    }
    return flops;
}

static void partitioned_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    struct cuda_cut cut;
    if (!shape->stream) {
        snprintf(ret->reason, sizeof ret->reason, "works on streams, not on bounded signals");
        return;
    }
    if (!cuda_cut_search(request, &cut, ret->reason, sizeof ret->reason)) return;
    const struct cuda_level *last = &cut.partitions.level[cut.partitions.n_levels - 1];
    if (request->transform && request->transform != (size_t)cut.partitions.window) {
        snprintf(ret->reason, sizeof ret->reason, "chooses its transforms itself");
        return;
    }
    *ret = (struct estimate){
        .applicable = true,
        .transform = (size_t)cut.partitions.window,
        .hop = (size_t)last->hop,
        .latency = cut_visible_latency(&cut),
        .seconds = cut.seconds,
        .flops = flops_of(shape, &cut),
        .bytes = bytes_of(shape, &cut),
        .error = shape_roundoff(shape) * 1.3 * sqrt(log2((double)cut.partitions.window)),
    };
}

static enum partita_status partitioned_plan_create(struct partita_plan *plan,
                                                   const struct request *request)
{
    struct cuda_partitioned *partitioned = mem_allocate(&plan->allocator, sizeof *partitioned);
    char reason[96];
    if (!partitioned) return PARTITA_ERR_NOMEM;
    plan->state = partitioned;
    if (!cuda_cut_search(request, &partitioned->cut, reason, sizeof reason))
        return PARTITA_ERR_UNSUPPORTED;
    struct cuda_partitions *partitions = &partitioned->cut.partitions;
    enum partita_status status = cuda_enter(plan);
    for (int i = 0; i < partitions->n_levels && status == PARTITA_OK; i++) {
        struct cuda_level *level = &partitions->level[i];
        status = cuda_fft_create(plan, (size_t)level->points, !partitions->complex, 1,
                                 &partitioned->fft[i]);
        level->form = partitioned->fft[i].form;
    }
    return status;
}

static void partitioned_plan_destroy(struct partita_plan *plan)
{
    struct cuda_partitioned *partitioned = plan->state;
    if (!partitioned) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    for (int i = 0; i < CUDA_LEVELS; i++) cuda_fft_destroy(plan, &partitioned->fft[i]);
    mem_release(&plan->allocator, partitioned);
}

static void partitioned_load(const struct partita_plan *plan, struct partita_load *ret)
{
    const struct cuda_cut *cut = &((const struct cuda_partitioned *)plan->state)->cut;
    const struct cuda_partitions *partitions = &cut->partitions;
    const size_t tick = (size_t)partitions->tick, block = plan->shape.block,
                 ticks = (block + tick - 1) / tick;
    const int start = partitions->level[partitions->n_levels - 1].start;
    const size_t last =
        ((size_t)start + 1) * tick + cut->delay; // a tick more where another swap settles first
    *ret = (struct partita_load){.frames = block,
                                 .mean = cut->seconds * (double)block,
                                 .worst = cut->worst * (double)ticks,
                                 .swap_delay = last};
}

static void partitioned_explain(const struct partita_plan *plan, struct text *text)
{
    const struct cuda_cut *cut = &((const struct cuda_partitioned *)plan->state)->cut;
    const struct cuda_partitions *partitions = &cut->partitions;
    struct partita_load load;
    partitioned_load(plan, &load);
    text_add(text, "  quanta of %d frames; latency %zu; %zu taps in the head\n", partitions->tick,
             cut_visible_latency(cut), cut->head);
    if (cut->head)
        text_add(text, "  head      %7d+ summed directly, on the host, %.3g us a tick\n", 0,
                 cut->head_seconds * partitions->tick * 1e6);
    for (int i = 0; i < partitions->n_levels; i++) {
        const struct cuda_level *level = &partitions->level[i];
        text_add(text, "  level %-3d %7zu+ %d x %d taps, fft %d, blocks of %d ticks\n", i,
                 cut->head + (size_t)level->start * (size_t)partitions->tick, level->parts,
                 level->hop, 2 * level->hop, level->ticks);
    }
    text_add(text, "  a graph launched every tick, its outputs waited for %s\n",
             cut->ahead ? "a tick later" : "at once");
    text_add(text, "  a call of %zu frames: %.3g us in the mean, %.3g us at worst\n", load.frames,
             load.mean * 1e6, load.worst * 1e6);
    text_add(text, "  a swap begins to fade within %zu frames\n", load.swap_delay);
}

static enum partita_status filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const size_t n = dense_paths(&plan->shape);
    struct partita_cell *cells = mem_allocate(&plan->allocator, size_mul(n, sizeof *cells));
    if (!cells) return PARTITA_ERR_NOMEM;
    paths_of_dense(&plan->shape, taps, cells);
    const enum partita_status status = cuda_partitioned_filter_create(filter, cells, n, NULL);
    mem_release(&plan->allocator, cells);
    return status;
}

static uint64_t partitioned_key(const struct partita_plan *plan)
{
    const struct cuda_cut *cut = &((const struct cuda_partitioned *)plan->state)->cut;
    const struct cuda_partitions *partitions = &cut->partitions;
    const size_t whole[] = {
        (size_t)partitions->tick, cut->latency, cut->head, cut->delay, cut->whole, cut->ahead};
    uint64_t hash = hash_bytes(HASH_BEGIN, whole, sizeof whole);
    for (int i = 0; i < partitions->n_levels; i++) {
        const struct cuda_level *level = &partitions->level[i];
        const int parts[] = {level->ticks, level->parts, level->start};
        hash = hash_bytes(hash, parts, sizeof parts);
    }
    return hash;
}

const struct engine cuda_partitioned = {
    .name = "cuda/partitioned",
    .estimate = partitioned_estimate,
    .plan_create = partitioned_plan_create,
    .plan_destroy = partitioned_plan_destroy,
    .plan_load = partitioned_load,
    .plan_explain = partitioned_explain,
    .filter_create = filter_create,
    .filter_create_paths = cuda_partitioned_filter_create,
    .filter_destroy = cuda_partitioned_filter_destroy,
    .stream_open = cuda_partitioned_open,
    .stream_step = cuda_partitioned_step,
    .stream_reset = cuda_partitioned_reset,
    .stream_region = cuda_partitioned_region,
    .region_key = partitioned_key,
    .stream_close = cuda_partitioned_close,
    .stream_pause = cuda_partitioned_pause,
    .stream_resume = cuda_partitioned_resume,
    .swap_begin = cuda_partitioned_swap_begin,
    .swap_end = cuda_partitioned_swap_end,
};
