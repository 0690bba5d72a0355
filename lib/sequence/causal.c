// SPDX-License-Identifier: MIT
// Short causal convolution of a call that has been checked: outputs, final states and gradients.
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "causal.h"
#include "geometry/samples.h"

// Channels first .. first+count-1 of a call, and the memory of the thread that computes them.
struct block {
    const struct causal *causal;
    size_t first, count, pitch; // pitch: lanes of a row
    size_t rows;                // frames of a tile without its past
    float tile[CAUSAL_TILE] __attribute__((aligned(64)));
    float taps[CAUSAL_TILE / 2 + CAUSAL_MAX_BLOCK] __attribute__((aligned(64))); // [taps][pitch]
    float bias[CAUSAL_MAX_BLOCK] __attribute__((aligned(64)));
};

// Frames first .. first+frames-1 of one batch of x and y.
struct run {
    size_t batch, first, frames;
    size_t slot;     // of its state
    size_t position; // frames that a circular state has seen
    bool initial;    // its state precedes it
    bool absent;     // its results are zeros
};

// The next run of a sequence; *at is the frame where the last one ended, 0 at first.
static bool next_run(const struct partita_causal *call, size_t sequence, size_t *at,
                     struct run *run)
{
    const int32_t *starts = call->query_start_loc;
    const size_t frames = call->frames;
    const int32_t slot = call->cache_indices ? call->cache_indices[sequence] : 0;
    *run = (struct run){.batch = starts ? 0 : sequence, .frames = frames};
    if (*at >= frames || (starts && *at)) return false;
    run->absent = slot < 0;
    run->slot = call->cache_indices ? (size_t)slot : sequence;
    run->initial =
        call->initial.data && (!call->has_initial_state || call->has_initial_state[sequence]);
    if (call->cache_seqlens) run->position = (size_t)call->cache_seqlens[sequence];
    if (starts) {
        run->first = (size_t)starts[sequence];
        run->frames = (size_t)(starts[sequence + 1] - starts[sequence]);
    }
    if (call->seq_idx) {
        const int32_t *number = call->seq_idx + sequence * frames;
        run->first = *at;
        run->absent = number[*at] < 0;
        for (run->frames = 1; run->first + run->frames < frames; run->frames++)
            if (number[run->first + run->frames] != number[run->first]) break;
    }
    *at = starts ? frames : run->first + run->frames;
    return true;
}

// Moves frames of the block's channels to rows of f32 (load), or back; array->data is the first
// sample.
static void move_rows(const struct block *block, float *rows,
                      const struct partita_causal_array *array, enum partita_type type,
                      size_t frames, bool load)
{
    const bool lines = array->channel != 1 && array->frame == 1; // all frames of a channel at once
    struct sample_rows part = {(char *)rows, lines ? frames : 1, block->pitch, array->channel,
                               block->count};
    const size_t calls = lines ? 1 : frames, step = array->frame * partita_type_size(type);
    for (size_t f = 0; f < calls; f++, part.rows += block->pitch * sizeof *rows)
        samples_convert(block->causal->kernels, type, &part, (char *)array->data + f * step, !load);
}

// The block's taps, or with taps = 1 its bias.
static void move_taps(const struct block *block, float *rows, const void *data, size_t taps,
                      bool load)
{
    const enum partita_type type = block->causal->call.taps_type;
    char *first = (char *)data + block->first * taps * partita_type_size(type);
    const struct partita_causal_array array = {first, 0, taps, 1};
    move_rows(block, rows, &array, type, taps, load);
}

static char *sample_at(const struct block *block, const struct partita_causal_array *array,
                       size_t index, size_t frame)
{
    const size_t at = index * array->batch + block->first * array->channel + frame * array->frame;
    return (char *)array->data + at * partita_type_size(block->causal->call.type);
}

// Frames of one sequence of an array; of a state, which is a ring, from any frame on.
struct part {
    size_t index, frame, frames;
};

static void move_samples(const struct block *block, float *rows,
                         const struct partita_causal_array *array, struct part part, bool load)
{
    struct partita_causal_array from = *array;
    from.data = sample_at(block, array, part.index, part.frame);
    move_rows(block, rows, &from, block->causal->call.type, part.frames, load);
}

static void move_ring(const struct block *block, float *rows,
                      const struct partita_causal_array *array, struct part part, bool load)
{
    const size_t length = block->causal->call.state_len;
    assert(part.frames <= length);
    for (size_t f = 0, n; f < part.frames; f += n) {
        const size_t at = (part.frame + f) % length;
        n = size_min(part.frames - f, length - at);
        move_samples(block, rows + f * block->pitch, array, (struct part){part.index, at, n}, load);
    }
}

