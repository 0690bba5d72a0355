// SPDX-License-Identifier: MIT
// The stream of overlap-save: collects a block of input of every channel, filters it, and outputs
// one frame for each frame of the next block. Blocks lie at fixed positions, so the split into
// calls changes nothing.
#include <assert.h>
#include <string.h>

#include "overlap.h"
#include "stream/stream.h"

// Latency hop - 1: the first output of a block leaves with its last input.
struct overlap_stream {
    size_t *fill; // input frames of the current block so far
    size_t *set;  // which set of outputs belongs to the stream's own filter
    char *window; // [in_channels][n]: span - 1 samples of history, then the block
    char *ready;  // [2 sets][out_channels][hop]: outputs of the last complete block
    char *faded;  // [hop] outputs of one channel while fading
    struct overlap_buffers buffers;
};

static struct overlap_stream *overlap_stream_layout(const struct partita_plan *plan,
                                                    struct arena *arena)
{
    const struct shape *shape = &plan->shape;
    const struct overlap *overlap = overlap_of(plan);
    const size_t bytes = shape->sample_bytes;
    struct overlap_stream *state = arena_take(arena, sizeof *state), fresh;
    fresh.fill = arena_take(arena, sizeof *fresh.fill);
    fresh.set = arena_take(arena, sizeof *fresh.set);
    fresh.window = arena_take(arena, size_mul(shape->in_channels, overlap->n * bytes));
    fresh.ready = arena_take(arena, size_mul(2 * shape->out_channels, overlap->hop * bytes));
    fresh.faded = arena_take(arena, overlap->hop * bytes);
    fresh.buffers = overlap_buffers_layout(plan, arena);
    if (state) *state = fresh;
    return state;
}

enum partita_status overlap_stream_open(struct partita_stream *stream)
{
    struct arena arena = {0};
    overlap_stream_layout(stream->plan, &arena);
    if (!arena_allocate(&arena, &stream->allocator)) return PARTITA_ERR_NOMEM;
    stream->state = overlap_stream_layout(stream->plan, &arena);
    assert(arena.used == arena.size);
    return PARTITA_OK;
}

// From the fill to the outputs that are ready.
struct region overlap_stream_region(struct partita_stream *stream)
{
    const struct overlap_stream *state = stream->state;
    return (struct region){state->fill, (size_t)(state->faded - (char *)state->fill)};
}

void overlap_stream_reset(struct partita_stream *stream)
{
    const struct region region = overlap_stream_region(stream);
    memset(region.data, 0, region.bytes);
}

// The block of an output channel in a set.
static char *ready_at(const struct partita_stream *stream, size_t set, size_t channel)
{
    const struct overlap_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    const size_t block = set * shape->out_channels + channel;
    return state->ready + block * overlap_of(stream->plan)->hop * shape->sample_bytes;
}

// The first output of the next block falls due with the last input of the current one; a block is
// filtered by both filters as soon as there are two.
size_t overlap_swap_begin(struct partita_stream *stream)
{
    const struct overlap_stream *state = stream->state;
    return overlap_of(stream->plan)->hop - *state->fill - 1;
}

size_t overlap_swap_end(struct partita_stream *stream)
{
    const struct overlap_stream *state = stream->state;
    *state->set = 1 - *state->set;
    return 0;
}

// The call that completes a block does all of its work.
void overlap_stream_load(const struct partita_plan *plan, struct partita_load *ret)
{
    const size_t block = plan->shape.block, hop = overlap_of(plan)->hop;
    const double frame = plan->choice.seconds;
    *ret = (struct partita_load){.frames = block,
                                 .mean = frame * (double)block,
                                 .worst = frame * (double)size_round_up(block, hop),
                                 .swap_delay = hop};
}

static void collect_inputs(const struct partita_stream *stream, const struct frames *frames,
                           size_t n)
{
    const struct overlap_stream *state = stream->state;
    const struct overlap *overlap = overlap_of(stream->plan);
    const size_t bytes = overlap->shape.sample_bytes;
    const size_t at = overlap->shape.axis[0].span - 1 + *state->fill;
    assert(at + n <= overlap->n);
    for (size_t c = 0; c < overlap->shape.in_channels; c++) {
        char *end = state->window + (c * overlap->n + at) * bytes;
        if (frames->x)
            samples_copy(end, 1, frames_x(frames, c, 0, bytes), frames->x_stride, n, bytes);
        else memset(end, 0, n * bytes);
    }
}

