// SPDX-License-Identifier: MIT
// Samples of a block of channels into rows of f32, and back: rows of adjacent channels are
// converted, adjacent frames are converted and transposed, others are converted one by one.
#include <string.h>

#include "causal.h"

static enum half half_of(enum partita_type type)
{
    return type == PARTITA_F16 ? HALF_F16 : HALF_BF16;
}

static void samples_widen(const struct causal_block *block, float *to, const void *from, size_t n,
                          enum partita_type type)
{
    if (type == PARTITA_F32) memcpy(to, from, n * sizeof *to);
    else block->causal->kernels->widen[half_of(type)](to, from, n);
}

static void samples_narrow(const struct causal_block *block, void *to, const float *from, size_t n,
                           enum partita_type type)
{
    if (type == PARTITA_F32) memcpy(to, from, n * sizeof *from);
    else block->causal->kernels->narrow[half_of(type)](to, from, n);
}

struct causal_view causal_view(const struct causal_block *block,
                               const struct partita_causal_array *array, size_t index, size_t frame)
{
    const enum partita_type type = block->causal->call.type;
    const size_t at = index * array->batch + block->first * array->channel + frame * array->frame;
    return (struct causal_view){(char *)array->data + at * partita_type_size(type), array->channel,
                                array->frame, type};
}

// How many channels and frames of adjacent frames are moved at once.
struct square {
    size_t channels, frames;
};

static struct square square_of(const struct causal_block *block, size_t frames)
{
    const size_t n = size_max(1, size_min(frames, CAUSAL_STAGED / CAUSAL_LANES));
    const size_t fit = CAUSAL_STAGED / n / CAUSAL_LANES * CAUSAL_LANES;
    return (struct square){size_min(block->count, fit), n};
}

// The square's channels of n frames, one after the other.
static void load_square(struct causal_block *block, float *rows, struct causal_view from,
                        struct square square)
{
    const size_t size = partita_type_size(from.type), n = square.frames;
    if (from.channel == n)
        samples_widen(block, block->staged, from.data, square.channels * n, from.type);
    for (size_t c = 0; from.channel != n && c < square.channels; c++)
        samples_widen(block, block->staged + c * n, from.data + c * from.channel * size, n,
                      from.type);
    block->causal->kernels->transpose(rows, block->pitch, block->staged, n, square.channels, n);
}

static void store_square(struct causal_block *block, struct causal_view to, const float *rows,
                         struct square square)
{
    const size_t size = partita_type_size(to.type), n = square.frames;
    block->causal->kernels->transpose(block->staged, n, rows, block->pitch, n, square.channels);
    if (to.channel == n)
        samples_narrow(block, to.data, block->staged, square.channels * n, to.type);
    for (size_t c = 0; to.channel != n && c < square.channels; c++)
        samples_narrow(block, to.data + c * to.channel * size, block->staged + c * n, n, to.type);
}

// Calls `move` for the squares of adjacent frames.
#define EACH_SQUARE(move)                                                                          \
    const struct square all = square_of(block, frames);                                            \
    for (size_t f = 0; f < frames; f += all.frames)                                                \
        for (size_t c = 0; c < block->count; c += all.channels) {                                  \
            const struct square square = {size_min(all.channels, block->count - c),                \
                                          size_min(all.frames, frames - f)};                       \
            struct causal_view part = view;                                                        \
            part.data += (c * view.channel + f) * partita_type_size(view.type);                    \
            move;                                                                                  \
        }

void causal_load(struct causal_block *block, float *rows, struct causal_view view, size_t frames)
{
    const size_t size = partita_type_size(view.type), n = block->count;
    if (view.channel != 1 && view.frame == 1) {
        EACH_SQUARE(load_square(block, rows + f * block->pitch + c, part, square))
        return;
    }
    for (size_t f = 0; f < frames; f++, rows += block->pitch, view.data += view.frame * size)
        if (view.channel == 1) samples_widen(block, rows, view.data, n, view.type);
        else
            for (size_t c = 0; c < n; c++)
                samples_widen(block, rows + c, view.data + c * view.channel * size, 1, view.type);
}

void causal_store(struct causal_block *block, struct causal_view view, const float *rows,
                  size_t frames)
{
    const size_t size = partita_type_size(view.type), n = block->count;
    if (view.channel != 1 && view.frame == 1) {
        EACH_SQUARE(store_square(block, part, rows + f * block->pitch + c, square))
        return;
    }
    for (size_t f = 0; f < frames; f++, rows += block->pitch, view.data += view.frame * size)
        if (view.channel == 1) samples_narrow(block, view.data, rows, n, view.type);
        else
            for (size_t c = 0; c < n; c++)
                samples_narrow(block, view.data + c * view.channel * size, rows + c, 1, view.type);
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
    causal_load(block, block->taps, taps, call->taps);
    if (call->bias)
        samples_widen(block, block->bias, (const char *)call->bias + first * bytes, block->count,
                      call->taps_type);
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
        if (load) causal_load(block, rows + f * block->pitch, part, n);
        else causal_store(block, part, rows + f * block->pitch, n);
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
