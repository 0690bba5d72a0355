// SPDX-License-Identifier: MIT
// Short causal convolution: outputs and final states.
#include <string.h>

#include "base/thread.h"
#include "causal.h"

// Writes zeros to the y of a run that is padding.
static void clear(struct causal_block *block, const struct causal_run *run)
{
    const struct partita_causal *call = &block->causal->call;
    memset(block->tile, 0, sizeof block->tile);
    for (size_t f = 0, n; f < run->frames; f += n) {
        n = size_min(block->rows, run->frames - f);
        causal_store(block, causal_view(block, &call->y, run->batch, run->first + f), block->tile,
                     n);
    }
}

// Writes the state after a run, while y, which may be x, is not yet written. The tile is free
// behind its past.
static void keep_state(struct causal_block *block, const struct causal_run *run)
{
    const struct partita_causal *call = &block->causal->call;
    const struct causal_view final = causal_view(block, &call->final, run->slot, 0);
    const size_t length = call->state_len, frames = run->frames;
    const bool ring = call->cache_seqlens;
    const size_t begin = ring && frames < length ? length - frames : 0;
    float *rows = block->tile + (call->taps - 1) * block->pitch;
    assert(!ring || call->initial.data == call->final.data);
    for (size_t i = begin, n; i < length; i += n) {
        const size_t from = i + frames; // in the old state and the run behind it
        n = size_min(block->rows, from < length ? length - from : length - i);
        if (from >= length)
            causal_load(block, rows,
                        causal_view(block, &call->x, run->batch, run->first + from - length), n);
        else if (run->initial)
            causal_load(block, rows, causal_view(block, &call->initial, run->slot, from), n);
        else memset(rows, 0, n * block->pitch * sizeof *rows);
        causal_ring(block, final, rows, ring ? run->position % length + from % length : i, n,
                    false);
    }
}

static void compute_run(struct causal_block *block, const struct causal_run *run)
{
    const struct causal *causal = block->causal;
    const struct partita_causal *call = &causal->call;
    const struct causal_taps taps = {block->taps, block->bias, call->taps, block->pitch};
    const size_t past = (call->taps - 1) * block->pitch;
    causal_past(block, run, block->tile);
    if (call->final.data) keep_state(block, run);
    for (size_t f = 0, n; f < run->frames; f += n) {
        const size_t at = run->first + f;
        n = size_min(block->rows, run->frames - f);
        causal_load(block, block->tile + past, causal_view(block, &call->x, run->batch, at), n);
        causal->sums->sum(block->tile, block->tile, &taps, n, call->silu);
        causal_store(block, causal_view(block, &call->y, run->batch, at), block->tile, n);
        memmove(block->tile, block->tile + n * block->pitch, past * sizeof *block->tile);
    }
}

// Tasks are blocks of channels of groups of sequences.
struct forward_tasks {
    const struct causal *causal;
    size_t blocks, group;
};

static void run_task(void *context, size_t task, int worker)
{
    const struct forward_tasks *tasks = context;
    const struct partita_causal *call = &tasks->causal->call;
    const size_t first = task / tasks->blocks * tasks->group;
    const size_t end = size_min(first + tasks->group, call->batch);
    struct causal_block block;
    struct causal_run run;
    (void)worker;
    causal_begin(&block, tasks->causal, task % tasks->blocks * tasks->causal->block);
    for (size_t sequence = first; sequence < end; sequence++)
        for (size_t at = 0; causal_next_run(call, sequence, &at, &run);) {
            if (run.absent) clear(&block, &run);
            else compute_run(&block, &run);
        }
}

enum partita_status partita_causal_forward_sized(const struct partita_causal *call,
                                                 size_t call_bytes)
{
    enum { TASKS = 4 }; // for each thread
    struct causal causal;
    const enum partita_status status = causal_resolve(&causal, call, call_bytes, false);
    if (status) return status;
    const size_t blocks = ceil_div(causal.call.channels, causal.block);
    const size_t wanted = ceil_div(TASKS * (size_t)causal.threads, blocks);
    const size_t group = ceil_div(causal.call.batch, wanted);
    const struct forward_tasks tasks = {&causal, blocks, group};
    thread_loop(causal.threads, blocks * ceil_div(causal.call.batch, group), run_task,
                (void *)&tasks);
    return PARTITA_OK;
}
