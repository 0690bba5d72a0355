// SPDX-License-Identifier: MIT
// Streams of cpu/partitioned: input into the ring, outputs from the head and from what the levels
// have ready, and a tick of work whenever a tick's frames are complete.
#include <string.h>

#include "kernels/kernels.h"
#include "stream.h"
#include "stream/outputs.h"
#include "stream/stream.h"
#include "work.h"
#include "workers.h"

static void cut_level(const struct partita_plan *plan, size_t i, struct level_state *own,
                      struct arena *arena)
{
    const struct partitioned *partitioned = plan->state;
    const struct level *level = &partitioned->layout.level[i];
    const struct work *work = &partitioned->work[i];
    const struct shape *shape = &plan->shape;
    const size_t spectrum = work->pitch * TILE_BYTES;
    own->progress = arena_take(arena, sizeof *own->progress);
    own->quiet = arena_take(arena, shape->in_channels * sizeof *own->quiet);
    own->slots =
        arena_take(arena, size_mul(shape->in_channels, size_mul(spectrum, level_row(level))));
    own->spectrum = arena_take(arena, size_mul(shape->in_channels, spectrum));
    own->sum = arena_take(arena, size_mul(2 * level->bundle * shape->out_channels, spectrum));
    own->held = arena_take(arena, 2 * shape->out_channels * sizeof *own->held);
    own->kept = arena_take(arena, 2 * shape->out_channels * sizeof *own->held);
    own->out = arena_take(arena, size_mul(4 * shape->out_channels, level->n * shape->sample_bytes));
}

static void cut_level_pointers(const struct partita_plan *plan, size_t i, struct level_state *own,
                               struct arena *arena)
{
    const struct partitioned *partitioned = plan->state;
    const struct shape *shape = &plan->shape;
    const size_t transforms =
        shape->in_channels > 2 * shape->out_channels ? shape->in_channels : 2 * shape->out_channels;
    own->scratch =
        arena_take(arena, size_mul(transforms, fft_scratch_bytes(partitioned->work[i].fft)));
    for (int which = 0; which < 2; which++) {
        struct hearing *hearing = &own->hearing[which];
        const size_t outputs = shape->out_channels, cells = size_mul(outputs, shape->group_in);
        hearing->any = arena_take(arena, outputs * sizeof *hearing->any);
        for (int s = 0; s < SECTIONS; s++) {
            hearing->section[s].lines =
                arena_take(arena, size_mul(cells, sizeof(struct cmac_line)));
            hearing->section[s].n_lines = arena_take(arena, outputs * sizeof(size_t));
        }
    }
}

struct partitioned_stream *partitioned_stream_cut(const struct partita_plan *plan,
                                                  struct arena *arena)
{
    const struct partitioned *partitioned = plan->state;
    const struct layout *layout = &partitioned->layout;
    const struct shape *shape = &plan->shape;
    struct partitioned_stream fresh = {0}, *state = arena_take(arena, sizeof *state);
    for (int i = 0; i < 2; i++)
        fresh.samples[i] = arena_take(arena, layout->tick * shape->sample_bytes);
    for (size_t i = 0; i < layout->n_levels; i++)
        cut_level_pointers(plan, i, &fresh.level[i], arena);
    const size_t begin = arena->used;
    fresh.region.data = fresh.position = arena_take(arena, sizeof *fresh.position);
    fresh.history = (struct history){.frames = partitioned->ring, .late = layout->latency};
    history_layout(&fresh.history, shape, arena);
    for (size_t i = 0; i < layout->n_levels; i++) cut_level(plan, i, &fresh.level[i], arena);
    fresh.region.bytes = arena->used - begin;
    if (state) *state = fresh;
    return state;
}

