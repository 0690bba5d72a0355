// SPDX-License-Identifier: MIT
// Streams of cpu/partitioned: input into the ring, outputs from the head and from finished
// segments, and a quantum of work whenever a quantum's frames are complete.
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "morph.h"

// A segment's small arrays of the region. They are packed: every step reads all of them, mostly
// from memory if there are many streams.
static void layout_progress(const struct partita_plan *plan, struct segment_state *state,
                            struct arena *arena)
{
    const size_t inputs = plan->shape.in_channels, outputs = plan->shape.out_channels;
    state->progress = arena_pack(arena, sizeof *state->progress);
    state->active_until = arena_pack(arena, inputs * sizeof *state->active_until);
    state->begun = arena_pack(arena, 2 * outputs * sizeof *state->begun);
    state->carried = arena_pack(arena, 2 * outputs * sizeof *state->carried);
}

// Its large ones.
static void layout_region(const struct partita_plan *plan, size_t i, struct segment_state *state,
                          struct arena *arena)
{
    const struct partition_segment *segment = &partitioned_of(plan)->layout.segment[i];
    const struct shape *shape = &plan->shape;
    const size_t inputs = shape->in_channels, outputs = shape->out_channels;
    const size_t spectrum = partitioned_of(plan)->work[i].pitch * SPECTRUM_LINE_BYTES;
    state->slots = arena_take(arena, size_mul(inputs, size_mul(spectrum, slot_pitch(segment))));
    if (segment->window > 1) state->spectrum = arena_take(arena, size_mul(inputs, spectrum));
    state->sum = arena_take(arena, size_mul(2 * segment->batch * outputs, spectrum));
    state->out = arena_take(arena, size_mul(4 * outputs, segment->n * shape->sample_bytes));
}

static void layout_lists(const struct partita_plan *plan, struct active_paths *active,
                         struct arena *arena)
{
    const size_t outputs = plan->shape.out_channels;
    const size_t paths = size_mul(outputs, plan->shape.group_in);
    active->any = arena_pack(arena, outputs * sizeof *active->any);
    for (int s = 0; s < SECTIONS; s++) {
        active->section[s].paths = arena_pack(arena, size_mul(paths, sizeof(struct cmac_path)));
        active->section[s].n_paths = arena_pack(arena, outputs * sizeof(size_t));
    }
}

// Memory without content between blocks, or, if a block takes one quantum, between quanta.
static void layout_scratch(const struct partita_plan *plan, size_t i, struct segment_state *state,
                           struct arena *arena)
{
    const struct segment_work *work = &partitioned_of(plan)->work[i];
    const size_t inputs = plan->shape.in_channels;
    const size_t transforms = size_max(inputs, 2 * plan->shape.out_channels);
    if (partitioned_of(plan)->layout.segment[i].window == 1)
        state->spectrum = arena_take(arena, size_mul(inputs, work->pitch * SPECTRUM_LINE_BYTES));
    state->scratch = arena_take(arena, size_mul(transforms, work->fft->scratch_bytes));
}

void *partitioned_stream_layout(const struct partita_stream *stream, struct arena *arena)
{
    const struct partita_plan *plan = stream->plan;
    const struct partition_layout *layout = &partitioned_of(plan)->layout;
    const struct shape *shape = &plan->shape;
    struct partitioned_stream made = {0}, *state = arena_take(arena, sizeof *state);
    const size_t n = layout->n_segments;
    for (size_t which = 2; which-- > 0;) // the lists for swaps alone come first
        for (size_t i = 0; i < n; i++) layout_lists(plan, &made.segment[i].active[which], arena);
    arena_take(arena, 0); // aligns the region, whose layout does not depend on preceding memory
    const size_t begin = arena->used;
    made.region.data = made.position = arena_pack(arena, sizeof *made.position);
    for (size_t i = 0; i < n; i++) layout_progress(plan, &made.segment[i], arena);
    made.history = (struct history){.frames = partitioned_of(plan)->ring, .delay = layout->latency};
    history_layout(&made.history, shape, arena);
    for (size_t i = 0; i < n; i++) layout_region(plan, i, &made.segment[i], arena);
    made.region.bytes = arena->used - begin;
    for (size_t i = 0; i < n; i++) layout_scratch(plan, i, &made.segment[i], arena);
    for (int i = 0; i < 2; i++)
        made.samples[i] = arena_take(arena, layout->quantum * shape->sample_bytes);
    made.workers = workers_layout(stream, arena);
    if (state) *state = made;
    return state;
}

static uint64_t stream_now(const struct partita_stream *stream)
{
    return position_frame(partitioned_stream_of(stream)->position,
                          partitioned_of(stream->plan)->layout.quantum);
}

const char *ready_outputs(const struct partita_stream *stream, size_t i, uint64_t quantum,
                          size_t set, size_t channel)
{
    const struct partition_layout *layout = &partitioned_of(stream->plan)->layout;
    const struct partition_segment *segment = &layout->segment[i];
    const struct shape *shape = &stream->plan->shape;
    const uint64_t quanta = quantum - segment->start - segment->window;
    const size_t at = quanta_into_block(segment, quanta) * layout->quantum;
    const size_t row =
        (2 * set + complete_blocks(segment, quanta) % 2) * shape->out_channels + channel;
    const size_t first = row * segment->n + segment->n - segment->hop + at;
    return partitioned_stream_of(stream)->segment[i].out + first * shape->sample_bytes;
}

