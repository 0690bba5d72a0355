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
        causal_move(block, block->tile, causal_view(block, &call->y, run->batch, run->first + f), n,
                    false);
    }
}

// Writes the state after a run, while y, which may be x, is not yet written. The tile holds the
// past and is free behind it.
static void keep_state(struct causal_block *block, const struct causal_run *run)
{
    const struct partita_causal *call = &block->causal->call;
    const size_t past = call->taps - 1, pitch = block->pitch, length = call->state_len;
    const size_t frames = run->frames, before = length - past; // before the past
    const bool ring = call->cache_seqlens;
    float *const rows = block->tile + past * pitch;
    assert(!ring || call->initial.data == call->final.data);
    for (size_t i = ring && frames < length ? length - frames : 0, n; i < length; i += n) {
        n = size_min(block->rows, length - i);
        size_t at = i + frames, end = at + n, m; // in the old state and the run behind it
        float *row = rows;
        if (at < before) {
            m = size_min(end, before) - at;
            memset(row, 0, m * pitch * sizeof *row);
            if (run->initial)
                causal_move(block, row, causal_view(block, &call->initial, run->slot, at), m, true);
            at += m, row += m * pitch;
        }
        if (at < end && at < length) {
            m = size_min(end, length) - at;
            memcpy(row, block->tile + (at - before) * pitch, m * pitch * sizeof *row);
            at += m, row += m * pitch;
        }
        if (at < end)
            causal_move(block, row,
                        causal_view(block, &call->x, run->batch, run->first + at - length),
                        end - at, true);
        causal_ring(block, causal_view(block, &call->final, run->slot, 0), rows,
                    ring ? run->position % length + (i + frames) % length : i, n, false);
    }
}

// How many of `frames` frames can be summed where they are in memory: all if channels are lanes,
// whole blocks of lanes if frames are.
static size_t direct_frames(const struct causal_block *block, size_t frames)
{
    const struct partita_causal *call = &block->causal->call;
    if (call->type == PARTITA_F16 || call->x.data == call->y.data) return 0;
    if (call->x.channel == 1 && call->y.channel == 1 && block->count == block->pitch) return frames;
    if (call->x.frame == 1 && call->y.frame == 1) return frames / CAUSAL_LANES * CAUSAL_LANES;
    return 0;
}

// Sums `frames` frames from frame `at` on, whose past is in x.
static void compute_direct(struct causal_block *block, size_t batch, size_t at, size_t frames)
{
    const struct partita_causal *call = &block->causal->call;
    const size_t past = call->taps - 1, size = partita_type_size(call->type);
    struct causal_view x = causal_view(block, &call->x, batch, at - past);
    struct causal_view y = causal_view(block, &call->y, batch, at);
    struct causal_sum sum = {.y = y.data, .x = x.data, .w = block->taps, .bias = block->bias};
    sum.taps = call->taps, sum.bf16 = call->type == PARTITA_BF16, sum.silu = call->silu;
    if (x.channel == 1 && y.channel == 1 && block->count == block->pitch) {
        sum.rows = frames, sum.lanes = sum.w_pitch = block->pitch, sum.ahead = true;
        sum.x_pitch = x.frame, sum.y_pitch = y.frame;
        block->causal->sums->sum(&sum);
        return;
    }
    float bias[CAUSAL_LANES], *w = block->staged; // of one channel, in all lanes
    sum.w = w, sum.bias = bias, sum.w_pitch = CAUSAL_LANES, sum.shared = true;
    sum.rows = sum.x_pitch = 1, sum.lanes = frames;
    for (size_t c = 0; c < block->count; c++) {
        for (size_t i = 0; i < call->taps * CAUSAL_LANES; i++)
            w[i] = block->taps[i / CAUSAL_LANES * block->pitch + c];
        for (size_t i = 0; i < CAUSAL_LANES; i++) bias[i] = block->bias[c];
        sum.x = x.data + c * x.channel * size, sum.y = y.data + c * y.channel * size;
        block->causal->sums->sum(&sum);
    }
}

static void compute_run(struct causal_block *block, const struct causal_run *run)
{
    const struct partita_causal *call = &block->causal->call;
    const size_t past = call->taps - 1, reals = past * block->pitch;
    bool loaded = true; // the past is in the tile
    causal_past(block, run, block->tile);
    if (call->final.data) keep_state(block, run);
    for (size_t f = 0, n; f < run->frames; f += n) {
        const size_t at = run->first + f, direct = direct_frames(block, run->frames - f);
        if (direct && f >= past) {
            compute_direct(block, run->batch, at, n = direct);
            loaded = false;
            continue;
        }
        n = size_min(block->rows, run->frames - f);
        if (direct) n = size_min(n, size_round_up(past - f, CAUSAL_LANES));
        if (!loaded)
            causal_move(block, block->tile, causal_view(block, &call->x, run->batch, at - past),
                        past, true);
        loaded = true;
        causal_move(block, block->tile + reals, causal_view(block, &call->x, run->batch, at), n,
                    true);
        causal_compute(block, block->tile, block->tile, n, call->silu);
        causal_move(block, block->tile, causal_view(block, &call->y, run->batch, at), n, false);
        memmove(block->tile, block->tile + n * block->pitch, reals * sizeof *block->tile);
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