// Begins a block: its taps and bias.
static void begin_block(struct block *block, const struct causal *causal, size_t first)
{
    const struct partita_causal *call = &causal->call;
    block->causal = causal;
    block->first = first;
    block->count = size_min(causal->block, call->channels - first);
    block->pitch = size_round_up(block->count, CAUSAL_LANES);
    block->rows = CAUSAL_TILE / block->pitch - (call->taps - 1);
    assert(block->rows >= call->taps - 1 && call->taps * block->pitch * 4 <= sizeof block->taps);
    if (block->count != block->pitch) {
        memset(block->tile, 0, sizeof block->tile);
        memset(block->taps, 0, sizeof block->taps);
    }
    memset(block->bias, 0, sizeof block->bias);
    move_taps(block, block->taps, call->w, call->taps, true);
    if (call->bias) move_taps(block, block->bias, call->bias, 1, true);
}

// The sums of so many rows of f32, of which the taps - 1 before them are the first. `reversed`: in
// the reverse order of the taps, without the bias.
static void sum_rows(const struct block *block, float *y, const float *x, size_t rows, bool silu,
                     bool reversed)
{
    static const float zeros[CAUSAL_MAX_BLOCK] __attribute__((aligned(64)));
    const size_t taps = block->causal->call.taps, pitch = block->pitch;
    struct causal_sum sum = {.y = y, .x = x, .taps = taps, .rows = rows, .silu = silu};
    sum.w = block->taps + (reversed ? (taps - 1) * pitch : 0);
    sum.w_pitch = reversed ? -(ptrdiff_t)pitch : (ptrdiff_t)pitch;
    sum.bias = reversed ? zeros : block->bias;
    sum.lanes = sum.x_pitch = sum.y_pitch = pitch;
    block->causal->sums->sum(&sum);
}

// The taps - 1 rows before a run.
static void load_past(struct block *block, const struct run *run)
{
    const struct partita_causal *call = &block->causal->call;
    const size_t past = call->taps - 1, length = call->state_len;
    const size_t at = run->initial ? run->position % length + length - past : 0;
    if (run->initial)
        move_ring(block, block->tile, &call->initial, (struct part){run->slot, at, past}, true);
    else memset(block->tile, 0, past * block->pitch * sizeof *block->tile);
}

// Writes the state after a run, before y is written, which may be x. The tile begins with its past,
// which is the end of the old state, and is free behind it.
static void keep_state(struct block *block, const struct run *run)
{
    const struct partita_causal *call = &block->causal->call;
    const size_t length = call->state_len, frames = run->frames, pitch = block->pitch;
    const size_t past = call->taps - 1;
    const bool ring = call->cache_seqlens;
    assert(!ring || call->initial.data == call->final.data);
    for (size_t i = ring && frames < length ? length - frames : 0, n; i < length; i += n) {
        const size_t at = i + frames; // in the old state and the run behind it
        n = size_min(block->rows, length - i);
        const size_t old = at < length ? size_min(n, length - at) : 0;
        const struct part state = {run->slot, at, old},
                          x = {run->batch, run->first + at + old - length, n - old};
        const bool loaded = old <= past && at + old >= length;
        float *const rows = block->tile + (loaded ? past - old : past) * pitch;
        if (!loaded && run->initial) move_samples(block, rows, &call->initial, state, true);
        else if (!loaded) memset(rows, 0, old * pitch * sizeof *rows);
        if (old < n) move_samples(block, rows + old * pitch, &call->x, x, true);
        const size_t to = ring ? run->position % length + at % length : i;
        move_ring(block, rows, &call->final, (struct part){run->slot, to, n}, false);
    }
}

// Whether channels are lanes in memory as they are in rows.
static bool has_rows(const struct block *block)
{
    const struct partita_causal *call = &block->causal->call;
    return call->x.channel == 1 && call->y.channel == 1 && block->count == block->pitch;
}

// The frame of a run from which on its frames are summed where they are in memory, if channels are
// lanes, or frames are and fill them; run->frames: none.
static size_t first_direct(const struct block *block, const struct run *run)
{
    const struct partita_causal *call = &block->causal->call;
    const size_t first = size_round_up(call->taps - 1, CAUSAL_LANES), frames = run->frames;
    if (run->absent || call->type == PARTITA_F16 || call->x.data == call->y.data) return frames;
    if (has_rows(block)) return size_min(first, frames);
    const bool adjacent = call->x.frame == 1 && call->y.frame == 1;
    return adjacent && first + CAUSAL_LANES <= frames ? first : frames;
}

