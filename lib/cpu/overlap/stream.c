// SPDX-License-Identifier: MIT
// The stream of the block engines: collects a block of input of every channel, has it run, pays the
// outputs out one for one with the inputs of the next block. Blocks lie at fixed positions, so
// cutting calls differently changes nothing.
#include <string.h>

#include "geometry/samples.h"
#include "spectral.h"
#include "stream/stream.h"

static struct block_stream *cut(const struct partita_plan *plan, size_t history, bool overlap,
                                struct arena *arena)
{
    const struct shape *shape = &plan->shape;
    const struct spectral *spectral = plan->state;
    const size_t bytes = shape->sample_bytes;
    struct block_stream *state = arena_take(arena, sizeof *state);
    struct block_stream fresh = {.history = history};
    fresh.fill = arena_take(arena, sizeof *fresh.fill);
    fresh.set = arena_take(arena, sizeof *fresh.set);
    fresh.window = arena_take(arena, size_mul(shape->in_channels, spectral->n * bytes));
    fresh.ready = arena_take(arena, size_mul(2 * shape->out_channels, spectral->hop * bytes));
    if (overlap)
        fresh.overlap =
            arena_take(arena, size_mul(shape->out_channels, (shape->axis[0].span - 1) * bytes));
    fresh.faded = arena_take(arena, spectral->hop * bytes);
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

// From the fill to the overlap, where there is one.
struct region block_stream_region(struct partita_stream *stream)
{
    const struct block_stream *state = stream->state;
    return (struct region){state->fill, (size_t)(state->faded - (char *)state->fill)};
}

void block_stream_reset(struct partita_stream *stream)
{
    const struct region region = block_stream_region(stream);
    memset(region.data, 0, region.bytes);
}

char *block_stream_ready(const struct partita_stream *stream, size_t set, size_t channel)
{
    const struct block_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    const struct spectral *spectral = stream->plan->state;
    return state->ready +
           (set * shape->out_channels + channel) * spectral->hop * shape->sample_bytes;
}

// The first output of the next block falls due with the last input of the current one.
size_t block_stream_swap_begin(struct partita_stream *stream)
{
    const struct block_stream *state = stream->state;
    const struct spectral *spectral = stream->plan->state;
    return spectral->hop - *state->fill - 1;
}

size_t block_stream_swap_end(struct partita_stream *stream)
{
    const struct block_stream *state = stream->state;
    *state->set = 1 - *state->set;
    return 0;
}

// The call that completes a block does all of its work.
void block_stream_load(const struct partita_plan *plan, struct partita_load *ret)
{
    const struct spectral *spectral = plan->state;
    const size_t block = plan->shape.block, blocks = (block + spectral->hop - 1) / spectral->hop;
    const double frame = plan->choice.seconds;
    *ret = (struct partita_load){.frames = block,
                                 .mean = frame * (double)block,
                                 .worst = frame * (double)(blocks * spectral->hop),
                                 .swap_delay = spectral->hop};
}

static void collect(struct partita_stream *stream, const struct frames *frames, size_t n)
{
    const struct block_stream *state = stream->state;
    const struct spectral *spectral = stream->plan->state;
    const size_t bytes = stream->plan->shape.sample_bytes;
    for (size_t c = 0; c < stream->plan->shape.in_channels; c++) {
        char *end = state->window + (c * spectral->n + state->history + *state->fill) * bytes;
        if (frames->x)
            samples_copy(end, 1, frames_x(frames, c, 0, bytes), frames->x_stride, n, bytes);
        else memset(end, 0, n * bytes);
    }
}

// Writes the outputs that fall due with the block's inputs [fill, fill+n), frames `frame` .. of the
// step: the stream is at `phase` then, output frame `written` of the step comes next. Returns how
// many there were.
static size_t pay_out(struct partita_stream *stream, const struct frames *frames, size_t n,
                      size_t frame, size_t phase, size_t written)
{
    const struct block_stream *state = stream->state;
    const struct spectral *spectral = stream->plan->state;
    const size_t stride = stream->plan->shape.axis[0].stride,
                 bytes = stream->plan->shape.sample_bytes;
    const size_t wait = (stride - phase) % stride,
                 first = (*state->fill + wait + 1) % spectral->hop;
    if (wait >= n) return 0;
    const size_t due = (n - wait - 1) / stride + 1;
    for (size_t k = 0; k < stream->plan->shape.out_channels; k++) {
        const char *y = block_stream_ready(stream, *state->set, k) + first * bytes;
        size_t step = stride;
        if (stream->swap.state == SWAP_FADING) {
            samples_copy(state->faded, 1, y, stride, due, bytes);
            samples_copy(state->work.samples, 1,
                         block_stream_ready(stream, 1 - *state->set, k) + first * bytes, stride,
                         due, bytes);
            swap_fade(stream, state->faded, state->work.samples, due, frame + wait, stride);
            y = state->faded;
            step = 1;
        }
        samples_copy(frames_y(frames, k, written, bytes), frames->y_stride, y, step, due, bytes);
    }
    return due;
}

struct step block_stream_step(struct partita_stream *stream, const struct frames *frames,
                              void (*run_block)(struct partita_stream *stream))
{
    const struct block_stream *state = stream->state;
    const struct spectral *spectral = stream->plan->state;
    const size_t room = spectral->hop - *state->fill, n = frames->n < room ? frames->n : room;
    const size_t stride = stream->plan->shape.axis[0].stride, old = n < room ? n : n - 1;
    collect(stream, frames, n);
    // All but a block's last input meet outputs of the block before.
    size_t written = pay_out(stream, frames, old, 0, stream->phase, 0);
    *state->fill += old;
    if (n == room) {
        run_block(stream);
        written += pay_out(stream, frames, 1, old, (stream->phase + old) % stride, written);
        *state->fill = 0;
    }
    return (struct step){n, written};
}
