// SPDX-License-Identifier: MIT
// The stream of the block engines: collects a block of input of every channel, has it run, pays the outputs out one for
// one with the inputs of the next block. Blocks lie at fixed positions, so cutting calls differently changes nothing.
#include <string.h>

#include "samples.h"
#include "spectral.h"

static struct block_stream *cut(const struct partita_plan *plan, size_t history, bool overlap, struct arena *arena)
{
    const struct shape *shape = &plan->shape;
    const struct spectral *spectral = plan->state;
    const size_t bytes = shape->sample_bytes;
    struct block_stream *state = arena_take(arena, sizeof *state);
    struct block_stream fresh = {.history = history};
    fresh.window = arena_take(arena, size_mul(shape->in_channels, spectral->n * bytes));
    fresh.ready = arena_take(arena, size_mul(shape->out_channels, spectral->hop * bytes));
    if (overlap) fresh.overlap = arena_take(arena, size_mul(shape->out_channels, (shape->axis[0].span - 1) * bytes));
    fresh.work = spectral_work_cut(shape, spectral->fft, arena);
    if (state) *state = fresh;
    return state;
}

enum partita_status block_stream_open(struct partita_stream *stream, size_t history, bool overlap)
{
    struct arena arena = {0};
    cut(stream->plan, history, overlap, &arena);
    arena.base = mem_allocate(&stream->plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    stream->state = cut(stream->plan, history, overlap, &arena);
    return PARTITA_OK;
}

void block_stream_reset(struct partita_stream *stream)
{
    struct block_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    const struct spectral *spectral = stream->plan->state;
    state->fill = 0;
    memset(state->window, 0, shape->in_channels * spectral->n * shape->sample_bytes);
    memset(state->ready, 0, shape->out_channels * spectral->hop * shape->sample_bytes);
    if (state->overlap)
        memset(state->overlap, 0, shape->out_channels * (shape->axis[0].span - 1) * shape->sample_bytes);
}

static void collect(struct partita_stream *stream, const struct frames *frames, size_t n)
{
    const struct block_stream *state = stream->state;
    const struct spectral *spectral = stream->plan->state;
    const size_t bytes = stream->plan->shape.sample_bytes;
    for (size_t c = 0; c < stream->plan->shape.in_channels; c++) {
        char *end = state->window + (c * spectral->n + state->history + state->fill) * bytes;
        if (frames->x) samples_copy(end, 1, frames_x(frames, c, 0, bytes), frames->x_stride, n, bytes);
        else memset(end, 0, n * bytes);
    }
}

// Writes the outputs that fall due with the block's inputs [fill, fill+n): the stream is at `phase`, output frame
// `written` of the step comes next. Returns how many there were.
static size_t pay_out(struct partita_stream *stream, const struct frames *frames, size_t n, size_t phase,
                      size_t written)
{
    const struct block_stream *state = stream->state;
    const struct spectral *spectral = stream->plan->state;
    const size_t stride = stream->plan->shape.axis[0].stride, bytes = stream->plan->shape.sample_bytes;
    const size_t wait = (stride - phase) % stride, first = (state->fill + wait + 1) % spectral->hop;
    if (wait >= n) return 0;
    const size_t due = (n - wait - 1) / stride + 1;
    for (size_t k = 0; k < stream->plan->shape.out_channels; k++)
        samples_copy(frames_y(frames, k, written, bytes), frames->y_stride,
                     state->ready + (k * spectral->hop + first) * bytes, stride, due, bytes);
    return due;
}

struct step block_stream_step(struct partita_stream *stream, const struct frames *frames,
                              void (*run_block)(struct partita_stream *stream))
{
    struct block_stream *state = stream->state;
    const struct spectral *spectral = stream->plan->state;
    const size_t room = spectral->hop - state->fill, n = frames->n < room ? frames->n : room;
    const size_t stride = stream->plan->shape.axis[0].stride, old = n < room ? n : n - 1;
    collect(stream, frames, n);
    // All but a block's last input meet outputs of the block before.
    size_t written = pay_out(stream, frames, old, stream->phase, 0);
    state->fill += old;
    if (n == room) {
        run_block(stream);
        written += pay_out(stream, frames, 1, (stream->phase + old) % stride, written);
        state->fill = 0;
    }
    return (struct step){n, written};
}