// Sums the finished outputs of the segments for the next n frames, segments in order.
static void sum_segments(const struct partita_stream *stream, size_t set, size_t channel, char *y,
                         size_t n)
{
    const struct partition_layout *layout = &partitioned_of(stream->plan)->layout;
    const struct position *position = partitioned_stream_of(stream)->position;
    const struct shape *shape = &stream->plan->shape;
    const size_t bytes = n * shape->sample_bytes, reals = n * (shape->complex_signal ? 2 : 1);
    bool begun = false;
    assert(position->fill + n <= layout->quantum);
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        if (position->quantum < segment->start + segment->window) continue; // no block is ready
        const char *ready = ready_outputs(stream, i, position->quantum, set, channel) +
                            position->fill * shape->sample_bytes;
        if (begun) stream->plan->kernels->add(y, ready, reals);
        else memcpy(y, ready, bytes);
        begun = true;
    }
    if (!begun) memset(y, 0, bytes);
    if (partitioned_stream_of(stream)->morph) morph_fade(stream, channel, y, n);
}

// A quantum's work when its frames are complete.
static void end_quantum(struct partita_stream *stream)
{
    struct position *position = partitioned_stream_of(stream)->position;
    workers_run_quantum(stream);
    position->fill = 0;
    position->quantum++;
}

// Whole quanta are worked on first and played then, in several steps if need be.
struct step partitioned_stream_step(struct partita_stream *stream, const struct frames *frames)
{
    const struct partition_layout *layout = &partitioned_of(stream->plan)->layout;
    struct partitioned_stream *state = partitioned_stream_of(stream);
    struct position *position = state->position;
    const size_t n = size_min(frames->n, layout->quantum - position->fill);
    const bool take = !layout->whole || position->fill == 0;
    const size_t taken = layout->whole ? layout->quantum : n;
    if (state->morph && position->fill == 0) morph_begin_quantum(stream);
    if (take) history_take(&state->history, stream->plan, stream_now(stream), frames, taken);
    if (take && layout->whole) end_quantum(stream);
    const struct outputs outputs = {.history = &state->history,
                                    .now = stream_now(stream),
                                    .set = position->set,
                                    .samples = state->samples,
                                    .begin = sum_segments,
                                    .paths = partitioned_paths};
    const size_t written = outputs_emit(stream, &outputs, frames, n);
    position->fill += n;
    if (position->fill < layout->quantum) workers_step(stream);
    else if (layout->whole) position->fill = 0;
    else end_quantum(stream);
    return (struct step){n, written};
}

// The fade begins when the current block of every segment was computed with both filters.
size_t partitioned_swap_begin(struct partita_stream *stream)
{
    const struct partition_layout *layout = &partitioned_of(stream->plan)->layout;
    struct partitioned_stream *state = partitioned_stream_of(stream);
    const size_t outputs = stream->plan->shape.out_channels, other = 1 - state->position->set;
    const uint64_t now = state->position->quantum;
    uint64_t last = 0;
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        // Sums of an earlier filter are dropped. The incoming filter is another one than that, even
        // at the same address.
        uint16_t *carried = state->segment[i].carried + other * outputs;
        memset(carried, 0, outputs * sizeof *carried);
        state->segment[i].active[1].filter = NULL;
        // A segment that has begun no block since the last swap still lists the filter before that
        // one, which may be gone, with the incoming one in its place.
        if (state->segment[i].active[0].filter != stream->filter)
            state->segment[i].active[0].filter = NULL;
        // The first blocks lack the products of the blocks before them in their sums.
        const uint64_t quanta = now > segment->start ? now - segment->start : 0;
        const uint64_t begun = (quanta + segment->quanta - 1) / segment->quanta;
        const uint64_t block = begun + segment->batch - 1;
        const uint64_t end = segment->start + block * segment->quanta + segment->window;
        if (end > last) last = end;
    }
    state->fade_begin = last;
    state->fade_end = last + ceil_div(stream->swap.fade, layout->quantum) + layout->whole;
    return (size_t)(last * layout->quantum - stream_now(stream));
}

// Blocks that were begun with the old filter are still worked on with it: it is in use until the
// last ends.
size_t partitioned_swap_end(struct partita_stream *stream)
{
    const struct partition_layout *layout = &partitioned_of(stream->plan)->layout;
    struct partitioned_stream *state = partitioned_stream_of(stream);
    uint64_t last = state->position->quantum;
    // In the middle of a whole quantum the next one's work is done when its first frame comes, not
    // before.
    const size_t ahead = layout->whole && state->position->fill ? layout->quantum : 0;
    state->position->set = 1 - state->position->set;
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        const struct progress *progress = state->segment[i].progress;
        const uint64_t end = segment->start + progress->block * segment->quanta + segment->window;
        const bool old = progress->set != state->position->set;
        if (progress->running && old && end > last) last = end;
    }
    const uint64_t until = last * layout->quantum, at = stream_now(stream) - ahead;
    return until > at ? (size_t)(until - at) : 0;
}