// Outputs that fall due with inputs of the current block.
struct due {
    size_t n;       // these inputs, from *fill on: frames
    size_t frame;   // of the step from this one on,
    size_t phase;   // where the stream is then;
    size_t written; // output frame of the step that comes next
};

// Returns how many outputs there were.
static size_t play_outputs(const struct partita_stream *stream, const struct frames *frames,
                           const struct due *due)
{
    const struct overlap_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    const size_t stride = shape->axis[0].stride, bytes = shape->sample_bytes;
    const size_t wait = (stride - due->phase) % stride;
    const size_t first = (*state->fill + wait + 1) % overlap_of(stream->plan)->hop * bytes;
    if (wait >= due->n) return 0;
    const size_t n = (due->n - wait - 1) / stride + 1;
    for (size_t k = 0; k < shape->out_channels; k++) {
        char *to = frames_y(frames, k, due->written, bytes);
        const char *y = ready_at(stream, *state->set, k) + first;
        if (stream->swap.state != SWAP_FADING) {
            samples_copy(to, frames->y_stride, y, stride, n, bytes);
            continue;
        }
        char *incoming = state->buffers.samples;
        samples_copy(state->faded, 1, y, stride, n, bytes);
        samples_copy(incoming, 1, ready_at(stream, 1 - *state->set, k) + first, stride, n, bytes);
        swap_fade(stream, state->faded, incoming, n, due->frame + wait, stride);
        samples_copy(to, frames->y_stride, state->faded, 1, n, bytes);
    }
    return n;
}

static void filter_channel(struct partita_stream *stream, const struct partita_filter *filter,
                           size_t set, size_t channel)
{
    struct overlap_stream *state = stream->state;
    const struct overlap *overlap = overlap_of(stream->plan);
    const size_t bytes = overlap->shape.sample_bytes, wrapped = overlap->shape.axis[0].span - 1;
    overlap_output(filter, channel, &state->buffers);
    memcpy(ready_at(stream, set, channel), state->buffers.samples + wrapped * bytes,
           overlap->hop * bytes);
}

static void overlap_stream_filter(struct partita_stream *stream)
{
    struct overlap_stream *state = stream->state;
    const struct overlap *overlap = overlap_of(stream->plan);
    const struct shape *shape = &overlap->shape;
    const size_t bytes = shape->sample_bytes, history = (shape->axis[0].span - 1) * bytes;
    for (size_t group = 0; group < shape->groups; group++) {
        for (size_t c = 0; c < shape->group_in; c++) {
            char *samples = state->window + (group * shape->group_in + c) * overlap->n * bytes;
            overlap_transform(overlap, c, samples, &state->buffers);
            memmove(samples, samples + overlap->hop * bytes, history);
        }
        for (size_t k = group * shape->group_out; k < (group + 1) * shape->group_out; k++) {
            filter_channel(stream, stream->filter, *state->set, k);
            if (stream->swap.incoming)
                filter_channel(stream, stream->swap.incoming, 1 - *state->set, k);
        }
    }
}

struct step overlap_stream_step(struct partita_stream *stream, const struct frames *frames)
{
    const struct overlap_stream *state = stream->state;
    const size_t capacity = overlap_of(stream->plan)->hop - *state->fill;
    const size_t n = size_min(frames->n, capacity), stride = stream->plan->shape.axis[0].stride;
    collect_inputs(stream, frames, n);
    // All but a block's last input meet outputs of the block before.
    const struct due old = {.n = n < capacity ? n : n - 1, .phase = stream->phase};
    size_t written = play_outputs(stream, frames, &old);
    *state->fill += old.n;
    if (n == capacity) {
        const size_t phase = (stream->phase + old.n) % stride;
        const struct due last = {.n = 1, .frame = old.n, .phase = phase, .written = written};
        overlap_stream_filter(stream);
        written += play_outputs(stream, frames, &last);
        *state->fill = 0;
    }
    return (struct step){n, written};
}
