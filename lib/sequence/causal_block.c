// SPDX-License-Identifier: MIT
// Samples of a block of channels into rows of f32, and back: rows of adjacent channels are
// converted, adjacent frames are converted and transposed, others are converted one by one.
#include <string.h>

#include "causal.h"

// Converts n adjacent samples to f32 (load), or back.
static void convert(const struct causal_block *block, float *wide, void *stored, size_t n,
                    enum partita_type type, bool load)
{
    const struct kernels *kernels = block->causal->kernels;
    const enum half half = type == PARTITA_F16 ? HALF_F16 : HALF_BF16;
    if (type == PARTITA_F32)
        memcpy(load ? (void *)wide : stored, load ? stored : wide, n * sizeof *wide);
    else if (load) kernels->widen[half](wide, stored, n);
    else kernels->narrow[half](stored, wide, n);
}

struct causal_view causal_view(const struct causal_block *block,
                               const struct partita_causal_array *array, size_t index, size_t frame)
{
    const enum partita_type type = block->causal->call.type;
    const size_t at = index * array->batch + block->first * array->channel + frame * array->frame;
    return (struct causal_view){(char *)array->data + at * partita_type_size(type), array->channel,
                                array->frame, type};
}

// Moves `channels` channels of n adjacent frames, staged one channel after the other.
static void move_square(struct causal_block *block, float *rows, struct causal_view view,
                        size_t channels, size_t n, bool load)
{
    const struct kernels *kernels = block->causal->kernels;
    const size_t size = partita_type_size(view.type);
    const bool whole = view.channel == n; // all channels are adjacent
    if (!load) kernels->transpose(block->staged, n, rows, block->pitch, n, channels);
    for (size_t c = 0; c < (whole ? 1 : channels); c++)
        convert(block, block->staged + c * n, view.data + c * view.channel * size,
                whole ? channels * n : n, view.type, load);
    if (load) kernels->transpose(rows, block->pitch, block->staged, n, channels, n);
}

void causal_move(struct causal_block *block, float *rows, struct causal_view view, size_t frames,
                 bool load)
{
    const size_t size = partita_type_size(view.type), pitch = block->pitch;
    const bool squares = view.channel != 1 && view.frame == 1, lines = view.channel == 1;
    // Frames and channels that are moved at once.
    const size_t n = squares ? size_min(frames, CAUSAL_STAGED / CAUSAL_LANES) : 1;
    const size_t fit = squares ? CAUSAL_STAGED / size_max(n, 1) / CAUSAL_LANES * CAUSAL_LANES : 1;
    const size_t channels = lines ? block->count : fit;
    for (size_t f = 0; f < frames; f += n)
        for (size_t c = 0; c < block->count; c += channels) {
            const size_t part = size_min(channels, block->count - c);
            struct causal_view at = view;
            at.data += (c * view.channel + f * view.frame) * size;
            float *to = rows + f * pitch + c;
            if (squares) move_square(block, to, at, part, size_min(n, frames - f), load);
            else convert(block, to, at.data, part, view.type, load);
        }
}

void causal_begin(struct causal_block *block, const struct causal *causal, size_t first)
{
    const struct partita_causal *call = &causal->call;
    const size_t bytes = partita_type_size(call->taps_type);
    block->causal = causal;
    block->first = first;
    block->count = size_min(causal->block, call->channels - first);
    block->pitch = size_round_up(block->count, CAUSAL_LANES);
    block->rows = CAUSAL_TILE / block->pitch - (call->taps - 1);
    assert(block->rows >= CAUSAL_LANES && call->taps * block->pitch * 4 <= sizeof block->taps);
    if (block->count != block->pitch) {
        memset(block->tile, 0, sizeof block->tile);
        memset(block->taps, 0, sizeof block->taps);
    }
    memset(block->bias, 0, sizeof block->bias);
    const struct causal_view taps = {(char *)call->w + first * call->taps * bytes, call->taps, 1,
                                     call->taps_type};
    causal_move(block, block->taps, taps, call->taps, true);
    if (call->bias)
        convert(block, block->bias, (char *)call->bias + first * bytes, block->count,
                call->taps_type, true);
}

void causal_compute(const struct causal_block *block, float *y, const float *x, size_t rows,
                    bool silu)
{
    const size_t pitch = block->pitch;
    const struct causal_sum sum = {.y = y,
                                   .x = x,
                                   .w = block->taps,
                                   .bias = block->bias,
                                   .taps = block->causal->call.taps,
                                   .rows = rows,
                                   .lanes = pitch,
                                   .x_pitch = pitch,
                                   .y_pitch = pitch,
                                   .w_pitch = pitch,
                                   .silu = silu};
    block->causal->sums->sum(&sum);
}

bool causal_next_run(const struct partita_causal *call, size_t sequence, size_t *at,
                     struct causal_run *run)
{
    const int32_t *starts = call->query_start_loc;
    const size_t frames = call->frames;
    const int32_t slot = call->cache_indices ? call->cache_indices[sequence] : 0;
    *run = (struct causal_run){.batch = starts ? 0 : sequence, .frames = frames};
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

void causal_ring(struct causal_block *block, struct causal_view view, float *rows, size_t at,
                 size_t frames, bool load)
{
    const size_t length = block->causal->call.state_len, size = partita_type_size(view.type);
    assert(frames <= length);
    for (size_t f = 0, n; f < frames; f += n) {
        const size_t begin = (at + f) % length;
        struct causal_view part = view;
        part.data += begin * view.frame * size;
        n = size_min(frames - f, length - begin);
        causal_move(block, rows + f * block->pitch, part, n, load);
    }
}

void causal_past(struct causal_block *block, const struct causal_run *run, float *rows)
{
    const struct partita_causal *call = &block->causal->call;
    const size_t past = call->taps - 1, length = call->state_len;
    if (!run->initial || !past) {
        memset(rows, 0, past * block->pitch * sizeof *rows);
        return;
    }
    const size_t at = call->cache_seqlens ? run->position % length + length : length;
    causal_ring(block, causal_view(block, &call->initial, run->slot, 0), rows, at - past, past,
                true);
}