enum partita_status partitioned_stream_open(struct partita_stream *stream)
{
    struct arena arena = {0};
    partitioned_stream_cut(stream->plan, &arena);
    arena.base = mem_allocate(&stream->plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    stream->state = partitioned_stream_cut(stream->plan, &arena);
    return team_open(stream);
}

void partitioned_stream_close(struct partita_stream *stream)
{
    if (stream->state) team_close(stream);
}

void partitioned_stream_reset(struct partita_stream *stream)
{
    struct partitioned_stream *state = stream->state;
    work_drop(stream);
    memset(state->region.data, 0, state->region.bytes);
    work_resume(stream);
}

struct region partitioned_stream_region(struct partita_stream *stream)
{
    return ((const struct partitioned_stream *)stream->state)->region;
}

static uint64_t now(const struct partita_stream *stream)
{
    const struct partitioned *partitioned = stream->plan->state;
    const struct position *position = ((const struct partitioned_stream *)stream->state)->position;
    return position->tick * partitioned->layout.tick + position->fill;
}

// Adds the head's taps, applied to the n frames that have just come in, to y.
static void add_head(const struct partita_stream *stream, const struct partita_filter *filter,
                     size_t channel, char *y, size_t n)
{
    const struct partitioned_stream *state = stream->state;
    const struct partitioned_filter *cells = filter->state;
    for (size_t c = cells->first_cell[channel]; c < cells->first_cell[channel + 1]; c++) {
        const struct cell *cell = &cells->cells[c];
        if (cell->head_taps)
            history_filter(&state->history, stream->plan, now(stream), cell->in, cell->head,
                           cell->head_taps, y, n);
    }
}

// Adds what the levels have ready for the next n frames, levels in order.
static void add_levels(const struct partita_stream *stream, size_t set, size_t channel, char *y,
                       size_t n)
{
    const struct partitioned *partitioned = stream->plan->state;
    const struct partitioned_stream *state = stream->state;
    const struct position *position = state->position;
    const struct shape *shape = &stream->plan->shape;
    for (size_t i = 0; i < partitioned->layout.n_levels; i++) {
        const struct level *level = &partitioned->layout.level[i];
        if (position->tick < level->start + level->window)
            continue; // the first block is not done yet
        const uint64_t ticks = position->tick - level->start - level->window,
                       block = whole_blocks(level, ticks);
        const size_t offset =
            ticks_into_block(level, ticks) * partitioned->layout.tick + position->fill;
        const char *out = state->level[i].out +
                          (((2 * set + block % 2) * shape->out_channels + channel) * level->n +
                           level->n - level->hop + offset) *
                              shape->sample_bytes;
        stream->plan->kernels->add(y, out, n * (shape->complex_signal ? 2 : 1));
    }
}

static void compute(const struct partita_stream *stream, const struct partita_filter *filter,
                    size_t set, size_t channel, char *y, size_t n)
{
    memset(y, 0, n * stream->plan->shape.sample_bytes);
    add_head(stream, filter, channel, y, n);
    add_levels(stream, set, channel, y, n);
}

static size_t emit(const struct partita_stream *stream, const struct frames *frames, size_t n)
{
    const struct partitioned_stream *state = stream->state;
    const struct outputs outputs = {.history = &state->history,
                                    .now = now(stream),
                                    .set = state->position->set,
                                    .samples = state->samples,
                                    .compute = compute,
                                    .cells = partitioned_cells};
    return outputs_emit(stream, &outputs, frames, n);
}

// A tick's work when its frames are complete.
static void end_tick(struct partita_stream *stream)
{
    struct position *position = ((struct partitioned_stream *)stream->state)->position;
    work_tick(stream);
    position->fill = 0;
    position->tick++;
}

// Whole ticks are worked on first and played then, in several steps if need be.
static struct step step_whole(struct partita_stream *stream, const struct frames *frames)
{
    const size_t tick = ((const struct partitioned *)stream->plan->state)->layout.tick;
    struct partitioned_stream *state = stream->state;
    struct position *position = state->position;
    if (position->fill == 0) {
        history_take(&state->history, stream->plan, now(stream), frames, tick);
        end_tick(stream);
    }
    const size_t room = tick - position->fill, n = frames->n < room ? frames->n : room;
    const size_t written = emit(stream, frames, n);
    history_advance(&state->history, &stream->plan->shape, now(stream), n);
    position->fill = (position->fill + n) % tick;
    return (struct step){n, written};
}

struct step partitioned_stream_step(struct partita_stream *stream, const struct frames *frames)
{
    const struct layout *layout = &((const struct partitioned *)stream->plan->state)->layout;
    struct partitioned_stream *state = stream->state;
    struct position *position = state->position;
    if (layout->whole) return step_whole(stream, frames);
    const size_t room = layout->tick - position->fill, n = frames->n < room ? frames->n : room;
    history_take(&state->history, stream->plan, now(stream), frames, n);
    const size_t written = emit(stream, frames, n);
    history_advance(&state->history, &stream->plan->shape, now(stream), n);
    position->fill += n;
    if (position->fill == layout->tick) end_tick(stream);
    return (struct step){n, written};
}

// Both filters' outputs are there when every level has played its way to a block that was worked on
// with both.
size_t partitioned_swap_begin(struct partita_stream *stream)
{
    const struct partitioned *partitioned = stream->plan->state;
    struct partitioned_stream *state = stream->state;
    const struct position *position = state->position;
    const struct layout *layout = &partitioned->layout;
    uint64_t last = 0;
    for (size_t i = 0; i < layout->n_levels; i++) {
        const struct level *level = &layout->level[i];
        // Nothing that an earlier filter has left; nor is this one that filter, even at the same
        // address.
        const size_t outputs = stream->plan->shape.out_channels;
        memset(state->level[i].kept + (1 - position->set) * outputs, 0,
               outputs * sizeof *state->level[i].kept);
        state->level[i].hearing[1].filter = NULL;
        const uint64_t begun = position->tick > level->start ? position->tick - level->start : 0;
        // The first blocks lack what blocks before would have added to their sums.
        const uint64_t block = (begun + level->ticks - 1) / level->ticks + level->bundle - 1;
        const uint64_t end = level->start + block * level->ticks + level->window;
        if (end > last) last = end;
    }
    return (size_t)(last * layout->tick - now(stream));
}

// Blocks that were begun with both filters are still worked on with both: the old one is in use
// until the last ends.
size_t partitioned_swap_end(struct partita_stream *stream)
{
    const struct partitioned *partitioned = stream->plan->state;
    struct partitioned_stream *state = stream->state;
    const struct layout *layout = &partitioned->layout;
    uint64_t last = state->position->tick;
    // In the midst of a whole tick the next one's work is done when its first frame comes, not
    // before.
    const size_t ahead = layout->whole && state->position->fill ? layout->tick : 0;
    state->position->set = 1 - state->position->set;
    for (size_t i = 0; i < layout->n_levels; i++) {
        const struct level *level = &layout->level[i];
        const struct progress *progress = state->level[i].progress;
        const uint64_t end = level->start + progress->block * level->ticks + level->window;
        if (progress->running && progress->twice && end > last) last = end;
    }
    const uint64_t until = last * layout->tick, at = now(stream) - ahead;
    return until > at ? (size_t)(until - at) : 0;
}
