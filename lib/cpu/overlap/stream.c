// SPDX-License-Identifier: MIT
// The stream of overlap-save: collects a block of input of every channel, filters it, and outputs
// one frame for each frame of the next block. Blocks lie at fixed positions, so the split into
// calls changes nothing.
#include <assert.h>
#include <string.h>

#include "overlap.h"
#include "stream/outputs.h"

// Latency hop - 1: the first output of a block leaves with its last input.
struct overlap_stream {
    struct position *position; // a quantum is a block
    struct history history;
    char *ready;      // [2 sets][out_channels][hop]: outputs of the last complete block
    char *samples[2]; // [hop] outputs of one channel by either filter
    struct overlap_buffers buffers;
};

void *overlap_stream_layout(const struct partita_stream *stream, struct arena *arena)
{
    const struct partita_plan *plan = stream->plan;
    const struct shape *shape = &plan->shape;
    const struct overlap *overlap = overlap_of(plan);
    const size_t bytes = shape->sample_bytes;
    struct overlap_stream *state = arena_take(arena, sizeof *state);
    struct overlap_stream made = {
        .history = {.frames = overlap_history_frames(overlap->n, overlap->hop),
                    .delay = overlap->hop - 1}};
    made.position = arena_take(arena, sizeof *made.position);
    history_layout(&made.history, shape, arena);
    made.ready = arena_take(arena, size_mul(2 * shape->out_channels, overlap->hop * bytes));
    made.samples[0] = arena_take(arena, overlap->hop * bytes);
    made.buffers = overlap_buffers_layout(plan, arena);
    made.samples[1] = made.buffers.samples;
    if (state) *state = made;
    return state;
}

// From the position to the outputs that are ready.
struct region overlap_stream_region(struct partita_stream *stream)
{
    const struct overlap_stream *state = stream->state;
    char *begin = (char *)state->position;
    return (struct region){begin, (size_t)(state->samples[0] - begin)};
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
    return overlap_of(stream->plan)->hop - state->position->fill - 1;
}

size_t overlap_swap_end(struct partita_stream *stream)
{
    const struct overlap_stream *state = stream->state;
    state->position->set = 1 - state->position->set;
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

// The samples of a transform, also those before the block that no tap meets: zeros would have to be
// copied there.
static const char *block_window(const struct partita_stream *stream, size_t channel)
{
    const struct overlap_stream *state = stream->state;
    const struct overlap *overlap = overlap_of(stream->plan);
    const size_t frames = state->history.frames;
    const uint64_t end = (state->position->quantum + 1) * overlap->hop;
    return history_at(&state->history, &overlap->shape, channel,
                      (size_t)((end + frames - overlap->n) % frames));
}

static void filter_channel(struct partita_stream *stream, const struct partita_filter *filter,
                           size_t set, size_t channel)
{
    struct overlap_stream *state = stream->state;
    const struct overlap *overlap = overlap_of(stream->plan);
    const size_t bytes = overlap->shape.sample_bytes, hop = overlap->hop;
    overlap_output(filter, channel, &state->buffers);
    memcpy(ready_at(stream, set, channel), state->buffers.samples + (overlap->n - hop) * bytes,
           hop * bytes);
}

static void overlap_stream_filter(struct partita_stream *stream)
{
    struct overlap_stream *state = stream->state;
    const struct shape *shape = &overlap_of(stream->plan)->shape;
    const size_t set = state->position->set;
    for (size_t group = 0; group < shape->groups; group++) {
        for (size_t c = 0; c < shape->group_in; c++)
            overlap_transform(overlap_of(stream->plan), c,
                              block_window(stream, group * shape->group_in + c), &state->buffers);
        for (size_t k = group * shape->group_out; k < (group + 1) * shape->group_out; k++) {
            filter_channel(stream, stream->filter, set, k);
            if (stream->swap.incoming) filter_channel(stream, stream->swap.incoming, 1 - set, k);
        }
    }
}

static void copy_ready(const struct partita_stream *stream, size_t set, size_t channel, char *y,
                       size_t n)
{
    const struct overlap_stream *state = stream->state;
    const size_t hop = overlap_of(stream->plan)->hop, bytes = stream->plan->shape.sample_bytes;
    const size_t first = (state->position->fill + 1) % hop;
    assert(first + n <= hop);
    memcpy(y, ready_at(stream, set, channel) + first * bytes, n * bytes);
}

// All but a block's last input meet outputs of the block before: a step ends before it, where the
// history wraps, and before it would replace frames whose outputs are still to be written.
struct step overlap_stream_step(struct partita_stream *stream, const struct frames *frames)
{
    struct overlap_stream *state = stream->state;
    struct position *position = state->position;
    const size_t hop = overlap_of(stream->plan)->hop, kept = state->history.frames;
    const uint64_t now = position_frame(position, hop);
    const bool last = position->fill == hop - 1;
    const size_t adjacent = size_min(kept - now % kept, kept - hop + 1);
    const size_t n = last ? 1 : size_min(size_min(frames->n, adjacent), hop - 1 - position->fill);
    const struct outputs outputs = {.history = &state->history,
                                    .now = now,
                                    .set = position->set,
                                    .samples = state->samples,
                                    .begin = copy_ready};
    history_take(&state->history, stream->plan, now, frames, n);
    if (last) overlap_stream_filter(stream);
    const size_t written = outputs_emit(stream, &outputs, frames, n);
    position->fill = last ? 0 : position->fill + n;
    position->quantum += last;
    return (struct step){n, written};
}