// Sums the frames of a run from `first` on, whose past is in x.
static void compute_direct(struct block *block, const struct run *run, size_t first)
{
    const struct partita_causal *call = &block->causal->call;
    const size_t frames = run->frames - first, size = partita_type_size(call->type);
    const size_t at = run->first + first, whole = frames / CAUSAL_LANES * CAUSAL_LANES;
    const char *x = sample_at(block, &call->x, run->batch, at - (call->taps - 1));
    char *y = sample_at(block, &call->y, run->batch, at);
    struct causal_sum sum = {.y = y, .x = x, .w = block->taps, .bias = block->bias};
    sum.taps = call->taps, sum.bf16 = call->type == PARTITA_BF16, sum.silu = call->silu;
    sum.rows = frames, sum.lanes = block->pitch, sum.w_pitch = (ptrdiff_t)block->pitch;
    sum.x_pitch = call->x.frame, sum.y_pitch = call->y.frame;
    sum.ahead = has_rows(block), sum.shared = !sum.ahead;
    if (!sum.shared) block->causal->sums->sum(&sum);
    for (size_t c = 0; sum.shared && c < block->count; c++, sum.w++, sum.bias++)
        for (size_t i = 0; i < frames; i += whole) { // the last lanes may be summed twice
            const size_t f = i ? frames - CAUSAL_LANES : 0;
            sum.rows = 1, sum.lanes = i ? CAUSAL_LANES : whole;
            sum.x = x + (c * call->x.channel + f) * size;
            sum.y = y + (c * call->y.channel + f) * size;
            block->causal->sums->sum(&sum);
        }
}

static void compute_run(struct block *block, const struct run *run)
{
    const struct partita_causal *call = &block->causal->call;
    const size_t reals = (call->taps - 1) * block->pitch, direct = first_direct(block, run);
    if (run->absent) memset(block->tile, 0, sizeof block->tile); // is y
    else load_past(block, run);
    if (call->final.data && !run->absent) keep_state(block, run);
    for (size_t f = 0, n = 0; f < direct; f += n) {
        if (f) memmove(block->tile, block->tile + n * block->pitch, reals * sizeof *block->tile);
        n = size_min(block->rows, direct - f);
        const struct part part = {run->batch, run->first + f, n};
        if (!run->absent) {
            move_samples(block, block->tile + reals, &call->x, part, true);
            sum_rows(block, block->tile, block->tile, n, call->silu, false);
        }
        move_samples(block, block->tile, &call->y, part, false);
    }
    if (direct < run->frames) compute_direct(block, run, direct);
}

// Gradients. g is gy, with silu times silu's slope at the sums, which are computed again. gw sums
// g * x, and gx is the sum of g at a sample and after it with the taps in reverse order: that of
// frame i - (taps - 1) needs g up to frame i, so it follows taps - 1 frames behind, begins with the
// initial states, and ends with frames whose g is 0.
struct gradient {
    float g[CAUSAL_TILE] __attribute__((aligned(64)));   // its past first, as the tile of x
    float sum[CAUSAL_TILE] __attribute__((aligned(64))); // of the tile
    float gw[CAUSAL_TILE / 2 + CAUSAL_MAX_BLOCK] __attribute__((aligned(64)));
    float gbias[CAUSAL_MAX_BLOCK] __attribute__((aligned(64)));
};

// g of some frames, and their share of gw and gbias.
static void load_g(struct gradient *gradient, struct block *block, struct part part)
{
    const struct causal *causal = block->causal;
    const struct partita_causal *call = &causal->call;
    const size_t past = (call->taps - 1) * block->pitch;
    float *g = gradient->g + past;
    move_samples(block, block->tile + past, &call->x, part, true);
    move_samples(block, g, &call->gy, part, true);
    if (call->silu) {
        sum_rows(block, gradient->sum, block->tile, part.frames, false, false);
        causal->sums->slope(g, gradient->sum, part.frames * block->pitch);
    }
    if (call->gw || call->gbias)
        causal->sums->weight(gradient->gw, gradient->gbias, g, block->tile,
                             (struct causal_size){part.frames, call->taps, block->pitch});
}

