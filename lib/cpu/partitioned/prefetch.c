// SPDX-License-Identifier: MIT
// Fetches the first reads of the next step of a stream, while streams before it in a bank are at
// work: with many streams each one's small arrays have left the caches since its last step, and a
// step would wait for them one after the other.
#include <stddef.h>

#include "base/sizes.h"
#include "partitioned.h"

enum { CACHE_LINE = 64 };

static void prefetch_range(const void *at, size_t bytes)
{
    const uintptr_t begin = (uintptr_t)at & ~(uintptr_t)(CACHE_LINE - 1);
    for (uintptr_t line = begin; line < (uintptr_t)at + bytes; line += CACHE_LINE)
        __builtin_prefetch((const void *)line, 0, 2);
}

static void prefetch_structs(const struct partita_stream *stream)
{
    const struct partitioned_stream *state = partitioned_stream_of(stream);
    const size_t segments = partitioned_of(stream->plan)->layout.n_segments;
    prefetch_range(state, offsetof(struct partitioned_stream, segment) +
                              segments * sizeof state->segment[0]);
    prefetch_range(stream->filter, sizeof *stream->filter);
}

// The small arrays, from the lists of the stream's filter to those of the history (stream.c).
static void prefetch_arrays(const struct partita_stream *stream)
{
    enum { MAX_BYTES = 2048 }; // with many channels the rest is a sequence that the CPU foresees
    const struct partitioned_stream *state = partitioned_stream_of(stream);
    const char *begin = (const char *)state->segment[0].active[0].any;
    const char *end = (const char *)state->history.nonfinite;
    prefetch_range(begin, size_min((size_t)(end - begin), MAX_BYTES));
    prefetch_range(stream->filter->state, CACHE_LINE);
}

// The two copies of the new frames in the history, the second with earlier frames for the head.
static void prefetch_history(const struct partita_stream *stream, uint64_t now)
{
    const struct partition_layout *layout = &partitioned_of(stream->plan)->layout;
    const struct history *history = &partitioned_stream_of(stream)->history;
    const struct shape *shape = &stream->plan->shape;
    const size_t at = now % history->frames, before = size_min(at + history->frames, layout->head);
    const size_t bytes = layout->quantum * shape->sample_bytes;
    for (size_t c = 0; c < shape->in_channels; c++) {
        prefetch_range(history_at(history, shape, c, at), bytes);
        prefetch_range(history_at(history, shape, c, at + history->frames - before),
                       before * shape->sample_bytes + bytes);
    }
}

// The samples that the segments add to the outputs of quantum `quantum`.
static void prefetch_outputs(const struct partita_stream *stream, uint64_t quantum)
{
    const struct partition_layout *layout = &partitioned_of(stream->plan)->layout;
    const struct partitioned_stream *state = partitioned_stream_of(stream);
    const struct shape *shape = &stream->plan->shape;
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        if (quantum < segment->start + segment->window) continue;
        for (size_t k = 0; k < shape->out_channels; k++)
            prefetch_range(ready_outputs(stream, i, quantum, state->position->set, k),
                           layout->quantum * shape->sample_bytes);
    }
}

// The first memory to which the work on a block of segment i writes or adds, if a block ends in
// quantum `quantum` and is computed there: the slot of its spectrum, its sum, and its outputs.
static void prefetch_block(const struct partita_stream *stream, size_t i, uint64_t quantum)
{
    enum { MAX_CHANNELS = 4 }; // one after the other takes long enough to be foreseen
    const struct task at = task_first(stream, i);
    const struct shape *shape = &stream->plan->shape;
    const uint64_t quanta = quantum - at.segment->start;
    const size_t line = SPECTRUM_LINE_BYTES, lines = at.work->pitch;
    if (at.segment->window > 1 || quantum < at.segment->start) return;
    if (quanta_into_block(at.segment, quanta) > 0) return;
    const uint64_t block = complete_blocks(at.segment, quanta);
    const size_t slot = block % partition_slots(at.segment), pitch = slot_pitch(at.segment);
    for (size_t n = 0; n < size_min(shape->in_channels, MAX_CHANNELS) * lines; n++)
        prefetch_range(at.state->slots + (n * pitch + slot) * line, line);
    const size_t set = partitioned_stream_of(stream)->position->set;
    const size_t sum = (set * at.segment->batch + index_in_batch(at.segment, block));
    const size_t out = (2 * set + block % 2) * shape->out_channels, n = at.segment->n;
    for (size_t k = 0; k < size_min(shape->out_channels, MAX_CHANNELS); k++) {
        prefetch_range(at.state->sum + (sum * shape->out_channels + k) * lines * line,
                       lines * line);
        prefetch_range(at.state->out + ((out + k) * n + n - at.segment->hop) * shape->sample_bytes,
                       at.segment->hop * shape->sample_bytes);
    }
}

static void prefetch_samples(const struct partita_stream *stream)
{
    const struct partition_layout *layout = &partitioned_of(stream->plan)->layout;
    const uint64_t quantum = partitioned_stream_of(stream)->position->quantum;
    const struct path_view paths = partitioned_paths(stream->filter);
    prefetch_history(stream, quantum * layout->quantum);
    prefetch_outputs(stream, quantum + layout->whole);
    for (size_t i = 0; i < layout->n_segments; i++) prefetch_block(stream, i, quantum);
    prefetch_range(paths.first_path, CACHE_LINE);
    prefetch_range(paths.heads, CACHE_LINE);
}

void partitioned_prefetch(const struct partita_stream *stream, int ahead)
{
    if (ahead == 3) prefetch_structs(stream);
    else if (ahead == 2) prefetch_arrays(stream);
    else if (ahead == 1) prefetch_samples(stream);
}
