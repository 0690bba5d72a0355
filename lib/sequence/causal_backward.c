// SPDX-License-Identifier: MIT
// Gradients of short causal convolution. g is gy, with silu times silu's slope at the sums, which
// are computed again. gw sums g * x, and gx is the sum of g at a sample and after it with the taps
// in reverse order: that of frame i - (taps - 1) needs g up to frame i, so it follows taps - 1
// frames behind, begins with the initial states, and ends with frames whose g is 0.
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "causal.h"

struct gradient {
    struct causal_block block;
    float g[CAUSAL_TILE] __attribute__((aligned(64)));   // its past first, as the tile of x
    float sum[CAUSAL_TILE] __attribute__((aligned(64))); // of the tile
    float reversed[CAUSAL_TILE / 2 + CAUSAL_MAX_BLOCK] __attribute__((aligned(64)));
    float gw[CAUSAL_TILE / 2 + CAUSAL_MAX_BLOCK] __attribute__((aligned(64)));
    float gbias[CAUSAL_MAX_BLOCK] __attribute__((aligned(64))), zeros[CAUSAL_MAX_BLOCK];
};

// g of `frames` frames from f of a run on, and their share of gw and gbias.
static void load_g(struct gradient *at, const struct causal_run *run, size_t f, size_t frames)
{
    struct causal_block *block = &at->block;
    const struct causal *causal = block->causal;
    const struct partita_causal *call = &causal->call;
    const size_t past = (call->taps - 1) * block->pitch, first = run->first + f;
    float *g = at->g + past;
    causal_move(block, block->tile + past, causal_view(block, &call->x, run->batch, first), frames,
                true);
    causal_move(block, g, causal_view(block, &call->gy, run->batch, first), frames, true);
    if (call->silu) {
        causal_compute(block, at->sum, block->tile, frames, false);
        causal->sums->slope(g, at->sum, frames * block->pitch);
    }
    if (call->gw || call->gbias)
        causal->sums->weight(at->gw, at->gbias, g, block->tile,
                             (struct causal_size){frames, call->taps, block->pitch});
}

// The gradients of the taps - 1 samples before a run (f < taps - 1) and of the run, from f on.
static void store_gx(struct gradient *at, const struct causal_run *run, size_t f, size_t frames)
{
    struct causal_block *block = &at->block;
    const struct partita_causal *call = &block->causal->call;
    const size_t past = call->taps - 1, before = f < past ? size_min(past - f, frames) : 0;
    if (!call->gx.data && !call->ginitial.data) return;
    const struct causal_sum sum = {.y = at->sum,
                                   .x = at->g,
                                   .w = at->reversed,
                                   .bias = at->zeros,
                                   .taps = call->taps,
                                   .rows = frames,
                                   .lanes = block->pitch,
                                   .x_pitch = block->pitch,
                                   .y_pitch = block->pitch,
                                   .w_pitch = block->pitch};
    block->causal->sums->sum(&sum);
    for (size_t i = size_max(f, run->frames); call->gfinal.data && i < f + frames; i++) {
        float *row = at->sum + (i - f) * block->pitch, *final = at->zeros; // for the moment
        causal_move(block, final, causal_view(block, &call->gfinal, run->slot, i - run->frames), 1,
                    true);
        block->causal->kernels->add(row, final, block->pitch);
        memset(final, 0, sizeof at->zeros);
    }
    if (call->ginitial.data)
        causal_move(block, at->sum, causal_view(block, &call->ginitial, run->slot, f), before,
                    false);
    if (call->gx.data)
        causal_move(block, at->sum + before * block->pitch,
                    causal_view(block, &call->gx, run->batch, run->first + f + before - past),
                    frames - before, false);
}

static void compute_run(struct gradient *at, const struct causal_run *run)
{
    struct causal_block *block = &at->block;
    const struct partita_causal *call = &block->causal->call;
    const size_t past = call->taps - 1, all = run->frames + past, pitch = block->pitch;
    assert(call->state_len == past && !call->cache_indices);
    causal_past(block, run, block->tile);
    memset(at->g, 0, sizeof at->g);
    for (size_t f = 0, n; f < all; f += n) {
        n = size_min(block->rows, all - f);
        const size_t present = f < run->frames && !run->absent ? size_min(n, run->frames - f) : 0;
        if (present) load_g(at, run, f, present);
        memset(at->g + (past + present) * pitch, 0, (n - present) * pitch * sizeof *at->g);
        store_gx(at, run, f, n);
        memmove(block->tile, block->tile + n * pitch, past * pitch * sizeof *block->tile);
        memmove(at->g, at->g + n * pitch, past * pitch * sizeof *at->g);
    }
}

static void store_sums(struct gradient *at)
{
    struct causal_block *block = &at->block;
    const struct partita_causal *call = &block->causal->call;
    const size_t size = partita_type_size(call->taps_type), first = block->first * size;
    const struct causal_view gw = {(char *)call->gw + first * call->taps, call->taps, 1,
                                   call->taps_type};
    const struct causal_view gbias = {(char *)call->gbias + first, 1, 1, call->taps_type};
    if (call->gw) causal_move(block, at->gw, gw, call->taps, false);
    if (call->gbias) causal_move(block, at->gbias, gbias, 1, false);
}

// Tasks are blocks of channels, each with all sequences; the memory is that of the workers.
struct backward_tasks {
    const struct causal *causal;
    struct gradient *workers;
};

static void run_task(void *context, size_t task, int worker)
{
    const struct backward_tasks *tasks = context;
    const struct causal *causal = tasks->causal;
    const struct partita_causal *call = &causal->call;
    struct gradient *at = tasks->workers + worker;
    struct causal_run run;
    causal_begin(&at->block, causal, task * causal->block);
    const size_t pitch = at->block.pitch;
    for (size_t k = 0; k < call->taps; k++)
        memcpy(at->reversed + k * pitch, at->block.taps + (call->taps - 1 - k) * pitch,
               pitch * sizeof *at->reversed);
    memset(at->gw, 0, sizeof at->gw);
    memset(at->gbias, 0, sizeof at->gbias);
    memset(at->zeros, 0, sizeof at->zeros);
    for (size_t sequence = 0; sequence < call->batch; sequence++)
        for (size_t f = 0; causal_next_run(call, sequence, &f, &run);) compute_run(at, &run);
    store_sums(at);
}

enum partita_status partita_causal_backward_sized(const struct partita_causal *call,
                                                  size_t call_bytes)
{
    const struct partita_allocator allocator = {0};
    struct causal causal;
    const enum partita_status status = causal_resolve(&causal, call, call_bytes, true);
    if (status) return status;
    struct backward_tasks tasks = {&causal, NULL};
    tasks.workers = mem_reserve(&allocator, (size_t)causal.threads * sizeof *tasks.workers);
    if (!tasks.workers) return PARTITA_ERR_NOMEM;
    thread_loop(causal.threads, ceil_div(causal.call.channels, causal.block), run_task, &tasks);
    mem_release(&allocator, tasks.workers);
    return PARTITA_OK;
}