// The gradients of the taps - 1 samples before a run (f < taps - 1) and of the run, from f on.
static void store_gx(struct gradient *gradient, const struct block *block, const struct run *run,
                     size_t f, size_t frames)
{
    const struct partita_causal *call = &block->causal->call;
    const size_t past = call->taps - 1, before = f < past ? size_min(past - f, frames) : 0;
    if (!call->gx.data && !call->ginitial.data) return;
    sum_rows(block, gradient->sum, gradient->g, frames, false, true);
    for (size_t i = size_max(f, run->frames); call->gfinal.data && i < f + frames; i++) {
        const struct part part = {run->slot, i - run->frames, 1};
        float final[CAUSAL_MAX_BLOCK] __attribute__((aligned(64))) = {0};
        move_samples(block, final, &call->gfinal, part, true);
        block->causal->kernels->add(gradient->sum + (i - f) * block->pitch, final, block->pitch);
    }
    if (call->ginitial.data)
        move_samples(block, gradient->sum, &call->ginitial, (struct part){run->slot, f, before},
                     false);
    if (call->gx.data)
        move_samples(block, gradient->sum + before * block->pitch, &call->gx,
                     (struct part){run->batch, run->first + f + before - past, frames - before},
                     false);
}

static void compute_gradient(struct gradient *gradient, struct block *block, const struct run *run)
{
    const struct partita_causal *call = &block->causal->call;
    const size_t past = call->taps - 1, all = run->frames + past, pitch = block->pitch;
    const size_t bytes = past * pitch * sizeof(float);
    assert(call->state_len == past && !call->cache_indices);
    load_past(block, run);
    memset(gradient->g, 0, sizeof gradient->g);
    for (size_t f = 0, n; f < all; f += n) {
        n = size_min(block->rows, all - f);
        const size_t present = f < run->frames && !run->absent ? size_min(n, run->frames - f) : 0;
        if (present) load_g(gradient, block, (struct part){run->batch, run->first + f, present});
        memset(gradient->g + (past + present) * pitch, 0, (n - present) * pitch * sizeof(float));
        store_gx(gradient, block, run, f, n);
        memmove(block->tile, block->tile + n * pitch, bytes);
        memmove(gradient->g, gradient->g + n * pitch, bytes);
    }
}

// Tasks are blocks of channels of groups of sequences, which are all sequences for gradients.
struct causal_tasks {
    const struct causal *causal;
    size_t blocks, group;
    struct gradient *workers; // NULL: outputs
};

static void run_task(void *context, size_t task, int worker)
{
    const struct causal_tasks *tasks = context;
    const struct partita_causal *call = &tasks->causal->call;
    const size_t first = task / tasks->blocks * tasks->group;
    const size_t end = size_min(first + tasks->group, call->batch);
    struct gradient *gradient = tasks->workers ? tasks->workers + worker : NULL;
    struct block block;
    struct run run;
    begin_block(&block, tasks->causal, task % tasks->blocks * tasks->causal->block);
    if (gradient) {
        memset(gradient->gw, 0, sizeof gradient->gw);
        memset(gradient->gbias, 0, sizeof gradient->gbias);
    }
    for (size_t sequence = first; sequence < end; sequence++)
        for (size_t at = 0; next_run(call, sequence, &at, &run);) {
            if (gradient) compute_gradient(gradient, &block, &run);
            else compute_run(&block, &run);
        }
    if (gradient && call->gw) move_taps(&block, gradient->gw, call->gw, call->taps, false);
    if (gradient && call->gbias) move_taps(&block, gradient->gbias, call->gbias, 1, false);
}

static enum partita_status compute(const struct partita_causal *call, size_t bytes, bool backward)
{
    enum { TASKS = 4 }; // for each thread
    const struct partita_allocator allocator = {0};
    struct causal causal;
    const enum partita_status status = causal_resolve(&causal, call, bytes, backward);
    if (status) return status;
    const size_t batch = causal.call.batch, threads = (size_t)causal.threads;
    struct causal_tasks tasks = {&causal, ceil_div(causal.call.channels, causal.block), batch,
                                 NULL};
    if (backward) tasks.workers = mem_reserve(&allocator, threads * sizeof *tasks.workers);
    else tasks.group = ceil_div(batch, ceil_div(TASKS * threads, tasks.blocks));
    if (backward && !tasks.workers) return PARTITA_ERR_NOMEM;
    thread_loop(causal.threads, tasks.blocks * ceil_div(batch, tasks.group), run_task, &tasks);
    mem_release(&allocator, tasks.workers);
    return PARTITA_OK;
}

enum partita_status partita_causal_forward_sized(const struct partita_causal *call,
                                                 size_t call_bytes)
{
    return compute(call, call_bytes, false);
}

enum partita_status partita_causal_backward_sized(const struct partita_causal *call,
                                                  size_t call_bytes)
{
    return compute(call, call_bytes, true);
}
